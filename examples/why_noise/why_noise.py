"""Read secrets out of a daily count that forgets perfectly, then try the same on retrodp's.

    python examples/why_noise/why_noise.py [SEED]

Takes a few seconds. SEED is 32 hexadecimal digits; without it the run is the one in the README.
"""

from __future__ import annotations

import sys
from typing import NamedTuple

from retrodp.audit.coins import Seed
from retrodp.audit.reconstruct import Readout, Target, exact, noisy, released

PEOPLE, SETS = 64, 160
SEED = "000102030405060708090a0b0c0d0e0f"
FACE = {True: "#", False: "."}


class Attack(NamedTuple):
    """What one way to publish gave away."""

    title: str
    published: list[float]  # the first numbers
    right: list[bool]  # by person: whether her secret was told right


def ways() -> list[tuple[str, Target]]:
    rounds = 1 + 2 * SETS
    return [
        ("exact numbers, perfect forgetting", exact(rounds)),
        ("a little noise (1)", noisy(rounds, 1)),
        ("retrodp, epsilon 1", released(rounds, "zcdp", "fresh")),
    ]


def attacks(seed: Seed) -> list[Attack]:
    """The same secrets and the same updates, published in three ways."""
    stream = Readout.drawn(seed, PEOPLE, SETS)
    found = []
    for title, target in ways():
        answers = target.read(stream, seed.keys(stream.rounds, "why noise", title))
        right = stream.decoded(answers) == stream.secrets
        found.append(Attack(title, answers[:5].tolist(), right.tolist()))
    return found


def show(found: list[Attack]) -> None:
    print(f"{PEOPLE} people, one secret each: whether she is in the data.")
    print(f"An outsider adds {SETS} groups of known names, and has each of them forgotten again.")
    print("Everything is forgotten as asked. Published: how many different names there are.\n")
    for attack in found:
        numbers = ", ".join(f"{number:.0f}" for number in attack.published)
        print(f"{attack.title}: {numbers}, ...")
        print(f"  secrets told right  {''.join(FACE[one] for one in attack.right)}")
        share = sum(attack.right) / PEOPLE
        print(f"  {sum(attack.right)} of {PEOPLE}, {share:.0%}. A fair coin has 50%.\n")


def main(arguments: list[str]) -> None:
    if len(arguments) > 1:
        sys.exit(__doc__)
    show(attacks(Seed(arguments[0] if arguments else SEED)))


if __name__ == "__main__":
    main(sys.argv[1:])
