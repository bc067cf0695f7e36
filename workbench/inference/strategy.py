"""What a better set of questions is, and what it is expected to give."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from workbench.arrays import Float

L1 = "l1"
L2 = "l2"


@dataclass(frozen=True, eq=False)
class Strategy:
    """Queries to ask in place of a workload, and what that is expected to give.

    Parameters
    ----------
    queries : Workload
        What is asked; `kind` says in words what it is.
    kind : str
    squared_error : float
        The mean over the workload's queries of their expected squared error, for noise of variance 1 at
        sensitivity 1: multiply by the variance that noise of sensitivity 1 has.
    plain : float
        The same for the workload as it is.
    per_noise : float
        The same for noise of variance 1 on each of the strategy's own queries.
    bound : float
        What no strategy is below (the singular-value bound), NaN where it is not computed.
    line : int, optional
        The attribute of whose codes a tree is asked, which tells of each code.
    """

    queries: Any
    kind: str
    squared_error: float
    plain: float
    per_noise: float
    bound: float
    line: int | None = None

    @property
    def share(self) -> float:
        """The bound over the error: 1 where nothing better is possible."""
        return self.bound / self.squared_error

    def __str__(self) -> str:
        words = f"{self.kind}: expected squared error {self.plain / self.squared_error:.3g} times less"
        if np.isfinite(self.bound):
            words += f", {self.share:.0%} of the singular-value bound"
        return words


def sum_of_singular_values(gram: Float[np.ndarray, "n n"]) -> float:
    """Of W, from WᵀW or WWᵀ: its square, over cells and queries, bounds what any strategy reaches."""
    return float(np.sqrt(np.maximum(np.linalg.eigvalsh(gram), 0)).sum())
