"""Hay et al. 2010, Figure 3: a noisy sorted sequence and its isotonic estimate; and examples.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: Examples 3 to 6, Figures 2 to 4.
Read    from the text; the plot is not in our copy. Examples are printed as numbers, and are exact.
Open    Of the sequence only this is told: twenty equal counts, then one of its own. The figure is one
        sample, the first; errors are means over 200 samples (quick) and 5000 (paper).
        The text says that inference does not refine the unique count. It may: where noise brings the
        21st below what is before it, or above what is after.
Words   averages out = within the run, but for its last count, the squared error of S̄ is at most a tenth
        of that of S̃; changes nothing = at the 21st position S̄ is S̃ in 95 % of samples or more.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.hay2010.data import (
    INFERRED,
    NOISY,
    PositionErrors,
    RunOfCounts,
    Samples,
)
from workbench import DP, Sweep
from workbench.claims import ORDERS, Finding, format_number
from workbench.claims.old import Claim, all_of
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.parameters import epsilon, seeds, whole
from workbench.inference import isotonic, tree_least_squares
from workbench.inference.least_squares import tree_sums
from workbench.mechanisms import UnattributedHistogram
from workbench.noise import variance
from workbench.plots import Panel
from workbench.value import value

RUN = 20  # its length
UNIQUE = 21  # the position after it
PAPER = {  # input, output, and what turns one into the other
    "Example 3, S": ((2, 0, 10, 2), (0, 2, 2, 10), sorted),
    "Example 4": ((9, 10, 14), (9, 10, 14), isotonic),
    "Example 4, second": ((9, 14, 10), (9, 12, 12), isotonic),
    "Example 4, third": ((14, 9, 10, 15), (11, 11, 11, 15), isotonic),
    "Figure 2, S̄": ((1, 2, 0, 11), (1, 1, 1, 11), isotonic),
    "Example 6, H": ((2, 0, 10, 2), (14, 2, 12, 2, 0, 10, 2), tree_sums),
    "Figure 2, H̄": ((13, 3, 11, 4, 1, 12, 1), (14, 3, 11, 3, 0, 11, 0), tree_least_squares),
}


def examples() -> pd.DataFrame:
    """How far each printed example is from what we make of its input: 0, or rounding."""
    differences = []
    for given, printed, make in PAPER.values():
        ours = np.asarray(make(np.array(given)), float)
        differences.append(np.abs(ours - printed).max())
    frame = pd.DataFrame({"series": PAPER.keys(), "value": differences})
    return frame.assign(panel="examples", metric="difference", seed=0)


def _examples(rows) -> Finding:
    same = rows[rows.panel == "examples"].value < 1e-9
    return Finding(bool(same.all()), f"{same.sum()} of {len(same)} as printed")


def _averages(rows) -> Finding:
    error = rows[rows.panel == "error"].groupby(["series", "position"]).value.mean()
    noisy = error[NOISY].loc[:RUN]
    inferred = error[INFERRED].loc[:RUN]
    ratio = noisy / inferred
    inside = noisy.iloc[:-1].mean() / inferred.iloc[:-1].mean()
    same = rows[(rows.panel == "same") & (rows.position == UNIQUE)].value.mean()
    least = ratio.iloc[:-1].min()
    largest = ratio.iloc[:-1].max()
    measured = (
        f"S̃'s is {format_number(inside)}× as large ({least:.3g}–{largest:.3g}× by position"
    )
    measured += f", {format_number(ratio[RUN])}× at the run's last)"
    return all_of(
        {
            "the run's noise is averaged out": Finding(bool(inside >= ORDERS), measured),
            "the 21st is unchanged": Finding(bool(same >= 0.95), f"in {same:.1%} of samples"),
        }
    )


CLAIMS = (
    Claim(
        "h-3",
        "On a uniform run the isotonic estimate averages the noise out; at a unique count it "
        "changes nothing.",
        _averages,
        "6.5× over the run: up to 14× in its middle, but at its first places there is little to "
        "average with, as Figure 7 shows. The tenfold is our number; the paper shows one sample.",
    ),
    Claim("h-ex", "Examples 3, 4 and 6 and the running example are as printed.", _examples),
)


@value
class Fig3(Figure):
    """One sample, and the squared error of every position."""

    title = "A noisy sorted sequence and its isotonic estimate"
    page = "Hay et al., PVLDB 2010, section 3, Figure 3; Examples 3, 4, 6"
    quick = {"samples": 40, "seeds": 5}
    claims = CLAIMS

    epsilon: float = epsilon(1.0)
    run: int = whole(RUN, "equal counts", high=10_000)
    count: int = whole(10, "what they are", kind=UNPRINTED)
    gap: int = whole(
        5, "from them to the unique count, and from that to the rest", kind=UNPRINTED
    )
    rest: int = whole(4, "counts after the unique one", high=10_000, kind=UNPRINTED)
    samples: int = whole(250, "releases of a batch", kind=EFFORT)
    seeds: int = seeds(20, "batches")

    def sweeps(self) -> dict[str, Sweep]:
        """One, whose first sample is shown."""
        sequence = RunOfCounts(self.run, self.count, self.gap, self.rest)
        samples = Samples(UnattributedHistogram(DP(self.epsilon), "noisy"), self.samples)
        return {"error": Sweep([sequence], [samples], [PositionErrors()], self.seeds)}

    def rows(self, store) -> pd.DataFrame:
        """Also that sample, how often inference changed nothing, and the examples."""
        rows = super().rows(store)
        rows = rows.assign(series=rows.estimate, position=rows["rank"])
        first = rows[rows.seed == 0].assign(panel="sample", metric="Count")
        inferred = rows[rows.series == INFERRED]
        frames = [
            first[first.series == INFERRED].assign(series="truth", value=lambda x: x["count"]),
            first.assign(value=first["sample"]),
            rows,
            inferred.assign(panel="same", metric="unchanged", value=inferred.unchanged),
            examples().assign(epsilon=self.epsilon, truth_public=True),
        ]
        rows = pd.concat(frames, ignore_index=True)
        return rows.drop(columns=["estimate", "rank", "count", "sample", "unchanged"])

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """The sample, and the errors with what S̃ has everywhere."""
        expected = variance(1, self.epsilon, "laplace")
        theory = ("S̃, expected", lambda x: expected + 0 * x)
        sample = f"one sample, ε = {self.epsilon:g}"
        where = {"panel": "error"}
        return [
            Panel(sample, {"panel": "sample"}, "position", log=""),
            Panel("error of each position", where, "position", log="y", theory=theory),
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The printed examples, and what we make of their inputs."""
        lines = []
        for name, (given, printed, make) in PAPER.items():
            values = np.round(make(np.array(given)), 9)
            ours = tuple(int(x) if x == int(x) else float(x) for x in values)
            line = {"example": name, "input": given, "the paper prints": printed}
            lines.append(line | {"we find": ours})
        return pd.DataFrame(lines).set_index("example")
