"""The promise: units, losses, budgets and the accountant. Imports no other part of the package."""

from retrodp.privacy.accountant import delta_of, epsilon_of
from retrodp.privacy.budget import ApproxDP, Budget, PureDP, require_fit, shares_of, zCDP
from retrodp.privacy.calibrate import DeltaSplit, largest_rho, least_threshold, split_delta
from retrodp.privacy.conversion import (
    delta_of_rho,
    epsilon_integer_orders,
    epsilon_of_rho,
    rho_of,
)
from retrodp.privacy.loss import (
    GaussianLoss,
    GaussianNorm,
    PrivacyLoss,
    PureLoss,
    pure_epsilon,
    total_rho,
)
from retrodp.privacy.neighbours import (
    Guarantee,
    Protection,
    Unit,
    gaussian_losses,
    gaussian_norm,
    group_guarantee,
    group_losses,
    group_rho,
    worst_split_tail,
)

__all__ = [
    "ApproxDP",
    "Budget",
    "DeltaSplit",
    "GaussianLoss",
    "GaussianNorm",
    "Guarantee",
    "PrivacyLoss",
    "Protection",
    "PureDP",
    "PureLoss",
    "Unit",
    "delta_of",
    "delta_of_rho",
    "epsilon_integer_orders",
    "epsilon_of",
    "epsilon_of_rho",
    "gaussian_losses",
    "gaussian_norm",
    "group_guarantee",
    "group_losses",
    "group_rho",
    "largest_rho",
    "least_threshold",
    "pure_epsilon",
    "require_fit",
    "rho_of",
    "shares_of",
    "split_delta",
    "total_rho",
    "worst_split_tail",
    "zCDP",
]
