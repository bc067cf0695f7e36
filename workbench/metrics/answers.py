"""How far answers to queries about a table are from the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from jaxtyping import Float

from workbench.estimates import Summary
from workbench.metrics.refusal import refuse_private
from workbench.table import SparseTable
from workbench.value import parameter, value
from workbench.workload import Ranges, Workload


def _answers(truth: SparseTable, estimate: Any, workload: Workload, options: dict):
    refuse_private(truth)
    if getattr(estimate, "domain", truth.domain) != truth.domain:
        names = (" × ".join(x.domain.attributes) for x in (estimate, truth))
        raise ValueError(
            "an estimate over {} has no error against a truth over {}".format(*names)
        )
    workload = workload.on(truth.domain)
    return truth.answer(workload), estimate.answer(workload, **options)


def rmse(answers: Float[np.ndarray, " queries"], exact: Float[np.ndarray, " queries"]) -> float:
    """The root of the mean squared error over queries, in counts."""
    return float(np.sqrt(((answers - exact) ** 2).mean()))


def coverage(
    answers: Float[np.ndarray, " queries"],
    errors: Float[np.ndarray, " queries"],
    exact: Float[np.ndarray, " queries"],
) -> float:
    """The fraction of queries whose exact answer lies within the error that is told of theirs."""
    return float((np.abs(answers - exact) <= errors).mean())


@value
class MeanAbsoluteError:
    """Mean over queries of |estimate − truth|, in counts."""

    workload: Workload
    weights: str = parameter("unbiased", choices=("unbiased", "raw"))

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """The error, in counts."""
        exact, answers = _answers(truth, estimate, self.workload, {"weights": self.weights})
        return float(np.abs(answers - exact).mean())


@value
class MedianRelativeError:
    """Median over queries of |estimate − truth| / truth; queries whose truth is 0 are left out."""

    workload: Workload
    weights: str = parameter("unbiased", choices=("unbiased", "raw"))

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """The error as a fraction; NaN if every query is empty."""
        exact, answers = _answers(truth, estimate, self.workload, {"weights": self.weights})
        some = exact > 0
        relative = np.abs(answers[some] - exact[some]) / exact[some]
        return float(np.median(relative)) if some.any() else float("nan")


@value
class MeanSignedError:
    """Mean over queries of estimate − truth, in counts: what is left is bias."""

    workload: Workload
    weights: str = parameter("unbiased", choices=("unbiased", "raw"))

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """The mean deviation, in counts."""
        exact, answers = _answers(truth, estimate, self.workload, {"weights": self.weights})
        return float((answers - exact).mean())


@value
class MeanSquaredError:
    """Mean over queries of (estimate − truth)², in counts²."""

    workload: Workload
    weights: str = parameter("unbiased", choices=("unbiased", "raw"))

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """The error, in counts²."""
        exact, answers = _answers(truth, estimate, self.workload, {"weights": self.weights})
        return float(((answers - exact) ** 2).mean())


@value
class SquaredError:
    """Sum over all cells of (estimate − truth)², in counts²: the error of a whole histogram."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """The error, in counts²; an estimate over another domain is a ValueError."""
        cells = np.arange(truth.domain.size)
        exact, answers = _answers(truth, estimate, Ranges(cells, cells + 1), {})
        return float(((answers - exact) ** 2).sum())


@value
class HeldCells:
    """The fraction of the truth's non-empty cells that the release names."""

    def __call__(self, truth: SparseTable, estimate: Any) -> float:
        """A fraction in [0, 1]; NaN for an empty table."""
        refuse_private(truth)
        if type(estimate) is not Summary:
            raise ValueError(f"{estimate!r} names no cells: HeldCells needs a Summary")
        held = np.isin(truth.keys, estimate.keys, assume_unique=True)
        return float(held.mean()) if len(held) else float("nan")
