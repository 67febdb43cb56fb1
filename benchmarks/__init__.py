"""Speed, error and memory beside the peers; `make bench`, or `python -m benchmarks`."""

import os

# Before NumPy is loaded: rates are those of one core.
for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
