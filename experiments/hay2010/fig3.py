"""Hay et al. 2010, Figure 3: a noisy sorted sequence and its isotonic estimate; and examples.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: Examples 3 to 6, Figures 2 to 4.
Read    from the text; the plot is not in our copy. Examples are printed as numbers, and are exact.
Open    Of the sequence only this is told: twenty equal counts, then one of its own. Here 10 twenty
        times, 15, and 20 four times, at ε = 1. The figure is one sample, that of seed 0; errors are
        means over 200 samples (quick) and 5000 (paper), drawn from one stream.
        The text says that inference does not refine the unique count. It may: where noise brings the
        21st below what is before it, or above what is after.
Words   averages out = within the run, but for its last count, the squared error of S̄ is at most a tenth
        of that of S̃; changes nothing = at the 21st position S̄ is S̃ in 95 % of samples or more.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from workbench import DP, Bound, Domain, SparseTable
from workbench.claims import ORDERS, Claim, Finding, all_of, format_number
from workbench.inference import isotonic, tree_least_squares
from workbench.inference.least_squares import tree_sums
from workbench.mechanisms import UnattributedHistogram
from workbench.plots import Panel

TITLE = "A noisy sorted sequence and its isotonic estimate"
PAGE = "Hay et al., PVLDB 2010, section 3, Figure 3; Examples 3, 4, 6"
COLUMNS = 2
SAMPLES = {"quick": 200, "paper": 5000}
BATCHES = {"quick": 5, "paper": 20}
EPSILON = 1.0
COUNTS = (10,) * 20 + (15,) + (20,) * 4
RUN = 20  # its length
UNIQUE = 21  # the position after it
NOISY = "S̃"
INFERRED = "S̄"

PAPER = {  # input, output, and what turns one into the other
    "Example 3, S": ((2, 0, 10, 2), (0, 2, 2, 10), sorted),
    "Example 4": ((9, 10, 14), (9, 10, 14), isotonic),
    "Example 4, second": ((9, 14, 10), (9, 12, 12), isotonic),
    "Example 4, third": ((14, 9, 10, 15), (11, 11, 11, 15), isotonic),
    "Figure 2, S̄": ((1, 2, 0, 11), (1, 1, 1, 11), isotonic),
    "Example 6, H": ((2, 0, 10, 2), (14, 2, 12, 2, 0, 10, 2), tree_sums),
    "Figure 2, H̄": ((13, 3, 11, 4, 1, 12, 1), (14, 3, 11, 3, 0, 11, 0), tree_least_squares),
}
THEORY = ("S̃, expected", lambda x: 2 / EPSILON**2 + 0 * x)
PANELS = (
    Panel("one sample, ε = 1", {"panel": "sample"}, "position", log=""),
    Panel("error of each position", {"panel": "error"}, "position", log="y", theory=THEORY),
)


def table() -> SparseTable:
    """The sequence as a table over ranks."""
    domain = Domain(("rank",), (len(COUNTS),))
    return SparseTable.from_dense(domain, np.array(COUNTS), Bound(1), truth_public=True)


def draw(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """One release of S̃, and its S̄."""
    noisy = UnattributedHistogram(DP(EPSILON), "noisy")(table(), rng).estimate.values
    return noisy, isotonic(noisy)


def rows(profile: str, store) -> pd.DataFrame:
    """One sample; the squared error of every position by batches; the share of equal ones; examples."""
    truth = np.array(COUNTS, float)
    noisy, inferred = draw(np.random.default_rng(0))
    frames = []
    for series, values in (("truth", truth), (NOISY, noisy), (INFERRED, inferred)):
        frame = _by_position(values)
        frames.append(frame.assign(panel="sample", series=series, metric="Count", seed=0))
    size = SAMPLES[profile] // BATCHES[profile]
    for batch in range(BATCHES[profile]):
        rng = np.random.default_rng([1, batch])
        drawn = np.array([draw(rng) for _ in range(size)])
        errors = ((drawn - truth) ** 2).mean(axis=0)
        same = np.isclose(drawn[:, 0], drawn[:, 1], atol=1e-9).mean(axis=0)
        for series, error in zip((NOISY, INFERRED), errors, strict=True):
            columns = dict(panel="error", metric="SquaredError", series=series, seed=batch)
            frames.append(_by_position(error).assign(**columns))
        columns = dict(panel="same", metric="unchanged", series=INFERRED, seed=batch)
        frames.append(_by_position(same).assign(**columns))
    frame = pd.concat([*frames, examples()], ignore_index=True)
    columns = dict(dataset="10 × 20, 15, 20 × 4", truth_public=True, epsilon=EPSILON)
    return frame.assign(mechanism="UnattributedHistogram", **columns)


def _by_position(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame({"position": np.arange(1, len(values) + 1), "value": values})


def examples() -> pd.DataFrame:
    """How far each printed example is from what we make of its input: 0, or rounding."""
    differences = []
    for given, printed, make in PAPER.values():
        ours = np.asarray(make(np.array(given)), float)
        differences.append(np.abs(ours - printed).max())
    frame = pd.DataFrame({"series": PAPER.keys(), "value": differences})
    return frame.assign(panel="examples", metric="difference", seed=0)


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """The printed examples, and what we make of their inputs."""
    lines = []
    for name, (given, printed, make) in PAPER.items():
        values = np.round(make(np.array(given)), 9)
        ours = tuple(int(x) if x == int(x) else float(x) for x in values)
        line = {"example": name, "input": given, "the paper prints": printed}
        lines.append(line | {"we find": ours})
    return pd.DataFrame(lines).set_index("example")


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
        "6.6× over the run: up to 15× in its middle, but at its first places there is little to "
        "average with, as Figure 7 shows. The tenfold is our number; the paper shows one sample.",
    ),
    Claim("h-ex", "Examples 3, 4 and 6 and the running example are as printed.", _examples),
)
