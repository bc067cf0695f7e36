"""Hay et al. 2010: datasets by name, sequences that are made up, and several releases as one trial.

The paper's own files are used where they are at hand, else twins stand in (of the keywords only their
number is printed); the published file of NetTrace is sorted by count, so that for ranges of addresses
its twin is another order of its cells. Beside them stand real datasets of the kind, which are left out
where they are not at hand: a shop's invoices by the hour, where a unit is a customer of up to ten lines,
so that l1 = 10; degrees of coauthors (ca-GrQc); the 20,000 most frequent surnames.
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
    """The parameter `data` of a figure of several datasets."""
    doc = "datasets (a stand-in if files are missing)"
    return fields.datasets(names, NAMES, doc)


def at_hand(names: Sequence[str], in_order: bool = False) -> dict[str, Any]:
    """Datasets by the names of their panels: for each the real one, or else its twin, if it has one.

    A twin can be asked for by its own name; where the order of the counts matters, `in_order`, it
    stands beside a file that is sorted by count. If there is nothing at all, a FileNotFoundError names
    the file that the first needs.
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
    """Public counts over one attribute."""

    kind: ClassVar[str] = GENERATOR
    truth_public: ClassVar[bool] = True
    attribute: ClassVar[str] = "rank"
    cells: int

    @property
    def domain(self) -> Domain:
        """One attribute."""
        return Domain((self.attribute,), (self.cells,))

    def load(self) -> SparseTable:
        """The table, the same for the same parameters."""
        return SparseTable.from_dense(self.domain, self.counts(), Bound(1), truth_public=True)


@value
class RunOfCounts(_MadeUp):
    """`length` equal counts, one that is `gap` larger, and `rest` that are `gap` larger again."""

    length: int = parameter(low=1, integer=True)
    count: int = parameter(low=1, integer=True)
    gap: int = parameter(low=1, integer=True)
    rest: int = parameter(low=1, integer=True)

    @property
    def cells(self) -> int:
        """How many counts."""
        return self.length + 1 + self.rest

    def counts(self) -> np.ndarray:
        """Ascending."""
        counts = self.count + self.gap * np.arange(3)
        return np.repeat(counts, (self.length, 1, self.rest))


@value
class EqualSteps(_MadeUp):
    """`cells` counts of `distinct` equally frequent values, `step` apart."""

    cells: int = parameter(low=1, integer=True)
    distinct: int = parameter(low=1, integer=True)
    step: int = parameter(low=1, integer=True)

    def counts(self) -> np.ndarray:
        """Ascending."""
        return self.step * (1 + np.arange(self.cells) * self.distinct // self.cells)


@value
class PoissonCounts(_MadeUp):
    """`cells` independent counts."""

    attribute = "x"
    cells: int = parameter(low=1, integer=True)
    mean: float = parameter(low=0)

    def counts(self) -> np.ndarray:
        """In no order."""
        return np.random.default_rng(self.cells).poisson(self.mean, self.cells)


@value
class Waves(_MadeUp):
    """About so many records in two waves over the cells."""

    attribute = "x"
    cells: int = parameter(low=1, integer=True)
    records: int = parameter(low=1, integer=True)

    def counts(self) -> np.ndarray:
        """Some three times as many at a crest as in a trough."""
        x = np.arange(self.cells) / self.cells
        shape = 2.2 + np.sin(2 * np.pi * 2 * x) + np.sin(2 * np.pi * 13 * x)
        ends = np.rint(self.records * np.cumsum(shape) / shape.sum()).astype(np.int64)
        return np.diff(ends, prepend=0)


@value
class Samples:
    """Releases of one mechanism, one after another, as one: what is measured is their average."""

    mechanism: Any
    releases: int = parameter(low=1, integer=True)

    @property
    def budget(self) -> DP:
        """That of each release."""
        return self.mechanism.budget

    def __call__(self, table: SparseTable, rng: np.random.Generator | None = None) -> Release:
        """Their estimates, a tuple."""
        releases = [self.mechanism(table, rng) for _ in range(self.releases)]
        ledger = tuple(receipt for release in releases for receipt in release.ledger)
        estimates = tuple(release.estimate for release in releases)
        return Release(estimates, ledger, self, table.bound)


@value
class PositionErrors:
    """Squared errors by position of S̃ and of the S̄ made of it, over `Samples` of S̃.

    The rows: `estimate`, which of the two; `rank`, from 1, of a position whose count is not 0; the true
    `count`; the `sample` that was drawn first; the share of samples where inference left S̃
    `unchanged`; `value`, the mean squared error.
    """

    def __call__(self, truth: SparseTable, estimates: Sequence[Any]) -> pd.DataFrame:
        """A row a position and estimate."""
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
    """The rows of a dataset's panel; of its twin's where there is no other."""
    for panel in (name + suffix, name + TWIN + suffix):
        own = rows[rows.panel == panel]
        if len(own):
            return own
    raise MissingPoints(f"no rows of {name}")


def attributes(rows: pd.DataFrame, tables: Iterable[Any], *names: str) -> dict[str, pd.Series]:
    """Columns with attributes of the datasets of rows."""
    made = {repr(table): table for table in tables}
    return {
        name: rows.dataset.map({k: getattr(x, name) for k, x in made.items()}) for name in names
    }


def ratios_by_seed(
    rows: pd.DataFrame, ours: str, other: str, by: str | Sequence[str]
) -> pd.DataFrame:
    """Rows whose value is one series over another, a row a seed and point."""
    by = [by] if isinstance(by, str) else [*by]
    series = rows.pivot_table(index=[*by, "seed"], columns="series", values="value")
    return (series[ours] / series[other]).dropna().rename("value").reset_index()


def beside(finding: Finding, words: str) -> Finding:
    """The same finding, with what is measured and not judged."""
    return replace(finding, measured=f"{finding.measured}; beside it: {words}")
