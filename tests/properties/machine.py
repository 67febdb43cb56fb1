"""A store driven by any history, beside the plain model of what must survive.

The rules are what happens to a store in life: updates of every kind in any order and more than
once, forgets, closes, steps that fail, processes that are killed. After every close the survivors,
the totals and every published byte are those of the model.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from operator import attrgetter
from pathlib import Path
from typing import Any, ClassVar

import hypothesis.strategies as st
import msgspec
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from retrodp.engine.totals import recount
from retrodp.noise.key import KeyTree
from tests.support.mechanisms import pure
from tests.support.model import Lives, Points, totals
from tests.support.plans import HORIZON, Kind, plan
from tests.support.rows import Contents, Row, ingest
from tests.support.stores import ROOT, crashed, memory_directory, new_store, published

CONTENTS = st.builds(
    Contents,
    who=st.sampled_from(["ann", "bob"]),
    product=st.sampled_from(["tea", "tea", "ink", "[x]", None]),
    country=st.sampled_from(["DE", "FR", "ZZ"]),
    amount=st.sampled_from([1.5, -5.0, 30.0, None]),
    gift=st.booleans(),
)
ROUNDS = st.integers(1, HORIZON)

# What a close calls, one after the other: (part of the store, method). Each may fail before or after its work.
STEPS = [
    ("ledger", "apply_changes"),
    ("ledger", "add_totals"),
    ("ledger.waiting", "remove_round"),
    ("ledger.pending", "keep"),
    ("ledger.facts", "advance"),
    ("keeper", "rewrite"),
    ("releases", "publish"),
    ("ledger.pending", "clear"),
]


class Interruption(Exception):  # noqa: N818  it is no error of the package
    """Stands for whatever stops a step."""


@st.composite
def rows(draw: st.DrawFn, ops: list[str], *, by_id: bool) -> Row:
    round_ = draw(ROUNDS)
    stamp = draw(st.none() | st.integers(1, round_))
    return Row(
        op=draw(st.sampled_from(ops)),
        id=draw(st.sampled_from(list("abcdef"))) if by_id else "",
        round=round_,
        second=draw(st.integers(0, 2)),
        stamp=stamp,
        contents=draw(CONTENTS),
        n=1 if by_id else draw(st.integers(1, 3)),
    )


class StoreMachine(RuleBasedStateMachine):
    """Rules that every kind of stream shares."""

    kind: ClassVar[Kind]
    model: Lives | Points

    def __init__(self) -> None:
        super().__init__()
        self.resources = ExitStack()
        self.directory = self.resources.enter_context(memory_directory())
        self.path = self.directory / "store-0"
        self.store = new_store(self.path, plan(self.kind))
        self.keys = KeyTree.from_root(ROOT, b"test-fixed", HORIZON)
        self.expected: dict[int, dict[str, bytes]] = {}
        self.exact: dict[str, dict[bytes, int]] = {}
        self.delivered: list[Row] = []

    def teardown(self) -> None:
        self.store.close()
        self.resources.close()

    def deliver(self, taken: list[Row]) -> None:
        ingest(self.store, taken)
        for row in taken:
            self.model.take(row, first_open=self.store.round + 1)
        self.delivered += taken

    def model_close(self, round_: int) -> None:
        raise NotImplementedError

    @precondition(lambda self: self.store.round < HORIZON)
    @rule()
    def close(self) -> None:
        round_ = self.store.round + 1
        self.store.close_round()
        self._closed(round_)

    @precondition(lambda self: self.store.round < HORIZON)
    @rule(step=st.sampled_from(STEPS), after=st.booleans(), killed=st.booleans())
    def close_with_a_step_that_fails(
        self,
        step: tuple[str, str],
        after: bool,  # noqa: FBT001  drawn by Hypothesis
        killed: bool,  # noqa: FBT001
    ) -> None:
        round_ = self.store.round + 1
        where = attrgetter(f"_parts.{step[0]}")(self.store)
        failing(where, step[1], after=after)
        try:
            self.store.close_round()
        except Interruption:
            pass
        else:
            raise AssertionError(f"{step} is no part of a close")
        if not killed:
            delattr(where, step[1])
        if killed or round_ == HORIZON:
            self.kill()
        if self.store.round == round_ < HORIZON and not killed:
            self._note(round_)  # the next close completes this one first
            round_ += 1
        if self.store.round < round_:
            self.store.close_round()
        self._closed(round_)

    @rule()
    def kill(self) -> None:
        self.path = Path(tempfile.mkdtemp(dir=self.directory)) / "store"
        self.store = crashed(self.store, self.path)

    @rule()
    def settle(self) -> None:
        self.store.settle()
        assert not self.store.ledger.facts.erase_due or self.store.ledger.forgets.waiting()

    def _closed(self, round_: int) -> None:
        self._note(round_)
        assert self.store.round == round_
        self.check_survivors()
        held = {name: self.store.ledger.read_totals(name) for name in self.exact}
        assert held == self.exact
        assert published(self.path) == self.expected

    def _note(self, round_: int) -> None:
        """What the model says of a closed round: exact totals, and the bytes to be published."""
        self.model_close(round_)
        self.exact = totals(self.model.survivors().items(), round_)
        self.expected[round_] = {
            release.name: pure(release)
            .release(round_, self.exact[release.name], self.keys)
            .to_bytes()
            for release in self.store.releases
        }

    def check_survivors(self) -> None:
        found: Counter[tuple[int, tuple[object, ...]]] = Counter()
        for batch in self.store.ledger.survivors():
            for record in batch:
                values = tuple(msgspec.msgpack.decode(record.payload))
                found[record.stamp, values] += record.count
        assert found == self.model.survivors()

    @invariant()
    def totals_are_those_of_the_survivors(self) -> None:
        if self.store.round == 0:
            return
        names = [column.name for column in self.store.plan.columns]
        counted = recount(
            self.store.releases, names, self.store.round, self.store.ledger.survivors()
        )
        nonzero = {
            name: {label: total for label, total in values.items() if total}
            for name, values in counted.items()
        }
        assert nonzero == {name: self.store.ledger.read_totals(name) for name in counted}


def failing(target: Any, method: str, *, after: bool) -> None:
    """Make a method of one object raise before or after its work."""
    real: Callable[..., Any] = getattr(target, method)

    def interrupted(*args: Any, **keywords: Any) -> None:
        if after:
            real(*args, **keywords)
        raise Interruption

    setattr(target, method, interrupted)


__all__ = ["CONTENTS", "HORIZON", "ROUNDS", "Interruption", "Row", "StoreMachine", "rows"]
