"""Tour that shows when zero-concentrated differential privacy (zCDP, with a budget ρ) gives smaller errors
than pure ε, and when it does not. It is not a figure of a paper.

Words   An error is the standard deviation of the noise on one number. A unit touches a number if it can
        change this number. Pure noise is geometric noise for an ε. Gaussian noise is for the largest ρ within
        (ε, δ).
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from workbench import DP, ZCDP, Bound, Domain, Dyadic, Haar, SparseTable, guarantee
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.fields import epsilon, number, whole
from workbench.figures.plots import Panel
from workbench.mechanisms import HighPassFilter
from workbench.mechanisms.protocol import law_within
from workbench.noise.law import Law
from workbench.queries import basis_of
from workbench.trials.claims import Claim, Finding
from workbench.value import format_number, value

UNIT = Bound()
PURE = "geometric, ε added up"
BY_RHO = "geometric, ρ of its structure"
GAUSSIAN = "Gaussian, ρ"
SUMMARIES = {
    "cells": (Domain(("cell",), (2**24,)), None),
    "Haar": (Domain(("cell",), (2**24,)), Haar()),
    "dyadic": (Domain(("cell",), (2**24,)), Dyadic()),
    "dyadic in two dimensions": (Domain(("x", "y"), (2**12, 2**12)), Dyadic(2)),
}


def many_looks(rows: pd.DataFrame, level: float) -> Finding:
    """Check whether, for the largest number of releases, Gaussian noise has at most a ninth of the error of
    pure noise. Errors follow from formulas.
    """
    looks = rows[rows.panel == "looks"]
    last = looks[looks["at"] == looks["at"].max()].set_index("series").value
    ratio = last[PURE] / last[GAUSSIAN]
    return Finding(
        bool(ratio >= 9),
        f"{format_number(ratio)} times less at {int(looks['at'].max())} releases",
    )


def low_thresholds(rows: pd.DataFrame, level: float) -> Finding:
    """Check whether the threshold for a dyadic tree is less than half as high with Gaussian noise. Thresholds
    follow from formulas.
    """
    of_trees = rows[(rows.panel == "thresholds") & (rows.summary == "dyadic")]
    cut = of_trees.set_index("series").value
    measured = f"{int(cut[PURE])} → {int(cut[GAUSSIAN])}"
    return Finding(bool(2 * cut[GAUSSIAN] < cut[PURE]), measured)


def pure_wins(rows: pd.DataFrame, level: float) -> Finding:
    """Check whether pure noise has the smaller error if a unit touches few numbers, and Gaussian noise if it
    touches many.
    """
    lines = rows[rows.panel == "touched"].pivot_table("value", "at", "series")
    better = lines.index[lines[PURE] <= lines[GAUSSIAN]]
    worse = lines.index[lines[PURE] > lines[GAUSSIAN]]
    holds = len(better) > 0 and len(worse) > 0 and better.max() < worse.min()
    return Finding(bool(holds), f"pure wins up to {int(better.max())} numbers")


CLAIMS = (
    Claim.of_one("accounting-1", "Many looks err some ten times less under a ρ.", many_looks),
    Claim.of_one(
        "accounting-2",
        "A threshold that lets as many empty nodes pass is less than half as high.",
        low_thresholds,
    ),
    Claim.of_one(
        "accounting-3", "Where a unit touches few numbers, pure noise errs less.", pure_wins
    ),
)


@value
class Accounting(Figure):
    """Errors for one budget, spent on pure noise or on Gaussian noise."""

    id = "04_accounting"
    title = "What one budget buys: ε added up, and ρ"
    page = "no paper"
    claims = CLAIMS

    epsilon: float = epsilon(1.0, "ε of all releases together")
    delta: float = number(1e-9, "δ at which ρ becomes an ε", 1e-15, 0.1)
    releases: tuple[int, ...] = whole((1, 2, 4, 8, 16, 32, 64), "numbers of releases")
    touched: tuple[int, ...] = whole(
        (1, 2, 4, 8, 12, 16, 17, 20, 25, 30, 40, 50), "number of counts that a unit changes"
    )
    size: int = whole(1000, "number of empty nodes that pass a threshold")

    @property
    def pure(self) -> DP:
        """Budget for pure noise."""
        return DP(self.epsilon)

    @property
    def budget(self) -> ZCDP:
        """Largest ρ within (ε, δ), the budget for Gaussian noise."""
        return ZCDP.within(DP(self.epsilon, self.delta))

    def errors_of_looks(self, count: float) -> dict[str, float]:
        """Return the variance of the noise on one node, for each kind of noise, if `count` dyadic trees over
        2²⁴ cells are released.
        """
        levels = 25
        rho = self.budget.rho / count
        # the ρ of a structure is levels·a·tanh(a/2), nearly levels·a²/2
        decay = _root(lambda a: levels * a * np.tanh(a / 2) - rho)
        return {
            PURE: Law("geometric", self.epsilon / count / levels).variance,
            BY_RHO: Law("geometric", decay).variance,
            GAUSSIAN: Law("gaussian", rho / levels).variance,
        }

    def spend(self, count: int) -> tuple[DP, list]:
        """Release `count` filtered trees of synthetic counts. Return the guarantee of all releases together,
        and the releases.
        """
        domain, _ = SUMMARIES["dyadic"]
        rng = np.random.default_rng(0)
        keys = rng.choice(domain.size, 300)
        table = SparseTable.from_keys(domain, keys, rng.poisson(4000, 300), UNIT)
        each = ZCDP(self.budget.rho / count * (1 - 1e-12))
        mechanism = HighPassFilter(each, size=self.size, transform=Dyadic())
        releases = [mechanism(table, rng) for _ in range(count)]
        ledger = [receipt for release in releases for receipt in release.ledger]
        return guarantee(ledger, self.delta), releases

    def threshold_rows(self) -> list[dict]:
        """Return the thresholds θ for which `size` empty nodes are expected to pass the filter."""
        rows = []
        for name, (domain, transform) in SUMMARIES.items():
            for series, budget in ((PURE, self.pure), (GAUSSIAN, self.budget)):
                filter_ = HighPassFilter(budget, size=self.size, transform=transform)
                law = law_within(basis_of(transform, domain), UNIT, budget)
                own = {"series": series, "summary": name}
                theta = filter_.threshold(domain, UNIT)
                rows.append(own | {"panel": "thresholds", "value": theta, "law": repr(law)})
        return rows

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results: errors by the number of releases, errors by the number of touched
        numbers, and thresholds by summary.
        """
        rows = self.threshold_rows()
        for count in self.releases:
            for series, variance in self.errors_of_looks(count).items():
                own = {"panel": "looks", "at": count, "series": series}
                rows.append(own | {"value": sqrt(variance)})
        for count in self.touched:
            pure = Law("geometric", self.epsilon / count)
            gaussian = Law("gaussian", self.budget.rho / count)
            for series, law in ((PURE, pure), (GAUSSIAN, gaussian)):
                own = {"panel": "touched", "at": count, "series": series}
                rows.append(own | {"value": sqrt(law.variance)})
        frame = pd.DataFrame(rows)
        metric = np.where(frame.panel == "thresholds", "Threshold", "Error")
        return frame.assign(metric=metric, dataset="none", truth_public=True, seed=0)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return two panels: errors by the number of releases, and errors by the number of numbers that a
        unit touches.
        """
        return [
            Panel("Releases of one tree", {"panel": "looks"}, "at", log="xy"),
            Panel("Numbers that a unit touches", {"panel": "touched"}, "at"),
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table of thresholds, with one row per summary."""
        cuts = rows[rows.panel == "thresholds"]
        return cuts.pivot_table("value", "summary", "series", sort=False)


def _root(increasing, low: float = 1e-12, high: float = 100.0) -> float:
    for _ in range(200):
        middle = sqrt(low * high)
        if increasing(middle) < 0:
            low = middle
        else:
            high = middle
    return low
