"""Summaries of a sparse table: which cells a filter and two samples keep, and how far off they are."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import pd
from workbench.data import Bound
from workbench.datasets import GaussianSparse
from workbench.estimates.release import Release
from workbench.figures.plots import Panel
from workbench.mechanisms import (
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
    ThresholdSampling,
)
from workbench.mechanisms.protocol import series_name
from workbench.owner.advice import CountModel, Option, predict_errors
from workbench.privacy import DP
from workbench.queries import Dyadic, RandomRanges, Ranges
from workbench.trials.metrics import MeanAbsoluteError
from workbench.value import counted, value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Setup, Values
from workbench.widgets.view import Setting

FILTER, THRESHOLD, PRIORITY = "filter", "threshold", "priority"
ERROR, WHOLE, NEAR = "error", "whole", "near"
PARTS = CELLS = 64
QUERIES = {False: 60, True: 400}  # of each size, roughly and exactly
QUERY_SEED = 1  # that of the data would place the queries on its cells
DRAWABLE = 10**7  # cells or records that a kernel loads while somebody drags
DENSE = "full table, expected"


@value
class Summaries:
    """Filter, threshold and priority sampling on made-up sparse data."""

    name: ClassVar[str] = "summaries"
    title: ClassVar[str] = "Summaries of a sparse table"
    words: ClassVar[str] = (
        "A table of m cells, most of them empty, is released without noise on every cell being "
        "written down. The filter keeps noisy counts of at least θ; sampling keeps them with chance "
        "count/τ; priority sampling keeps exactly as many as you ask for. For the others a size sets "
        "θ or τ: an empty table would release so many cells, and non-empty ones come on top."
    )
    noise_note: ClassVar[str] = (
        "Moving θ, τ or the size keeps the noise of every non-empty cell, and ε scales it (once its "
        "scale passes 250 counts it is drawn another way, and is other noise). Which empty cells "
        "survive is drawn anew from the same seed."
    )
    controls: ClassVar[tuple[Control, ...]] = (
        Control("summary", FILTER, (FILTER, THRESHOLD, PRIORITY), "choice"),
        Control("epsilon", 0.1, decades(0.01, 10), label="ε", doc="privacy loss"),
        Control(
            "by",
            "size",
            ("size", "cut"),
            "choice",
            label="chosen by",
            doc="the size wanted, or the cut θ or τ itself",
            when=({"summary": (FILTER, THRESHOLD)},),
        ),
        field_control(
            PrioritySampling,
            "size",
            100_000,
            decades(100, 10**6, whole=True),
            label="size",
            doc="cells to release: with priority all in all, else of an empty table, by θ or τ",
            when=({"summary": (PRIORITY,)}, {"by": ("size",)}),
        ),
        field_control(
            HighPassFilter,
            "theta",
            40.0,
            decades(1, 2000, zero=True),
            doc="cut-off of a filter; of a sample, before it is drawn",
            when=({"summary": (THRESHOLD, PRIORITY)}, {"by": ("cut",)}),
        ),
        field_control(
            ThresholdSampling,
            "tau",
            100.0,
            decades(1, 10_000),
            when=({"summary": (THRESHOLD,), "by": ("cut",)},),
        ),
        Control(
            "dyadic", False, kind="switch", doc="sums over dyadic intervals instead of cells"
        ),
        Control(
            "consistent",
            False,
            kind="switch",
            doc="drop nodes below absent ones",
            when=({"dyadic": (True,)},),
        ),
        field_control(
            GaussianSparse, "m", 10**6, decades(10**4, 10**7, whole=True), label="domain, m"
        ),
        field_control(GaussianSparse, "density", 0.1, decades(0.0001, 1.0)),
        field_control(GaussianSparse, "mean", 100.0, decades(2, 5000), label="mean count"),
        field_control(
            GaussianSparse, "std", 20.0, decades(0.5, 1000, zero=True), label="spread"
        ),
        field_control(GaussianSparse, "placement", "uniform"),
    )

    def setup(self, values: Values) -> Setup:
        """The settings as a mechanism on a table."""
        v = values
        table = GaussianSparse(v["m"], v["density"], v["mean"], v["std"], v["placement"])
        if table.m * table.density > DRAWABLE:
            raise ValueError(
                f"m = {table.m!r} is not allowed with density = {table.density!r}: need at most "
                f"{DRAWABLE:,} non-empty cells, m·density, to draw them here"
            )
        budget = DP(v["epsilon"])
        basis = dict(
            transform=Dyadic() if v["dyadic"] else None,
            consistent=v["consistent"] and v["dyadic"],
        )
        by_size = v["by"] == "size"
        if v["summary"] == FILTER:
            cut = dict(size=v["size"]) if by_size else dict(theta=v["theta"])
            return Setup(table, HighPassFilter(budget, **cut, **basis))
        if v["summary"] == THRESHOLD:
            cut = dict(size=v["size"]) if by_size else dict(tau=v["tau"])
            return Setup(table, ThresholdSampling(budget, theta=v["theta"], **cut, **basis))
        return Setup(table, PrioritySampling(budget, v["size"], v["theta"], **basis))

    def picture(
        self, setting: Setting, data: Any, release: Release, seed: int, exact: bool
    ) -> Picture:
        """Errors of ranges of all sizes; truth and release, over the domain and cell by cell."""
        domain = data.domain
        series = series_name(release.mechanism)
        frames = [_error_rows(series, data, release.estimate, exact)]
        edges = np.linspace(0, domain.size, min(PARTS, domain.size) + 1).astype(np.int64)
        parts = Ranges(edges[:-1], edges[1:])
        near = _cells_around_middle(data)
        cells = Ranges(near, near + 1)
        for panel, place, ranges in ((WHOLE, edges[:-1], parts), (NEAR, near - near[0], cells)):
            for name, source in (("truth", data), (series, release.estimate)):
                counts = source.answer(ranges)
                frames.append(
                    pd.DataFrame(
                        dict(panel=panel, series=name, metric="Count", cell=place, value=counts)
                    )
                )
        facts = [("non-empty cells", f"{len(data):,} of {domain.size:,}"), _cut(release, data)]
        if law := closed_form(setting.dataset, setting.mechanism, range_sizes(domain.size)):
            facts.append(("size expected", f"{law.cells:,.0f}, by closed form"))
        return Picture(pd.concat(frames, ignore_index=True), facts)

    def panels(self, setting: Setting, rows: pd.DataFrame) -> list[Panel]:
        """Error over size with what closed forms expect; the whole domain; some cells."""
        sizes = range_sizes(setting.dataset.m)
        full_table = GeometricHistogram(setting.mechanism.budget)
        theory = []
        for name, mechanism in (("expected", setting.mechanism), (DENSE, full_table)):
            if law := closed_form(setting.dataset, mechanism, sizes):
                theory.append((name, ExpectedErrors(law)))
        first = rows.seed.min()
        whole = dict(panel=WHOLE, seed=first)
        near = dict(panel=NEAR, seed=first)
        return [
            Panel(
                "Error of ranges",
                {"panel": ERROR},
                "query_size",
                theory=theory,
                fit_theory=True,
            ),
            Panel(f"The domain in {PARTS} parts", whole, "cell", log=""),
            Panel(f"{CELLS} neighbouring cells", near, "cell", log=""),
        ]


def _error_rows(series: str, data: Any, estimate: Any, exact: bool) -> pd.DataFrame:
    """Mean absolute errors of ranges of 1, 10, 100, … cells."""
    rows = []
    for size in range_sizes(data.domain.size):
        metric = MeanAbsoluteError(RandomRanges(size, QUERIES[exact], QUERY_SEED))
        rows.append(
            dict(
                panel=ERROR,
                series=series,
                query_size=size,
                metric="MeanAbsoluteError",
                value=metric(data, estimate),
            )
        )
    return pd.DataFrame(rows)


def _cells_around_middle(data: Any) -> np.ndarray:
    """Neighbouring cells around the middle one of those that are not empty."""
    size = data.domain.size
    middle = int(data.keys[len(data) // 2]) if len(data) else 0
    start = max(0, min(middle - CELLS // 2, size - CELLS))
    return np.arange(start, min(start + CELLS, size))


def range_sizes(m: int) -> tuple[int, ...]:
    """1, 10, 100, … up to a tenth of the domain.

    >>> range_sizes(10_000)
    (1, 10, 100, 1000)
    """
    return tuple(10**k for k in range(len(str(m)) - 1)) or (1,)


@lru_cache(256)
def closed_form(
    dataset: GaussianSparse, mechanism: Any, sizes: tuple[int, ...]
) -> Option | None:
    """What is expected of the mechanism, if cells are uniform and there is a formula."""
    if dataset.placement != "uniform":
        return None
    model = CountModel(dataset.density, max(dataset.mean, 0), dataset.std)
    try:
        return predict_errors(mechanism, dataset.domain, Bound(), model, sizes)
    except ValueError:
        return None


class ExpectedErrors:
    """Expected errors over range sizes: straight lines on logarithmic axes; none beyond them."""

    def __init__(self, option: Option):
        queries = np.array([error.query for error in option.query_errors], float)
        errors = np.array([max(error.error, 1e-9) for error in option.query_errors], float)
        self.log_sizes = np.log(queries)
        self.log_errors = np.log(errors)

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The error at ranges of x cells."""
        return np.exp(np.interp(np.log(x), self.log_sizes, self.log_errors, np.nan, np.nan))


def refuse_many(name: str, x: float, most: int = DRAWABLE) -> None:
    """A ValueError where a number that is typed makes more than can be drawn while one waits."""
    if x > most:
        raise ValueError(
            f"{name} = {x!r} is not allowed: need at most {most:,} to draw it here"
        )


def _cut(release: Release, data: Any) -> tuple[str, str]:
    """The θ or τ that was given, or chosen for a size."""
    mechanism: Any = release.mechanism
    if isinstance(mechanism, PrioritySampling):
        return "τ_s of the release", counted(release.estimate.tau, "count")
    name = "θ" if isinstance(mechanism, HighPassFilter) else "τ"
    cut = mechanism.threshold(data.domain, data.bound.l1)
    return f"{name} of the release", counted(cut, "count")
