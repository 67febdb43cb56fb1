"""Subtracting two exact publications reads the one who left; two releases of ours do not."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from retrodp.audit import differencing
from retrodp.audit.differencing import Found, Group, Size, attacked, exact, kept, noisy, released
from retrodp.audit.histories import exact_rounds
from retrodp.cli.app import run
from tests.audit.sizes import SEED

SMALL = Size(people=12, horizon=10, trials=300, deviations=(0.25, 4))
NEAR = 0.5 + 4 * 0.5 / 300**0.5


def test_exact_counts_give_everybody_away_who_leaves() -> None:
    assert attacked(exact(), SEED, SMALL).accuracy == 1


@pytest.mark.parametrize("deviation", [1, 1000])
def test_noise_that_is_kept_cancels_whatever_its_size(deviation: float) -> None:
    assert attacked(kept(deviation), SEED, SMALL).accuracy == 1


def test_too_little_noise_gives_most_away_and_more_noise_fewer() -> None:
    shares = [attacked(noisy(one), SEED, SMALL).accuracy for one in (0.25, 1, 64)]
    assert shares[0] > 0.95
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < NEAR


@pytest.mark.parametrize("model", ["zcdp", "pure"])
def test_releases_with_a_budget_keep_to_what_they_promise(model: str) -> None:
    target = released(SMALL.horizon, model)
    found = attacked(target, SEED, SMALL)
    assert target.cap is not None
    assert 0.4 < found.accuracy < min(target.cap, 0.65) + 0.1
    assert differencing.row(found, SMALL, must=False).verdict == "holds"


def test_a_release_is_shown_what_survives() -> None:
    plan = differencing.plan_of(SMALL.horizon, "zcdp")
    group = Group.drawn(SEED, SMALL)
    lived = exact_rounds(plan, (), group.history(plan), SEED.keys(SMALL.horizon, "any"))
    counts = [len(own.survivors) for own in lived]
    assert counts == [SMALL.people] * (group.round - 1) + [SMALL.people - 1]


def test_a_release_that_gives_more_away_is_accused_and_a_blind_attack_says_so() -> None:
    target = released(SMALL.horizon, "zcdp")
    loud = Found(target=target, right=800, trials=1000)
    assert differencing.row(loud, SMALL, must=False).verdict == "accused"
    blind = Found(target=exact(), right=500, trials=1000)
    assert differencing.row(blind, SMALL, must=True).verdict == "missed"


def test_the_command_prints_a_row_a_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(differencing, "SMOKE", replace(SMALL, trials=100))
    assert run(["audit", "differencing", "--json", "--seed", SEED.hex]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["verdict"] for row in rows] == [*["caught"] * 3, "as stated", "holds", "holds"]
