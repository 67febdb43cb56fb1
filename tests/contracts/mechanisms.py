"""All mechanisms of the package, each with every factor and law it can have."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from retrodp.mechanisms.calibrate import calibrated
from retrodp.mechanisms.contract import Mechanism
from retrodp.mechanisms.counter import Counter
from retrodp.mechanisms.histogram import Histogram, SparseHistogram
from retrodp.noise.key import KeyTree, Node
from retrodp.privacy.budget import PureDP, zCDP

HORIZON = 8
LAWS: dict[str, zCDP | PureDP] = {"gaussian": zCDP("1/2"), "laplace": PureDP(1)}
FACTORS = ("haar", "binary", "delannoy", "fresh", "dense")
WINDOW = 2  # for which independent noise every round is the best factor
BINS = ("ink", "tea", "wax")
TREE = KeyTree.from_root(bytes(range(32)), b"contracts", HORIZON)

Make = Callable[..., Mechanism]
Totals = dict[bytes, int]


def _counter(**shared: Any) -> Mechanism:
    return Counter.of(calibrated(**shared))


def _histogram(**shared: Any) -> Mechanism:
    return Histogram.of(calibrated(**shared), BINS)


def _sparse(**shared: Any) -> Mechanism:
    return SparseHistogram.of(calibrated(**shared), threshold=20, max_bins=1000)


SHAPES: dict[str, Make] = {"counter": _counter, "histogram": _histogram, "sparse": _sparse}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One mechanism, made for any name, with totals that fit it."""

    shape: str
    factor: str
    law: str

    def make(self, name: str = "released", *, horizon: int = HORIZON, amount: int = 1) -> Mechanism:
        fresh = self.factor == "fresh"
        mechanism = SHAPES[self.shape](
            name=name,
            horizon=horizon,
            budget=LAWS[self.law],
            amount=amount,
            factor="auto" if fresh else self.factor,
            window=WINDOW if fresh else None,
        )
        assert mechanism.factor.name == self.factor
        return mechanism

    def exact(self, one: int = 51_234_567, two: int = 98_765_432) -> Totals:
        """Totals that no noise reaches, so that they would be recognised anywhere."""
        return {b"": one} if self.shape == "counter" else {b"tea": one, b"ink": two}


def all_cases() -> Iterator[Case]:
    for shape in SHAPES:
        for factor in FACTORS:
            for law in LAWS if factor != "dense" else ["gaussian"]:
                yield Case(shape=shape, factor=factor, law=law)


CASES = list(all_cases())
IDS = [f"{case.shape}-{case.factor}-{case.law}" for case in CASES]


@dataclass
class Recording:
    """Keys that note which labels they were asked for."""

    tree: KeyTree = TREE
    labels: set[tuple[object, ...]] = field(default_factory=set)

    def node_key(self, *, release: str, factor: str, node: Node, last: int) -> bytes:
        self.labels.add(("node", release, factor, node, last))
        return self.tree.node_key(release=release, factor=factor, node=node, last=last)

    def fresh_key(self, *, release: str, purpose: str, round: int) -> bytes:  # noqa: A002
        self.labels.add(("fresh", release, purpose, round))
        return self.tree.fresh_key(release=release, purpose=purpose, round=round)

    def lasting_key(self, *, release: str, purpose: str) -> bytes:
        self.labels.add(("lasting", release, purpose))
        return self.tree.lasting_key(release=release, purpose=purpose)
