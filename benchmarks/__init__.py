"""Speed, error and memory beside the peers; `make bench`, or `python -m benchmarks`."""
