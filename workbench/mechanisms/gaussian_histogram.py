"""Gaussian histogram: discrete Gaussian noise on every cell of the domain, empty ones too.

Guarantee  ρ-zCDP per unit; all of ρ pays for the counts. What a unit moves of the nodes of a `transform`,
           in the l2 norm, is added up level by level.
Assumes    the table's bound; a domain that fits in `memory`.
Source     Canonne, Kamath & Steinke, NeurIPS 2020; proved in docs/accounting.md.
Differs    nothing.
Cost       time and memory O(domain size), whatever the data.
"""

from typing import Any

from workbench import noise
from workbench.mechanism import (
    ZCDP,
    gaussian_budget,
    memory_field,
    transform_field,
)
from workbench.mechanisms._full_table import FullTable
from workbench.transform import Dyadic, Haar
from workbench.value import value


@value
class GaussianHistogram(FullTable):
    """The full noisy table, with noise whose price is a ρ."""

    budget: ZCDP = gaussian_budget()
    memory: int = memory_field()
    transform: Dyadic | Haar | None = transform_field()
    cite = "canonne2020"
    title = "Gaussian histogram"
    series = "Gaussian"
    accepts_zcdp = True
    accepts_dp = False

    def _noisy(self, values: Any, block: Any, rng: Any) -> Any:
        return noise.gaussian(values, l2_squared=block.l2_squared, rho=block.rho, rng=rng)
