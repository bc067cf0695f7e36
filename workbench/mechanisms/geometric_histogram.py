"""Geometric histogram: two-sided geometric noise on every cell of the domain, empty ones too.

Guarantee  ε-DP per unit; all of ε pays for the counts. A count that moves by one moves ⌈log₂m⌉ + 1
           nodes of a `transform`, which share ε.
Assumes    the table's bound; a domain that fits in `memory`.
Source     Ghosh, Roughgarden & Sundararajan, STOC 2009; the baseline M' of Cormode et al.,
           ICDT 2012, section 2.1.
Differs    nothing.
Cost       time and memory O(domain size), whatever the data: the laborious baseline.
"""

from typing import Any

from workbench import noise
from workbench.mechanism import memory_field, pure_budget, transform_field
from workbench.mechanisms._full_table import FullTable
from workbench.privacy import DP
from workbench.transform import Dyadic, Haar
from workbench.value import value


@value
class GeometricHistogram(FullTable):
    """The full noisy table that every compact summary is measured against."""

    budget: DP = pure_budget(refused="which GaussianHistogram spends")
    memory: int = memory_field()
    transform: Dyadic | Haar | None = transform_field()
    cite = "ghosh2009"
    title = "geometric histogram"
    series = "geometric"

    def _noisy(self, values: Any, block: Any, rng: Any) -> Any:
        return noise.geometric(
            values, l1=block.l1, epsilon=block.epsilon, linf=block.linf, rng=rng
        )
