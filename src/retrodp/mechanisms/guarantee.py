"""Which streams a mechanism's privacy proof covers."""

from __future__ import annotations

from retrodp.mechanisms.contract import Adaptive
from retrodp.noise.process import NoiseProcess


def adaptive_guarantee(process: NoiseProcess) -> Adaptive:
    """Cover of streams that react to earlier answers (KKMNS appendix B).

    Laplace noise holds adaptively with any factor, by a piecewise shift of the nodes. Gaussian
    noise holds with causal nodes, whose draw is settled before it is used (binary, fresh); for
    nodes that reach into the future (haar) the divergences of integer order hold.
    """
    if process.law == "laplace" or process.factor.name in {"binary", "fresh"}:
        return "yes"
    return "integer-order RDP"
