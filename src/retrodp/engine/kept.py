"""The exact totals of a store between its rounds: in memory, and in the ledger when it is written.

Promise: whoever reads gets the totals of the survivors of the last closed round. A command that
closes many rounds writes them once, with its last round: until then the ledger says, in the same
transaction as each round, that its table is behind. After a crash on the way the totals are counted
anew from the survivors, of which they are a function.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from retrodp.engine.compile import CompiledRelease
from retrodp.engine.totals import add_within, recount
from retrodp.mechanisms.histogram import SparseHistogram
from retrodp.mechanisms.wide_totals import WideTotals
from retrodp.statistics.contract import Keyed
from retrodp.store.ledger import Ledger

_MANY = 8


class KeptTotals:
    """Totals by release; a mapping that is changed in place while a round is closed."""

    def __init__(
        self, releases: Sequence[CompiledRelease], names: Sequence[str], ledger: Ledger
    ) -> None:
        """Read nothing yet.

        Args:
            releases: All of the plan.
            names: Columns in plan order.
            ledger: Of the survivors.
        """
        self._releases = tuple(releases)
        self._names = names
        self._ledger = ledger
        self._totals: dict[str, dict[bytes, int] | WideTotals] | None = None
        # Coordinates that the ledger does not know yet, by release; None for all of them.
        self._unwritten: dict[str, set[bytes] | None] = {}

    def read(self) -> Mapping[str, dict[bytes, int] | WideTotals]:
        """All totals; not to be changed but by `move`."""
        self.catch_up()
        if self._totals is None:
            self._totals = {
                release.name: _held(release, self._ledger.read_totals(release.name))
                for release in self._releases
            }
        return self._totals

    def lose(self) -> None:
        """Let go of what is in memory: the ledger did not follow."""
        self._totals = None
        self._unwritten.clear()

    def catch_up(self) -> None:
        """See that the ledger's table is that of its survivors, unless memory is ahead of it."""
        if self._totals is not None or not self._ledger.facts.totals_behind:
            return
        usable = [own for own in self._releases if not _lost_its_secret(own)]
        counted = recount(usable, self._names, self._ledger.facts.round, self._ledger.survivors())
        with self._ledger.joined():
            for release in self._releases:
                self._ledger.replace_totals(release.name, counted.get(release.name, {}))
            self._ledger.facts.note_totals(behind=False)

    def write_behind(self) -> None:
        """The same also if memory is ahead: what the table lags behind has labels of who is gone."""
        if self._ledger.facts.totals_behind:
            self.lose()
            self.catch_up()

    def move(self, release: str, difference: Mapping[bytes, int], *, write: bool) -> None:
        """Add to the totals of a release.

        Args:
            release: Name.
            difference: What to add.
            write: Whether the ledger follows now; else it follows with a later round.

        Raises:
            CapacityError: A total would leave the 64-bit integers.
        """
        totals = self.read()[release]
        add_within(totals, difference, release=release)
        changed = self._unwritten.setdefault(release, set())
        if write and changed == set():
            gone = [label for label, total in _among(totals, difference).items() if not total]
            self._ledger.add_totals(release, difference, gone=gone)
            return
        if changed is not None and _MANY * (len(changed) + len(difference)) < len(totals):
            changed.update(difference)
        else:  # to note which they are would take longer than to write all of them
            changed = self._unwritten[release] = None
        if write and changed is None:
            self._ledger.replace_totals(release, totals)
        elif write and changed is not None:
            self._ledger.set_totals(release, _among(totals, changed))

    def noted(self, *, written: bool) -> None:
        """Say in the ledger whether its table is behind, in the transaction of the round."""
        if self._ledger.facts.totals_behind == written:
            self._ledger.facts.note_totals(behind=not written)

    def kept(self) -> None:
        """The transaction in which everything was written is through."""
        self._unwritten.clear()


def _held(release: CompiledRelease, totals: dict[bytes, int]) -> dict[bytes, int] | WideTotals:
    """The totals in the way in which a round moves them fastest."""
    return WideTotals(totals) if isinstance(release.mechanism, SparseHistogram) else totals


def _among(totals: Mapping[bytes, int], labels: Collection[bytes]) -> dict[bytes, int]:
    """The totals of some coordinates, 0 where there is none."""
    if isinstance(totals, WideTotals):
        return dict(zip(labels, totals.among(list(labels)), strict=True))
    return {label: totals.get(label, 0) for label in labels}


def _lost_its_secret(release: CompiledRelease) -> bool:
    return isinstance(release.statistic, Keyed) and not release.statistic.bound
