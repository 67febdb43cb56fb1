"""The form of the public registry of deployments, and what only the publisher can say.

Promise: `Record` has the names, the order and the choices of the registry's own template, so that an
entry can be handed in as it is (JSON is YAML). Knows no store.

Source: OpenDP, Differential Privacy Deployments Registry (opendp/deployments-registry-data,
tests/good_deployments/template.yaml and schemas/deployments-schema.yaml); Nanayakkara, Ghazi, Vadhan
2025 (arXiv 2509.13509); after Dwork, Kohli, Mulligan 2019.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from retrodp.errors import UsageError

Url = Annotated[str, msgspec.Meta(pattern="^https?://")]
Day = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Variant = Literal["Pure DP", "Approximate DP", "Zero-concentrated DP"]


class Closed(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A part of a document that has no other keys than these."""


class Curator(Closed, frozen=True, kw_only=True):
    """Who publishes."""

    data_curator_name: str
    data_curator_type: str = ""


class Basic(Closed, frozen=True, kw_only=True):
    """What the product is; tier 1."""

    name: str
    data_curators: list[Curator]
    description: str
    intended_use: str
    data_product_type: Literal["Summary statistics"] = "Summary statistics"
    data_product_region: str
    data_product_sector: str
    publication_date: Day


class DpVariant(Closed, frozen=True, kw_only=True):
    """Which definition of privacy holds, about which data."""

    variant_name: Variant
    data_domain: str
    unprotected_quantities: str


class Parameters(Closed, frozen=True, kw_only=True, omit_defaults=True):
    """Of the whole series, rounded up."""

    epsilon: float
    delta: float | None = None
    rho: float | None = None


class PrivacyLoss(Closed, frozen=True, kw_only=True):
    """How much is lost, and about what."""

    privacy_unit: str
    privacy_unit_details: str
    number_of_privacy_units: int
    privacy_parameters: Parameters
    privacy_parameters_details: str


class DeploymentModel(Closed, frozen=True, kw_only=True):
    """Who sees what, and how often."""

    model_name: Literal["Central"] = "Central"
    model_name_details: str
    trust_assumptions: str
    actors: str
    release_type: Literal["Many releases"] = "Many releases"
    release_type_details: str
    data_source_type: Literal["Dynamic"] = "Dynamic"
    data_source_type_details: str
    access_type: Literal["Non-interactive"] = "Non-interactive"
    access_type_details: str


class Implementation(Closed, frozen=True, kw_only=True):
    """How it was done; tier 3."""

    preprocessing_and_hyperparameter_tuning: str
    mechanisms: str
    composition: str
    post_processing: str
    justification: str
    utility: str
    additional_information: str


class Article(Closed, frozen=True, kw_only=True):
    """Where something is written."""

    title: str
    url: Url


class Evidence(Closed, frozen=True, kw_only=True):
    """One source."""

    evidence_source_type: str
    article: Article


class Administrative(Closed, frozen=True, kw_only=True):
    """About the entry itself."""

    evidence_sources: dict[str, Evidence]
    status: Literal["Draft"] = "Draft"
    registry_authors: list[str]
    tier: Literal[1, 2, 3]


class Deployment(Closed, frozen=True, kw_only=True):
    """One deployment."""

    basic: Basic
    dp_variant: DpVariant
    privacy_loss: PrivacyLoss
    deployment_model: DeploymentModel
    implementation: Implementation
    administrative: Administrative


class Record(Closed, frozen=True, kw_only=True):
    """One entry of the registry."""

    url_slug: str
    deployment: Deployment


class Source(Closed, frozen=True, kw_only=True):
    """`[[sources]]`."""

    title: str
    url: Url
    type: str = "Documentation"


class About(Closed, frozen=True, kw_only=True):
    """What no store knows; every key may be left out, and is then named as still to be filled in."""

    name: str = ""
    curators: list[str] = []
    curator_type: str = ""
    description: str = ""
    intended_use: str = ""
    region: str = ""
    sector: str = ""
    publication_date: Day | None = None
    trust_assumptions: str = ""
    actors: str = ""
    preprocessing: str = ""
    justification: str = ""
    utility: str = ""
    additional_information: str = ""
    authors: list[str] = []
    sources: list[Source] = []

    @property
    def to_fill_in(self) -> list[str]:
        """Keys that the registry asks for and that are empty, in the order of its tiers."""
        return [name for name in (*TIER_1, *TIER_3) if not getattr(self, name)]

    @property
    def tier(self) -> Literal[1, 2, 3]:
        """Highest tier of the registry whose fields are all there; 2 needs those of 1."""
        missing = self.to_fill_in
        if not missing:
            return 3
        return 1 if set(missing) & set(TIER_1) else 2


TIER_1 = ("name", "curators", "description", "intended_use", "region", "sector", "authors")
TIER_3 = ("trust_assumptions", "actors", "preprocessing", "justification", "utility", "sources")
"""The registry's tier 2 asks for nothing that the store does not know."""


def read_about(path: Path) -> About:
    """Read a TOML file.

    Raises:
        UsageError: It is no TOML, or has a key that is not one of `About` or a value of another type.
    """
    try:
        return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), About)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path} is not valid TOML: {error}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text.") from None
    except msgspec.ValidationError as error:
        raise UsageError(
            f"{path}: {error}.", expected=f"keys among {', '.join(About.__struct_fields__)}"
        ) from None
