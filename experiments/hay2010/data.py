"""Datasets for the figures of Hay et al. (2010) by name, synthetic sequences, and a mechanism that makes
several releases in one trial.

If the paper's own files are missing, synthetic stand-ins are used. For the keywords, the paper prints only
their number. The published file of NetTrace is sorted by count. So for ranges of addresses, the stand-in is a
second possible order of the cells. There are also real datasets of the same kind, which are left out if their
files are missing. The first is a shop's invoices by the hour, where a unit is a customer with up to ten
lines, so that l1 = 10. The others are degrees of coauthors (ca-GrQc), and the 20,000 most frequent surnames.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from workbench import Bound, Domain, SparseTable
from workbench.compiled import pd
from workbench.datasets import (
    KeywordFrequencies,
    KeywordFrequenciesTwin,
    NetTrace,
    NetTraceTwin,
    RetailHours,
    SearchLogs,
    SearchLogsTwin,
    SnapDegrees,
    SocialNetwork,
    SocialNetworkTwin,
    Surnames,
)
from workbench.datasets.kinds import GENERATOR
from workbench.estimates.release import Release
from workbench.figures import fields
from workbench.figures.figure import other_dataset
from workbench.inference import isotonic
from workbench.privacy import DP
from workbench.trials import first_available
from workbench.trials.claims import Finding, MissingPoints
from workbench.trials.metrics.answers import refuse_private
from workbench.value import parameter, value

SQUARED = "SquaredError"
NOISY = "S̃"
SORTED = "S̃ᵣ"
INFERRED = "S̄"
LEAVES = "L̃"
NOISY_TREE = "H̃"
TREE_NOT_ZEROED = "H̄ not zeroed"
TWIN = " twin"
_REAL = {
    "Social Network": SocialNetwork(),
    "coauthors": SnapDegrees(),
    "NetTrace": NetTrace(),
    "Search Logs": SearchLogs(),
    "keywords": KeywordFrequencies(),
    "surnames": Surnames(),
    "shop hours": RetailHours(),
}
_TWINS = {
    "Social Network": SocialNetworkTwin(),
    "NetTrace": NetTraceTwin(),
    "Search Logs": SearchLogsTwin(),
    "keywords": KeywordFrequenciesTwin(),
}
NAMES = (*_REAL, *(name + TWIN for name in _TWINS))


def datasets(*names: str) -> Any:
    """Return the declaration of a figure's parameter `data`, a list of datasets."""
    doc = "datasets (a stand-in if files are missing)"
    return fields.datasets(names, NAMES, doc)


def at_hand(names: Sequence[str], in_order: bool = False) -> dict[str, Any]:
    """Return the available datasets, by the names of their panels. If the file of a dataset is missing, its
    synthetic stand-in is used, if there is one.

    You can also name a stand-in directly. If `in_order` is True, the order of the counts matters. In this
    case, a file that is sorted by count comes with its stand-in. If no dataset is available, a
    FileNotFoundError names the file that the first dataset needs.
    """
    tables = {}
    for name in names:
        if name not in NAMES:
            tables[name] = other_dataset(name)
            continue
        kind = name.removesuffix(TWIN)
        real = _REAL[kind] if name == kind else None
        candidates = [x for x in (real, _TWINS.get(kind)) if x is not None]
        dataset = first_available(*candidates)
        if dataset is not None:
            tables[kind if dataset is real else kind + TWIN] = dataset
        if in_order and kind in _TWINS and dataset is real and dataset.is_sorted():
            tables[kind + TWIN] = _TWINS[kind]
    if not tables:
        _REAL[names[0]].load()
    return tables


class _MadeUp:
    """Base class of synthetic datasets with public counts over one attribute."""

    kind: ClassVar[str] = GENERATOR
    truth_public: ClassVar[bool] = True
    attribute: ClassVar[str] = "rank"
    cells: int

    @property
    def domain(self) -> Domain:
        """Domain with one attribute."""
        return Domain((self.attribute,), (self.cells,))

    def load(self) -> SparseTable:
        """Return the table. It is the same for the same parameters."""
        return SparseTable.from_dense(self.domain, self.counts(), Bound(1), truth_public=True)


@value
class RunOfCounts(_MadeUp):
    """Synthetic counts: `length` equal counts, one count that is larger by `gap`, and `rest` counts that are
    larger by `gap` again.
    """

    length: int = parameter(low=1, integer=True)
    count: int = parameter(low=1, integer=True)
    gap: int = parameter(low=1, integer=True)
    rest: int = parameter(low=1, integer=True)

    @property
    def cells(self) -> int:
        """Number of counts."""
        return self.length + 1 + self.rest

    def counts(self) -> np.ndarray:
        """Return the counts in ascending order."""
        counts = self.count + self.gap * np.arange(3)
        return np.repeat(counts, (self.length, 1, self.rest))


@value
class EqualSteps(_MadeUp):
    """Synthetic counts: `cells` counts with `distinct` values, which are equally frequent and `step` apart."""

    cells: int = parameter(low=1, integer=True)
    distinct: int = parameter(low=1, integer=True)
    step: int = parameter(low=1, integer=True)

    def counts(self) -> np.ndarray:
        """Return the counts in ascending order."""
        return self.step * (1 + np.arange(self.cells) * self.distinct // self.cells)


@value
class PoissonCounts(_MadeUp):
    """Synthetic counts: `cells` independent Poisson counts with the given mean."""

    attribute = "x"
    cells: int = parameter(low=1, integer=True)
    mean: float = parameter(low=0)

    def counts(self) -> np.ndarray:
        """Return the counts, which are not sorted."""
        return np.random.default_rng(self.cells).poisson(self.mean, self.cells)


@value
class Waves(_MadeUp):
    """Synthetic counts: about `records` records in two waves over the cells."""

    attribute = "x"
    cells: int = parameter(low=1, integer=True)
    records: int = parameter(low=1, integer=True)

    def counts(self) -> np.ndarray:
        """Return the counts. At a crest, they are about three times as large as in a trough."""
        x = np.arange(self.cells) / self.cells
        shape = 2.2 + np.sin(2 * np.pi * 2 * x) + np.sin(2 * np.pi * 13 * x)
        ends = np.rint(self.records * np.cumsum(shape) / shape.sum()).astype(np.int64)
        return np.diff(ends, prepend=0)


@value
class Samples:
    """Mechanism that makes several releases with an inner mechanism, so that a metric can average over them."""

    mechanism: Any
    releases: int = parameter(low=1, integer=True)

    @property
    def budget(self) -> DP:
        """Budget of each of the releases."""
        return self.mechanism.budget

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Return one release, whose estimate is a tuple with the estimates of all releases."""
        releases = [self.mechanism(table, rng) for _ in range(self.releases)]
        ledger = tuple(receipt for release in releases for receipt in release.ledger)
        estimates = tuple(release.estimate for release in releases)
        return Release(estimates, ledger, self, table.bound)


@value
class PositionErrors:
    """Metric: squared errors by position, for the noisy sequence S̃ and for the isotonic sequence S̄ that is
    computed from S̃. It averages over the releases of `Samples`.

    The column `estimate` is S̃ or S̄. `rank` is the position, counted from 1, of a count that is not 0.
    `count` is the true count, and `sample` is the estimate in the first release. `unchanged` is the share of
    releases in which S̄ equals S̃ at this position. `value` is the mean squared error.
    """

    def __call__(self, truth: SparseTable, estimates: Sequence[Any]) -> pd.DataFrame:
        """Return the errors, with one row per position and estimate."""
        refuse_private(truth)
        count = truth.dense()
        noisy = np.array([estimate.values for estimate in estimates])
        inferred = np.array([isotonic(values) for values in noisy])
        unchanged = np.isclose(noisy, inferred, atol=1e-9).mean(axis=0)
        about = {"rank": np.arange(1, len(count) + 1), "count": count, "unchanged": unchanged}
        frames = []
        for name, values in ((NOISY, noisy), (INFERRED, inferred)):
            own = {"sample": values[0], "value": ((values - count) ** 2).mean(axis=0)}
            rows = pd.DataFrame(about | own)[count > 0]
            frames.append(rows.assign(estimate=name, metric=SQUARED))
        return pd.concat(frames)


# Rows of one dataset, and any two sets of rows compared seed by seed.


def panel_of(rows: pd.DataFrame, name: str, suffix: str = "") -> pd.DataFrame:
    """Return the results on a dataset, or on its synthetic stand-in if there are no others."""
    for panel in (name + suffix, name + TWIN + suffix):
        own = rows[rows.panel == panel]
        if len(own):
            return own
    raise MissingPoints(f"no rows of {name}")


def attributes(rows: pd.DataFrame, tables: Iterable[Any], *names: str) -> dict[str, pd.Series]:
    """Return columns with the given attributes of the datasets to which the rows belong."""
    made = {repr(table): table for table in tables}
    return {
        name: rows.dataset.map({k: getattr(x, name) for k, x in made.items()}) for name in names
    }


def ratios_by_seed(
    rows: pd.DataFrame, ours: str, other: str, by: str | Sequence[str]
) -> pd.DataFrame:
    """Return the values of one curve divided by those of another, with one row per seed and point."""
    by = [by] if isinstance(by, str) else [*by]
    series = rows.pivot_table(index=[*by, "seed"], columns="series", values="value")
    return (series[ours] / series[other]).dropna().rename("value").reset_index()


def beside(finding: Finding, words: str) -> Finding:
    """Return the finding with an additional text about measured values that are not tested."""
    return replace(finding, measured=f"{finding.measured}; beside it: {words}")
