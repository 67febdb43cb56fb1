"""A process killed at any moment of a store's life: the same commands again give the same bytes."""

from __future__ import annotations

import random
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from retrodp.engine.store import Store
from retrodp.store.keyfile import PlainKeyFile
from tests.support.crashing import Lives
from tests.support.stores import memory_directory, published, read_files


@dataclass(frozen=True)
class Outcome:
    """All that must not depend on when a process was killed."""

    releases: dict[int, dict[str, bytes]]
    key: bytes
    survivors: list[object]
    waiting: int
    erase_due: bool
    files: list[str]


def outcome(path: Path) -> Outcome:
    key = PlainKeyFile(Path(f"{path}.key")).read().to_bytes()
    files = sorted(read_files(path))
    with Store.open(path) as store:
        return Outcome(
            releases=published(path),
            key=key,
            survivors=[record for batch in store.ledger.survivors() for record in batch],
            waiting=store.ledger.waiting.count(),
            erase_due=store.ledger.facts.erase_due,
            files=files,
        )


@dataclass(frozen=True)
class Campaign:
    """Lives to be killed, and how an undisturbed one ends."""

    lives: Lives
    directory: Path
    undisturbed: Outcome
    events: int

    def killed(self, *, kill_at: int | None = None, after: float | None = None) -> tuple[int, bool]:
        """Exit code of a killed life, and whether the same again ends like an undisturbed one."""
        path = Path(tempfile.mkdtemp(dir=self.directory)) / "life"
        code = self.lives.run(path, kill_at=kill_at, after=after)
        assert self.lives.run(path) == 0
        path.with_name("life-events").unlink()
        return code, outcome(path) == self.undisturbed


@pytest.fixture(scope="module")
def campaign() -> Iterator[Campaign]:
    yield from campaigned("known")


@pytest.fixture(scope="module")
def over_borders() -> Iterator[Campaign]:
    """Lives that cross two borders of an open horizon."""
    yield from campaigned("open")


def campaigned(plan: str) -> Iterator[Campaign]:
    with memory_directory() as directory:
        lives = Lives(plan)
        try:
            path = directory / "life"
            assert lives.run(path) == 0
            yield Campaign(lives, directory, outcome(path), lives.events(path))
        finally:
            lives.close()


def test_the_same_commands_twice_change_nothing(campaign: Campaign) -> None:
    path = campaign.directory / "twice"
    codes = [campaign.lives.run(path) for _ in range(3)]
    assert codes == [0, 0, 0]
    path.with_name("twice-events").unlink()
    assert outcome(path) == campaign.undisturbed


@pytest.mark.parametrize("part", range(4))
def test_a_kill_at_a_step_loses_and_changes_nothing(campaign: Campaign, part: int) -> None:
    """Every seventh event of creation, ingestion, closes, forgetting and erasure."""
    steps = range(1 + 7 * part, campaign.events + 1, 28)
    ends = [campaign.killed(kill_at=step) for step in steps]
    assert ends == [(-signal.SIGKILL, True)] * len(steps)
    assert len(steps) > 3


def test_a_kill_at_a_step_of_a_life_over_borders_loses_and_changes_nothing(
    over_borders: Campaign,
) -> None:
    steps = range(3, over_borders.events + 1, 23)
    ends = [over_borders.killed(kill_at=step) for step in steps]
    assert ends == [(-signal.SIGKILL, True)] * len(steps)
    assert len(steps) > 3


@pytest.mark.crash
def test_a_kill_at_every_step_over_borders_loses_and_changes_nothing(
    over_borders: Campaign,
) -> None:
    steps = range(1, over_borders.events + 1)
    ends = [over_borders.killed(kill_at=step) for step in steps]
    wrong = [step for step, end in zip(steps, ends, strict=True) if end != (-signal.SIGKILL, True)]
    assert wrong == []


@pytest.mark.crash
def test_a_kill_at_every_step_loses_and_changes_nothing(campaign: Campaign) -> None:
    steps = range(1, campaign.events + 1)
    ends = [campaign.killed(kill_at=step) for step in steps]
    wrong = [step for step, end in zip(steps, ends, strict=True) if end != (-signal.SIGKILL, True)]
    assert wrong == []


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(20))
def test_two_kills_at_random_steps_lose_and_change_nothing(campaign: Campaign, seed: int) -> None:
    drawn = random.Random(seed)
    path = Path(tempfile.mkdtemp(dir=campaign.directory)) / "life"
    for _ in range(10):
        campaign.lives.run(path, kill_at=drawn.randint(1, campaign.events // 2))
    assert campaign.lives.run(path) == 0
    path.with_name("life-events").unlink()
    assert outcome(path) == campaign.undisturbed


@pytest.mark.crash
@pytest.mark.parametrize("seed", range(5))
def test_kills_at_random_moments_lose_and_change_nothing(campaign: Campaign, seed: int) -> None:
    drawn = random.Random(seed)
    ends = [campaign.killed(after=drawn.uniform(0.0, 0.25))[1] for _ in range(20)]
    assert ends == [True] * 20
