"""Tour that shows how the accuracy of a release depends on ε. It is not a figure of a paper.

Words   The error falls as 1/ε if ten times the ε gives a tenth of the error, within a factor of 1.25.
"""

from __future__ import annotations

from typing import Any

from workbench import DP, RandomRanges, Sweep
from workbench.compiled import pd
from workbench.datasets import GaussianSparse
from workbench.figures import Figure
from workbench.figures.fields import epsilons, number, queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import GeometricHistogram, HighPassFilter, PrioritySampling
from workbench.trials.claims import ALIKE, Claim, Finding, check_between, paired_ratios
from workbench.trials.metrics import MeanAbsoluteError
from workbench.value import value

ERROR = "error"


def falls_as_one_over_epsilon(rows: pd.DataFrame, level: float) -> Finding:
    """Check whether ten times the ε gives a tenth of the error, within a factor of 1.25."""
    own = rows[rows.series == "geometric"]
    ratio = paired_ratios(
        own.assign(series=own.epsilon.map("{:g}".format)), "0.1", "1", "panel"
    )
    return check_between(ratio, level, 10 / ALIKE, 10 * ALIKE)


SAYS = "The error of the full noisy table falls as 1/ε."
CLAIMS = (Claim.of_one("tour-1", SAYS, falls_as_one_over_epsilon),)


@value
class Tour(Figure):
    """Errors of three mechanisms for several ε."""

    id = "00_tour"
    title = "A first private release, and what it costs in accuracy"
    page = "no paper"
    quick = {"seeds": 5}
    claims = CLAIMS
    usual = "the tour's setting"
    shown = ("epsilon",)

    m: int = whole(200_000, "number of all cells (m)", 1000, 10**12, unit="cells")
    density: float = number(0.05, "share of cells that are not empty", 0, 1, strict=True)
    epsilons: tuple[float, ...] = epsilons((0.1, 0.3, 1.0, 3.0))
    size: int = whole(10_000, "size of the summaries", unit="cells")
    query_size: int = whole(1000, "length of a queried range", unit="cells")
    queries: int = queries(200, "number of ranges")
    seeds: int = seeds(20)

    def dataset(self) -> GaussianSparse:
        """Return a synthetic table."""
        return GaussianSparse(m=self.m, density=self.density)

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs, as one sweep."""
        mechanisms: list[Any] = []
        for budget in map(DP, self.epsilons):
            mechanisms.append(GeometricHistogram(budget))
            mechanisms.append(HighPassFilter(budget, size=self.size))
            mechanisms.append(PrioritySampling(budget, size=self.size))
        metrics = [MeanAbsoluteError(RandomRanges(self.query_size, self.queries))]
        return {ERROR: Sweep([self.dataset()], mechanisms, metrics, self.seeds)}

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel with errors by ε."""
        return [Panel("", {"panel": ERROR}, "epsilon")]
