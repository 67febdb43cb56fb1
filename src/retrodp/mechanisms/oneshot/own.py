"""A user's own private function as a mechanism: ten lines of Python and a declaration.

Promise: the function is given values and coins, never ids, rounds or keys, and its answers are held
to the declared labels and range. That the declared guarantee is true is the author's word; the audit
can test it (`retrodp.audit`), nothing can prove it.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from retrodp import _check
from retrodp._check import exact
from retrodp.errors import PlanError
from retrodp.mechanisms.oneshot.contract import Values
from retrodp.noise.coins import Coins
from retrodp.privacy.sampling import OneShot

ExactNumber = int | float | str | Decimal | Fraction
Answers: TypeAlias = int | Sequence[int | None] | None
Function: TypeAlias = Callable[[list[Any], Coins], Answers]


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFunction:
    """A function with a declared guarantee; made by `private`.

    Attributes:
        function: Of (values, coins): a number in steps, or one a label, or None for no answer.
        guarantee: As declared.
        labels: Names of the numbers, sorted; None for a single number.
        step: Size of a step of the numbers.
        low: Public lower end of the numbers, in steps; lower ones are raised to it.
        high: Public upper end.
        source: SHA-256 of the source text of the module it was written in, hex.
    """

    function: Function
    guarantee: OneShot
    labels: tuple[str, ...] | None
    step: Fraction
    low: int
    high: int
    source: str

    def __call__(self, values: list[Any], coins: Coins) -> Answers:
        """The function as it was written."""
        return self.function(values, coins)

    def answer(self, sample: Sequence[Values], coins: Coins) -> Sequence[int | None]:
        """What the function says, held to the declared labels and range.

        An exception, or something else than whole numbers, is no answer: it must not stop a
        release, whose time is public. So a failure is one of the function's answers, and what
        makes it fail must be as private as the rest. Called by itself the function raises as usual.
        """
        values = [own[0] if len(own) == 1 else own for own in sample]
        nothing = [None] * (1 if self.labels is None else len(self.labels))
        try:
            said = self.function(values, coins)
        except (Exception, SystemExit):  # noqa: BLE001  what depends on data must not stop a release
            return nothing
        numbers = [said] if self.labels is None else said
        if not isinstance(numbers, list | tuple) or len(numbers) != len(nothing):
            return nothing
        return [min(max(own, self.low), self.high) if type(own) is int else None for own in numbers]

    @property
    def name(self) -> str:
        """module:function."""
        return f"{self.function.__module__}:{self.function.__name__}"

    def describe(self) -> dict[str, Any]:
        """Public facts."""
        facts: dict[str, Any] = {
            "mechanism": "a function of your own",
            "function": self.name,
            "source_sha256": self.source,
            "epsilon_once": str(self.guarantee.epsilon),
        }
        if self.guarantee.delta:
            facts["delta_once"] = str(self.guarantee.delta)
        return facts


def private(  # noqa: PLR0913  a declaration: every argument is a public promise
    *,
    epsilon: ExactNumber,
    low: int,
    high: int,
    delta: ExactNumber = 0,
    replace_epsilon: ExactNumber | None = None,
    step: ExactNumber = 1,
    answers: Sequence[str] | None = None,
) -> Callable[[Function], OwnFunction]:
    """Declare what a function of a sample promises, so that the compiler can run it.

    The function gets the sampled values (in grid steps; tuples if there are several columns), in an
    order that says nothing, and `Coins`. It must draw from these coins alone, keep nothing between
    calls, and answer any sample: also an empty one.

    Args:
        epsilon: For adding or removing one value.
        low: Public lower end of its answers, in steps.
        high: Public upper end.
        delta: For adding or removing one value.
        replace_epsilon: For replacing one value, where less than twice `epsilon`.
        step: Size of a step of its answers.
        answers: Labels, if it answers several numbers.

    Example:
        >>> @private(epsilon="1/2", low=0, high=100)
        ... def size(values, coins):
        ...     return len(values) + coins.laplace(Fraction(2))
    """
    if not (type(low) is int and type(high) is int and low < high):
        raise PlanError(f"low and high must be whole steps with low < high, got {low!r}, {high!r}.")
    size = exact("step", step)
    if not size > 0:
        raise PlanError(f"step must be above 0, got {step!r}.")
    if answers is not None:
        answers = _check.texts(answers=answers, expected="labels")
    labels = None if answers is None else tuple(sorted(answers, key=str.encode))
    if labels is not None and len(set(labels)) < max(1, len(labels)):
        raise PlanError("answers must be labels, each once.")
    if answers != labels:
        raise PlanError(
            "answers are published in the order of their UTF-8 bytes.",
            expected=", ".join(labels or ()),
        )
    guarantee = OneShot(
        epsilon=exact("epsilon", epsilon),
        delta=exact("delta", delta),
        replace_epsilon=None if replace_epsilon is None else exact("epsilon", replace_epsilon),
    )

    def declared(function: Function) -> OwnFunction:
        return OwnFunction(
            function=function,
            guarantee=guarantee,
            labels=labels,
            step=size,
            low=low,
            high=high,
            source=source_digest(function),
        )

    return declared


def source_digest(function: Function) -> str:
    """SHA-256 of the source text of the function's module, or of its code where there is no text."""
    module = inspect.getmodule(function)
    try:
        text = inspect.getsource(module if module is not None else function)
    except (OSError, TypeError):
        code = function.__code__
        text = f"{code.co_code.hex()} {code.co_consts!r} {code.co_names!r}"
    return hashlib.sha256(text.encode()).hexdigest()
