"""Recalled: answers from a bank, how far they may be off, and what they were recalled by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from workbench.arrays import Float
from workbench.value import sealed

NOISE_ONLY = "noise only"


@dataclass(frozen=True, eq=False)
class Recalled:
    """Answers for nothing. It unpacks to two: `values, errors = session.recall(…)`.

    Parameters
    ----------
    values : float64[queries]
        In counts.
    errors : float64[queries] or None
        In counts, for ±2 of them to hold the truth; inf where the bank cannot tell. None if not wanted.
    by : str
        The method.
    why : str
        Why this one, and what the bars are made of: where answers were too few to learn how far a method
        is off beside the noise, the bars are of *noise only*.
    """

    values: Float[np.ndarray, " queries"]
    errors: Float[np.ndarray, " queries"] | None
    by: str
    why: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", sealed(np.asarray(self.values, float)))
        if self.errors is not None:
            errors = np.nan_to_num(np.asarray(self.errors, float), nan=inf, posinf=inf)
            object.__setattr__(self, "errors", sealed(errors))

    def __iter__(self) -> Iterator[Any]:
        return iter((self.values, self.errors))

    def __len__(self) -> int:
        return 2

    def __getitem__(self, i: int) -> Any:
        return (self.values, self.errors)[i]
