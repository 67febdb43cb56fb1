"""Why forgetting needs noise: the script tells it, and the README shows what it prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from retrodp.audit.coins import Seed
from tests.examples.scripts import EXAMPLES, commands, run, script

why: Any = script("why_noise", "why_noise")


def test_exact_numbers_and_a_little_noise_give_all_away_and_a_budget_does_not() -> None:
    exact, little, ours = why.attacks(Seed("0f" * 16))
    assert len(exact.right) == len(ours.right) == 64
    assert sum(exact.right) > 0.95 * 64
    assert sum(little.right) > 0.9 * 64
    assert 0.25 * 64 < sum(ours.right) < 0.75 * 64  # four deviations of a fair coin


def test_the_readme_shows_what_the_script_prints(tmp_path: Path) -> None:
    done = run(commands("why_noise"), tmp_path)
    assert done.returncode == 0, done.stderr
    # What a solver makes of pure noise is its own affair: the last two lines may differ.
    *told, _, _ = done.stdout.strip().splitlines()
    assert len(told) == 13
    page = (EXAMPLES / "why_noise" / "README.md").read_text(encoding="utf-8")
    assert "\n".join(told) in page
