"""The privacy statement of a store, for machines: a registry's entry, and what no registry asks for.

Promise: made of the resolved plan and of which rounds are published; needs no key and holds no
published number and nothing exact. Every bound of a loss is rounded up.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, Literal

import msgspec

from retrodp.views import budget as budget_view
from retrodp.views import words
from retrodp.views.figures import at_most
from retrodp.views.published import Published
from retrodp.views.registry import (
    About,
    Administrative,
    Article,
    Basic,
    Closed,
    Curator,
    Deployment,
    DeploymentModel,
    DpVariant,
    Evidence,
    Implementation,
    Parameters,
    PrivacyLoss,
    Record,
    Variant,
)
from retrodp.views.report import promises

METHOD = "Kaplan, Kohen, Mansour, Nissim, Stemmer (2026), arXiv:2609.05329"
POST_PROCESSING: Mapping[str, str] = {
    "mean": "ratio of a noisy sum and a noisy count",
    "quantiles": "noisy counts of nested ranges, made consistent",
    "cdf": "noisy counts of nested ranges, made consistent and monotone",
    "range": "noisy counts of nested ranges, made consistent",
    "cube": "noisy tables, made consistent with one another",
    "gram": "covariances and means of noisy moments",
    "kmeans": "centres computed from noisy cells",
    "kmedian": "centres computed from noisy cells",
    "distinct": "counts of noisy buckets, debiased",
    "second_moment": "noisy sketches, squared and combined",
    "heavy_hitters": "names decoded from noisy sketches",
}
"""By kind, what is done to noisy numbers; what is not listed is rounded alone."""

_LEVELS = {
    "record": "Record-level",
    "operation": "Update-level",
    "person_round": "Person-{round}-level",
    "person": "Person-{round}-level",
}
_ROUNDS = {"1h": "hour", "1d": "day", "1w": "week", "1mo": "month"}


class Rounds(Closed, frozen=True, kw_only=True):
    """What is published of the plan."""

    length: str
    timezone: str
    horizon: int
    published: int
    first_begins: str
    horizon_ends: str
    missing: list[list[int]]
    late: list[int] | None


class Promise(Closed, frozen=True, kw_only=True):
    """What becomes of a deleted record in a release."""

    release: str
    kind: str
    means: str
    retroactive: str
    retroactive_means: str


class Noise(Closed, frozen=True, kw_only=True):
    """How a release is made private."""

    release: str
    law: str
    factor: str
    share: str
    scale: str | None
    sensitivity: str | None
    step: str
    threshold: str | None
    post_processing: str


class Store(Closed, frozen=True, kw_only=True):
    """What this package knows beside the registry's fields."""

    store: str
    test: bool
    fingerprint: str
    implementation: str
    method: str
    protects: str
    neighbours: str
    epoch: int
    earlier_stores: int
    delta_parts: dict[str, str]
    rounds: Rounds
    retroactivity: list[Promise]
    mechanisms: list[Noise]


class Statement(Closed, frozen=True, kw_only=True):
    """The whole document; its JSON Schema is docs/schemas/statement.schema.json."""

    format: Literal[1] = 1
    registry: Annotated[
        Record, msgspec.Meta(description="An entry in the form of the public registry.")
    ]
    retrodp: Annotated[Store, msgspec.Meta(description="What no registry asks for.")]
    to_fill_in: Annotated[
        list[str], msgspec.Meta(description="Keys of the TOML file that are still empty.")
    ]


def document(
    published: Published, about: About | None = None, *, now: int | None = None
) -> dict[str, Any]:
    """The statement as a JSON document.

    Args:
        published: The store.
        about: What only the publisher can say.
        now: Microseconds UTC; if given, late rounds are named.
    """
    said = about or About()
    budget = budget_view.document(published.resolved, published.epoch)
    statement = Statement(
        registry=_record(published, budget, said),
        retrodp=_store(published, budget, now),
        to_fill_in=said.to_fill_in,
    )
    found: dict[str, Any] = msgspec.to_builtins(statement)
    return found


def schema() -> dict[str, Any]:
    """The JSON Schema of `document`."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **msgspec.json.schema(Statement),
    }


def _record(published: Published, budget: Mapping[str, Any], about: About) -> Record:
    stream = published.resolved.plan["stream"]
    first_end = published.end(1).date().isoformat()
    return Record(
        url_slug=re.sub(r"[^a-z0-9]+", "-", about.name.lower()).strip("-"),
        deployment=Deployment(
            basic=Basic(
                name=about.name,
                data_curators=[
                    Curator(data_curator_name=name, data_curator_type=about.curator_type)
                    for name in about.curators
                ],
                description=about.description,
                intended_use=about.intended_use,
                data_product_region=about.region,
                data_product_sector=about.sector,
                publication_date=about.publication_date or first_end,
            ),
            dp_variant=DpVariant(
                variant_name=_variant(budget),
                data_domain=_domain(published.resolved.plan),
                unprotected_quantities=_unprotected(published.resolved.plan),
            ),
            privacy_loss=_loss(budget, stream, promises.adaptive(published, budget)),
            deployment_model=_model(published, about),
            implementation=_implementation(budget, about),
            administrative=Administrative(
                evidence_sources={
                    f"source_{number}": Evidence(
                        evidence_source_type=own.type, article=Article(title=own.title, url=own.url)
                    )
                    for number, own in enumerate(about.sources, start=1)
                },
                registry_authors=about.authors,
                tier=about.tier,
            ),
        ),
    )


def _variant(budget: Mapping[str, Any]) -> Variant:
    """The strictest of the registry's names that holds for all of it."""
    beside = [part for name, part in budget["delta_parts"].items() if name != "conversion"]
    if any(part != "0" for part in beside):
        return "Approximate DP"  # thresholds and the like spend a delta that no rho covers
    if budget["model"] == "pure":
        return "Pure DP"
    return "Zero-concentrated DP"


def _domain(plan: Mapping[str, Any]) -> str:
    columns = ", ".join(_column(own) for own in plan["columns"] if "type" in own)
    return (
        f"All finite streams of additions, deletions and replacements of records with the columns {columns}, "
        "over the rounds of the plan."
    )


def _column(own: Mapping[str, Any]) -> str:
    bounds = f" from {_number(own['min'])} to {_number(own['max'])}" if "min" in own else ""
    return f"{own['name']} ({own['type']}{bounds})"


def _number(text: str) -> str:
    return f"{float(Fraction(text)):g}"


def _unprotected(plan: Mapping[str, Any]) -> str:
    said = (
        "None computed from data. Public by choice are the plan (columns, bounds, listed categories, "
        "budget, calendar) and which rounds were published when."
    )
    if plan["stream"]["unit"] == "person":
        said += " The number of rounds in which a person is active is declared, not enforced."
    return said


def _level(stream: Mapping[str, Any]) -> str:
    length = str(stream["round"])
    return _LEVELS[stream["unit"]].format(round=_ROUNDS.get(length, f"({length})"))


def _loss(budget: Mapping[str, Any], stream: Mapping[str, Any], adaptive: str) -> PrivacyLoss:
    total = {name: Fraction(text) for name, text in budget["all"]["exact_total"].items()}
    delta = float(at_most(total["delta"]))
    return PrivacyLoss(
        privacy_unit=_level(stream),
        privacy_unit_details=f"Neighbouring streams differ in {words.unit(stream)}.",
        number_of_privacy_units=1,
        privacy_parameters=Parameters(
            epsilon=float(at_most(total["epsilon"])),
            delta=delta or None,
            rho=float(budget["rho"]) if "rho" in budget else None,
        ),
        privacy_parameters_details=(
            f"{budget_view.sentence(budget)} {adaptive} Losses are rounded up. Noise is pseudo-random under a "
            "secret key, so that the guarantee is computational."
        ),
    )


def _model(published: Published, about: About) -> DeploymentModel:
    every = words.spelled_out(str(published.resolved.plan["stream"]["round"]))
    return DeploymentModel(
        model_name_details=(
            "The curator holds surviving records and a key from which noise is derived; only noisy "
            "numbers are published."
        ),
        trust_assumptions=about.trust_assumptions,
        actors=about.actors,
        release_type_details=(
            f"One release of all numbers every {every}, {published.horizon:,} rounds. The "
            "budget is for all of them together and was fixed in advance; it is never refreshed."
        ),
        data_source_type_details=(
            "Records are added, corrected and deleted every round; a deletion acts on all later "
            "releases as `retroactivity` says."
        ),
        access_type_details="What is published follows from the plan; nobody asks queries.",
    )


def _implementation(budget: Mapping[str, Any], about: About) -> Implementation:
    noises = [_noise(own) for own in budget["releases"]]
    mechanisms = "\n".join(
        f"- {own.release}: {own.law}, {own.factor}, step {own.step}"
        + (f", published from {own.threshold}" if own.threshold else "")
        for own in noises
    )
    processed = "\n".join(f"- {own.release}: {own.post_processing}" for own in noises)
    return Implementation(
        preprocessing_and_hyperparameter_tuning=about.preprocessing,
        mechanisms=(
            f"{mechanisms}\n- Library: {_version()}; method: {METHOD}\n"
            "- Floating point: noise is discrete and drawn exactly; published values are whole steps\n"
            "- Randomness: AES-256 under keys that are destroyed round by round"
        ),
        composition=(
            f"{budget_view.sentence(budget)} Shares: "
            + ", ".join(f"{own['release']} {own['share']}" for own in budget["releases"])
            + "."
        ),
        post_processing=processed,
        justification=about.justification,
        utility=about.utility,
        additional_information=about.additional_information,
    )


def _store(published: Published, budget: Mapping[str, Any], now: int | None) -> Store:
    return Store(
        store=published.store_id,
        test=published.is_test,
        fingerprint=published.fingerprint,
        implementation=_version(),
        method=METHOD,
        protects=budget["protects"],
        neighbours=f"Two streams that differ in {budget['protects']}.",
        epoch=published.epoch.number,
        earlier_stores=len(budget["all"]["earlier_stores"]),
        delta_parts=dict(budget["delta_parts"]),
        rounds=_rounds(published, now),
        retroactivity=[
            Promise(
                release=own["release"],
                kind=own["kind"],
                means=own["means"],
                retroactive=own["retroactive"],
                retroactive_means=own["retroactive_means"],
            )
            for own in budget["releases"]
        ],
        mechanisms=[_noise(own) for own in budget["releases"]],
    )


def _noise(own: Mapping[str, Any]) -> Noise:
    return Noise(
        release=own["release"],
        law=own["law"],
        factor=own["factor"],
        share=own["share"],
        scale=own.get("scale"),
        sensitivity=own.get("sensitivity"),
        step=own["step"],
        threshold=own.get("threshold"),
        post_processing=POST_PROCESSING.get(own["kind"], "rounded to the step"),
    )


def _rounds(published: Published, now: int | None) -> Rounds:
    stream = published.resolved.plan["stream"]
    at = published.boundaries[0] if now is None else now
    gaps = published.gaps(at)
    return Rounds(
        length=str(stream["round"]),
        timezone=published.timezone,
        horizon=published.horizon,
        published=published.last_round,
        first_begins=published.start_text(1),
        horizon_ends=published.end(published.horizon).isoformat(),
        missing=_pairs(gaps.missing),
        late=None if now is None or gaps.late is None else list(gaps.late),
    )


def _pairs(runs: Sequence[tuple[int, int]]) -> list[list[int]]:
    return [list(run) for run in runs]


def _version() -> str:
    return f"retrodp {importlib.metadata.version('retrodp')}"
