"""Which streams a mechanism's privacy proof covers."""

from __future__ import annotations

from retrodp.mechanisms.contract import Adaptive
from retrodp.noise.processes import Process

_CAUSAL = frozenset({"binary", "fresh", "dense", "sqrt"})


def adaptive_guarantee(process: Process) -> Adaptive:
    """Cover of streams that react to earlier answers (KKMNS appendix B).

    Laplace noise holds adaptively with any factor, by a piecewise shift of the nodes. Gaussian
    noise holds with causal nodes, where the past settles how far a node moves before it is used
    (binary, fresh, dense, sqrt); for nodes that reach into the future (haar) the divergences of
    integer order hold.
    """
    if process.law == "laplace" or process.factor.name in _CAUSAL:
        return "yes"
    return "integer-order RDP"
