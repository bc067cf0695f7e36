"""A noisy bit array in which every cell's count is written in unary, at hashed places."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from workbench.arrays import UInt64
from workbench.domain import Domain
from workbench.estimates import hashes
from workbench.estimates.estimate import DOMAIN, Estimate, Stored, without_errors
from workbench.workload import Recipe, Workload


@dataclass(frozen=True, eq=False)
class Projection(Estimate):
    """Noisy bits, 64 a word (a power of two in all), and the parameters of a hash function a level.

    A cell whose count is worth y levels of `step` counts each had its bits of the first y levels set.
    Ranges and Subsets are answered, of which every cell is visited: the bits of a cell make a walk, +1
    for a set one and −1 for another; the mean place of the walk's maxima, in steps, is the cell's count.
    Standard errors have no closed form.
    """

    domain: Domain
    hash_parameters: UInt64[np.ndarray, "levels 3"]
    bits: UInt64[np.ndarray, " bits/64"]
    step: float
    kind: ClassVar[str] = "projection"
    contents: ClassVar[str] = "words of 64 bits"
    arrays: ClassVar = ("hash_parameters", "bits")
    stored: ClassVar = (
        Stored("step"),
        Stored(
            "hash_parameters", "words", hashes.to_hex, partial(hashes.from_hex, parameters=3)
        ),
        DOMAIN,
    )

    def __len__(self) -> int:
        return len(self.bits)

    def __repr__(self) -> str:
        levels = len(self.hash_parameters)
        return f"<Projection of {self._attribute_names}: {64 * len(self):,} bits, {levels:,} levels>"

    def _answer(self, workload: Recipe, error: bool) -> Any:
        queries: Workload = workload.on(self.domain)
        levels = len(self.hash_parameters)
        visited = hashes.visited_ranges(queries, self.domain, levels)
        answers = visited.sums(hashes.sum_levels, self.hash_parameters, self.bits) * self.step
        return without_errors(answers, error)

    def _columns(self) -> dict[str, Any]:
        """One row for 64 bits, which are those of `noisy`, lowest first."""
        return {"word": np.arange(len(self)), "noisy": self.bits}

    @classmethod
    def _from_columns(cls, table: Any, fields: dict[str, Any]) -> dict[str, Any]:
        words = len(table)
        if words.bit_count() != 1:  # the compiled loops look up whatever a hash function says
            raise ValueError(f"{words:,} words of bits are not allowed: need 1, 2, 4, 8, …")
        return {"bits": table["noisy"].to_numpy()}
