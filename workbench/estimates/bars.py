"""How far answers may be off, in two parts that are never merged: noise, and cells that are absent.

The noise of a released cell has its law's standard deviation. A cell that was not released is *absent*: its
noisy value lay below the cut, so that its count is at most the cut and three standard deviations more,
but for one such cell in some hundred. What an empty cell adds when its noise lets it pass is noise too: by
its variance, and where only positive values pass by its mean.
"""

from __future__ import annotations

from math import ceil, isnan
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Float
from workbench.wording import format_number, number

_SHOWN = 10
BELIEFS = {"empty": "if absent cells are empty (believed)"}


class Bars(NamedTuple):
    """What may be wrong with each answer, in counts; NaN where the release alone cannot tell.

    `noise` is a standard deviation. `absent_cells` says how many cells of the query (nodes, of a
    tree) were not released, and `absent` how much all of them hold together at most.
    """

    noise: Float[np.ndarray, " queries"]
    absent_cells: Float[np.ndarray, " queries"]
    absent: Float[np.ndarray, " queries"]


class Answers(tuple[Any, ...]):
    """Answers and their standard errors, a pair; and beside it both parts of what may be wrong.

    Attributes
    ----------
    values, errors : float64[queries]
        The pair: answers in counts, and standard errors; NaN where there is no closed form.
    noise : float64[queries]
        The standard deviation of the noise, in counts: two of them cover it some 19 times in 20.
    absent_cells : float64[queries]
        How many cells of each query were not released.
    absent : float64[queries]
        How much these hold together at most, in counts: the truth may be higher by it.
    belief : str
        What is assumed beyond the guarantee; "" if nothing.
    """

    noise: Float[np.ndarray, " queries"]
    absent_cells: Float[np.ndarray, " queries"]
    absent: Float[np.ndarray, " queries"]
    belief: str

    def __new__(
        cls, values: Any, errors: Any, bars: Bars, belief: str | None = None
    ) -> Answers:
        """The pair, with bars that a belief may narrow."""
        if belief is not None and belief not in BELIEFS:
            raise ValueError(f"belief = {belief!r} is not allowed: need one of {[*BELIEFS]}")
        pair = super().__new__(cls, (values, errors))
        pair.noise = bars.noise
        pair.absent_cells = bars.absent_cells
        pair.absent = np.zeros_like(bars.absent) if belief else bars.absent
        pair.belief = BELIEFS[belief] if belief else ""
        return pair

    def __repr__(self) -> str:
        rows = [
            f"{count} {noise} (noise), {cells} absent cells hold {most}"
            for count, noise, cells, most in self.in_words(_SHOWN)
        ]
        more = [f"and {len(self.values) - _SHOWN:,} more"] if len(self.values) > _SHOWN else []
        return f"<Answers: {'; '.join([*rows, *more])}>"

    def in_words(self, most: int | None = None) -> list[tuple[str, str, str, str]]:
        """Count, noise, absent cells, and what these hold, of each of the first `most` answers."""
        parts = (self.values, self.noise, self.absent_cells, self.absent)
        rows = []
        for count, noise, cells, absent in zip(*(x[:most] for x in parts), strict=True):
            hold = "unknown" if isnan(absent) else f"at most {number(ceil(absent))}"
            rows.append(
                (
                    number(count),
                    "unknown" if isnan(noise) else f"± {format_number(noise)}",
                    "unknown" if isnan(cells) else number(cells),
                    hold if absent else "0",
                )
            )
        return rows

    @property
    def values(self) -> Float[np.ndarray, " queries"]:
        """Answers in counts."""
        return self[0]

    @property
    def errors(self) -> Float[np.ndarray, " queries"]:
        """Standard errors of the pair."""
        return self[1]
