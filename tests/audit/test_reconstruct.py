"""Exact forgetting gives secrets away; so does too little noise; releases with a budget do not."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from retrodp.audit import reconstruct
from retrodp.audit.histories import exact_rounds
from retrodp.audit.reconstruct import Found, Readout, Size, attacked, exact, noisy, released
from retrodp.cli.app import run
from tests.audit.sizes import SEED

SMALL = Size(bits=48, blocks=120, streams=4, deviations=(0.5, 16))
ROUNDS = 1 + 2 * SMALL.blocks


def test_exact_unlearning_is_reconstructed() -> None:
    assert attacked(exact(ROUNDS), SEED, SMALL).accuracy > 0.95


def test_too_little_noise_is_reconstructed_and_more_noise_less() -> None:
    shares = [attacked(noisy(ROUNDS, one), SEED, SMALL).accuracy for one in (0.5, 4, 64)]
    assert shares[0] > 0.95
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] < 0.65


@pytest.mark.parametrize(
    ("model", "method"), [("zcdp", "fresh"), ("zcdp", "ladder"), ("pure", "fresh")]
)
def test_releases_with_a_budget_leave_the_attack_near_chance(model: str, method: str) -> None:
    found = attacked(released(ROUNDS, model, method), SEED, SMALL)
    assert found.bits == 192
    assert 0.35 < found.accuracy < 0.65  # four deviations of a fair coin
    assert not found.beyond


def test_what_is_attacked_has_forgotten_every_copy() -> None:
    plan = reconstruct.plan_of(ROUNDS, "zcdp", "fresh")
    stream = Readout.drawn(SEED, SMALL.bits, SMALL.blocks)
    lived = exact_rounds(plan, (), stream.history(plan), SEED.keys(ROUNDS, "any"))
    assert len(lived) == ROUNDS
    assert {own.survivors for own in lived[::2]} == {lived[0].survivors}
    assert len(lived[0].survivors) == int(stream.secrets.sum())


def test_the_answers_of_a_block_are_those_of_the_lemma() -> None:
    """b_j = a_n + 2 |Q_j| - 2 a_mj is the sum of the secrets' signs."""
    stream = Readout.drawn(SEED, SMALL.bits, SMALL.blocks)
    answers = exact(ROUNDS).read(stream, SEED.keys(ROUNDS, "any"))
    derived = answers[0] + 2 * stream.sets.sum(axis=1) - 2 * answers[1::2]
    signs = np.where(stream.sets, 1, -1)
    assert derived.tolist() == (signs @ stream.secrets.astype(int)).tolist()


def test_the_bound_on_right_guesses_is_that_of_one_run() -> None:
    """Randomised response at epsilon 1 is right with probability 0.731, and is not accused."""
    assert 0.731 < reconstruct.most_right(10_000) / 10_000 < 0.76
    target = released(ROUNDS, "zcdp", "fresh")
    assert target.cap is not None
    assert 0.5 < target.cap < 0.55
    assert not Found(target=target, right=7_310, bits=10_000).beyond
    accused = reconstruct.row(Found(target=target, right=7_700, bits=10_000), SMALL, must=False)
    assert accused.verdict == "accused"


def test_an_attack_that_is_blind_says_so() -> None:
    blind = Found(target=exact(ROUNDS), right=50, bits=100)
    assert reconstruct.row(blind, SMALL, must=True).verdict == "missed"
    assert reconstruct.row(blind, SMALL, must=False).verdict == "as stated"


def test_the_command_prints_a_row_a_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(reconstruct, "SMOKE", replace(SMALL, streams=1))
    assert run(["audit", "reconstruct", "--json", "--seed", SEED.hex]) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    verdicts = {(row["mechanism"], row["model"]): row["verdict"] for row in rows}
    assert verdicts == {
        ("exact unlearning", ""): "caught",
        ("noise of 0.5", ""): "caught",
        ("noise of 16", ""): "as stated",
        ("distinct, fresh", "zcdp"): "holds",
        ("distinct, ladder", "zcdp"): "holds",
        ("distinct, fresh", "pure"): "holds",
    }
