"""What a plan will cost and how large its errors will be, before anything is spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from retrodp.engine.alternative import factor_facts, factor_notes
from retrodp.engine.amounts import protection_of
from retrodp.engine.compile import CompiledRelease, as_settled, compile_plan
from retrodp.engine.distinct import choice_notes
from retrodp.engine.files import require_plan
from retrodp.engine.linear_route import linear_facts, linear_notes
from retrodp.engine.online import notes as online_notes
from retrodp.engine.prospect import epochs_of, prospect_notes
from retrodp.engine.resolve import resolve
from retrodp.engine.revised import notes as revised_notes
from retrodp.engine.spending import norms_of
from retrodp.engine.states import keepers
from retrodp.mechanisms.contract import AnyMechanism, Stateful
from retrodp.mechanisms.sampled import Sampled
from retrodp.plan.epochs import epoch_of_series
from retrodp.plan.plan import Plan
from retrodp.plan.resolved import ResolvedPlan
from retrodp.privacy.accountant import delta_of, epsilon_of
from retrodp.privacy.budget import ApproxDP
from retrodp.privacy.conversion import epsilon_integer_orders
from retrodp.privacy.loss import PrivacyLoss, PureLoss
from retrodp.privacy.neighbours import group_guarantee, group_losses

UNITS = {
    "record": "one record: its addition and its deletion together",
    "operation": "one update: an addition or a deletion of one copy",
    "person_round": "all records that one person adds in one round",
    "person": "all records that one person adds in one round; the declared rounds are a group",
}


def check(plan: Plan) -> dict[str, Any]:
    """Everything that can be said about a plan without data; spends nothing.

    Returns:
        A JSON-able document: per release mechanism, factor (why, and what another would give, see
        `factor_facts`), scale, predicted errors, threshold and share; for the plan the whole cost,
        its parts, and what holds for which streams.
    """
    require_plan(plan)
    resolved = resolve(plan)
    return describe(plan, resolved)


def describe(plan: Plan, resolved: ResolvedPlan) -> dict[str, Any]:
    """The same from a plan that was resolved before."""
    running = plan.of_epoch(epoch_of_series(resolved))
    compiled = compile_plan(running, resolved)
    if "losses" in resolved.budget:  # of all epochs that there may be
        losses: list[PrivacyLoss] = list(norms_of(resolved.budget))
        if plan.privacy.model == "pure":
            losses = [PureLoss(epsilon=plan.privacy.epsilon)]
    else:
        losses = [loss for release in compiled for loss in release.mechanism.cost()]
    stream = running.stream
    epochs = epochs_of(plan)
    releases = [
        _release(release, entry)
        | factor_facts(running, as_settled(planned, entry), release)
        | linear_facts(running, resolved, release)
        for release, entry, planned in zip(compiled, resolved.releases, plan.releases, strict=True)
    ]
    return {
        "format": 1,
        "horizon": stream.horizon,
        "round": stream.round,
        "timezone": stream.timezone,
        "unit": stream.unit,
        "protects": UNITS[stream.unit],
        "fingerprint": resolved.fingerprint,
        "budget": _budget(plan, resolved, losses),
        **epochs,
        "releases": releases,
        "retroactivity": {release.name: release.mechanism.retroactive for release in compiled},
        "notes": _notes(plan, compiled, releases)
        + factor_notes(releases)
        + linear_notes(releases)
        + choice_notes(releases)
        + online_notes(releases)
        + prospect_notes(epochs.get("epochs", [])),
    }


def _budget(plan: Plan, resolved: ResolvedPlan, losses: list[PrivacyLoss]) -> dict[str, Any]:
    parts = {name: Fraction(text) for name, text in resolved.budget["delta_parts"].items()}
    delta = plan.privacy.delta or Fraction(0)
    statement: dict[str, Any] = {
        "model": plan.privacy.model,
        "epsilon": _number(plan.privacy.epsilon),
        "delta": _number(delta),
        "delta_parts": {name: float(part) for name, part in parts.items() if part},
        "rho": resolved.budget.get("rho"),
    }
    others = float(sum(part for name, part in parts.items() if name != "conversion"))
    if plan.privacy.model == "zcdp":
        statement["delta_spent"] = delta_of(losses, plan.privacy.epsilon) + others
        statement["epsilon_adaptive"] = epsilon_integer_orders(losses, parts["conversion"])
    else:
        statement["delta_spent"] = others
        statement["epsilon_adaptive"] = _number(plan.privacy.epsilon)
    statement["groups"] = [
        {"group": what, "units": size, **_group(plan, losses, size, has_threshold=others > 0)}
        for what, size in protection_of(plan).group_sizes
    ]
    return statement


def _group(
    plan: Plan, losses: list[PrivacyLoss], size: int, *, has_threshold: bool
) -> dict[str, float]:
    """Guarantee of several units at once; with thresholds by the general lemma alone."""
    epsilon, delta = plan.privacy.epsilon, plan.privacy.delta
    if delta is None:
        return {"epsilon": float(epsilon * size), "delta": 0.0}
    if size == 1:
        return {"epsilon": float(epsilon), "delta": float(delta)}
    if has_threshold:
        guarantee = group_guarantee(ApproxDP(epsilon, delta), size)
        return {"epsilon": guarantee.epsilon, "delta": guarantee.delta}
    return {"epsilon": epsilon_of(group_losses(losses, size), delta), "delta": float(delta)}


def _release(release: CompiledRelease, entry: Any) -> dict[str, Any]:
    facts = {
        "name": release.name,
        "kind": entry["kind"],
        "share": _number(Fraction(entry["share"])),
        "window": release.window,
        "retroactive": release.mechanism.retroactive,
        "adaptive": release.mechanism.adaptive,
        **release.mechanism.describe(),
    }
    if "threshold_delta" in entry:
        facts["threshold_delta"] = float(Fraction(entry["threshold_delta"]))
    return facts


def _notes(
    plan: Plan, compiled: tuple[CompiledRelease, ...], releases: Sequence[Mapping[str, Any]]
) -> list[str]:
    notes = [
        "When something is released is public: rounds close by the calendar, empty ones too.",
    ]
    mechanisms: list[AnyMechanism] = [release.mechanism for release in compiled]
    lasting = [own.name for own in mechanisms if isinstance(own, Sampled) and own.adaptive == "no"]
    if lasting:
        notes.append(
            f"The ranks of {', '.join(lasting)} last: what they buy is proved for streams that do not "
            "react to earlier releases, and not against whoever holds the key."
        )
    oblivious = [own for own in mechanisms if own.adaptive == "no" and own.name not in lasting]
    stateful = [own.name for own in oblivious if isinstance(own, Stateful)]
    if stateful:
        notes.append(
            f"The guarantee of {', '.join(stateful)} is proved for streams that do not react to "
            "earlier releases."
        )
    names = [own.name for own in oblivious if own.name not in stateful]
    if names:
        notes.append(
            f"The threshold of {', '.join(names)} is proved for streams that do not react to "
            "earlier releases."
        )
    notes += revised_notes(releases)
    notes += [line for facts in releases for line in _compiled_notes(facts)]
    keeping = keepers(mechanisms)
    if keeping:
        notes.append(
            f"{', '.join(keeping)}: not exactly retroactive. Deletions and forgets act on the records "
            "and on all other releases; this keeps their influence until the last round."
        )
    elif plan.stream.forgetting == "partial":
        notes.append('Every release forgets what is deleted: forgetting = "partial" is not needed.')
    if plan.stream.ids and plan.stream.unit == "record":
        notes.append("An id with q lives is protected by the group guarantee for q units.")
    return notes


def _compiled_notes(facts: Mapping[str, Any]) -> Iterator[str]:
    """What a sample spends and when its gate opens; how close masked answers are together."""
    name = facts["name"]
    if facts["kind"] == "sample":
        once = float(Fraction(facts["epsilon_once"]))
        gate = facts.get("gate_threshold")
        closed = (
            f", and none while the noisy number of live records is below {gate:,}" if gate else ""
        )
        yield f"{name}: one answer a round, which spends epsilon {once:.4g} on its sample{closed}."
    if "block_alpha" in facts:
        yield (
            f"{name}: any {facts['block']:,} answers together are within alpha "
            f"{facts['block_alpha']:.3g} and beta {facts['block_beta']:.3g} (the "
            f"paper's bounds: {facts['block_alpha_of_the_paper']:.3g} and "
            f"{facts['block_beta_of_the_paper']:.3g})."
        )


def _number(value: Fraction) -> float | int:
    return int(value) if value.denominator == 1 else float(value)
