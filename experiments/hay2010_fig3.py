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
RUN, UNIQUE = 20, 20  # length of the run, and the place after it, from 0
NOISY, INFERRED = "S̃", "S̄"

PAPER = {  # input, output, and what turns one into the other
    "Example 3, S": ((2, 0, 10, 2), (0, 2, 2, 10), sorted),
    "Example 4": ((9, 10, 14), (9, 10, 14), isotonic),
    "Example 4, second": ((9, 14, 10), (9, 12, 12), isotonic),
    "Example 4, third": ((14, 9, 10, 15), (11, 11, 11, 15), isotonic),
    "Figure 2, S̄": ((1, 2, 0, 11), (1, 1, 1, 11), isotonic),
    "Example 6, H": ((2, 0, 10, 2), (14, 2, 12, 2, 0, 10, 2), tree_sums),
    "Figure 2, H̄": ((13, 3, 11, 4, 1, 12, 1), (14, 3, 11, 3, 0, 11, 0), tree_least_squares),
}
PANELS = (
    Panel("one sample, ε = 1", {"panel": "sample"}, "position", log=""),
    Panel(
        "error of each position",
        {"panel": "error"},
        "position",
        log="y",
        theory=("S̃, expected", lambda x: 2 / EPSILON**2 + 0 * x),
    ),
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
    position, truth = np.arange(1, len(COUNTS) + 1), np.array(COUNTS, float)
    lines = dict(
        zip(("truth", NOISY, INFERRED), (truth, *draw(np.random.default_rng(0))), strict=True)
    )
    found = [
        pd.DataFrame({"position": position, "value": values}).assign(
            panel="sample", series=series, metric="Count", seed=0
        )
        for series, values in lines.items()
    ]
    each = SAMPLES[profile] // BATCHES[profile]
    for batch in range(BATCHES[profile]):
        rng = np.random.default_rng([1, batch])
        drawn = np.array([draw(rng) for _ in range(each)])
        errors = ((drawn - truth) ** 2).mean(axis=0)
        same = np.isclose(drawn[:, 0], drawn[:, 1], atol=1e-9).mean(axis=0)
        for panel, metric, series, values in (
            ("error", "SquaredError", NOISY, errors[0]),
            ("error", "SquaredError", INFERRED, errors[1]),
            ("same", "unchanged", INFERRED, same),
        ):
            one = pd.DataFrame({"position": position, "value": values})
            found.append(one.assign(panel=panel, metric=metric, series=series, seed=batch))
    told = pd.concat([*found, examples()], ignore_index=True)
    about = dict(dataset="10 × 20, 15, 20 × 4", truth_public=True, epsilon=EPSILON)
    return told.assign(mechanism="UnattributedHistogram", **about)


def examples() -> pd.DataFrame:
    """How far each printed example is from what we make of its input: 0, or rounding."""
    far = {
        name: np.abs(np.asarray(make(np.array(given)), float) - wanted).max()
        for name, (given, wanted, make) in PAPER.items()
    }
    return pd.DataFrame({"series": far.keys(), "value": far.values()}).assign(
        panel="examples", metric="difference", seed=0
    )


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """The printed examples, and what we make of their inputs."""
    told = [
        {
            "example": name,
            "input": given,
            "the paper prints": wanted,
            "we find": _shown(make(np.array(given))),
        }
        for name, (given, wanted, make) in PAPER.items()
    ]
    return pd.DataFrame(told).set_index("example")


def _shown(values) -> tuple:
    return tuple(int(x) if x == int(x) else float(x) for x in np.round(values, 9))


def _examples(rows) -> Finding:
    far = rows[rows.panel == "examples"].value
    return Finding(bool((far < 1e-9).all()), f"{(far < 1e-9).sum()} of {len(far)} as printed")


def _averages(rows) -> Finding:
    error = rows[rows.panel == "error"].groupby(["series", "position"]).value.mean()
    ratio = (error[NOISY] / error[INFERRED]).loc[: RUN - 1]
    inside = error[NOISY].loc[: RUN - 1].mean() / error[INFERRED].loc[: RUN - 1].mean()
    same = rows[(rows.panel == "same") & (rows.position == UNIQUE + 1)].value.mean()
    last = error[NOISY][RUN] / error[INFERRED][RUN]
    words = f"S̃'s is {format_number(inside)}× as large ({ratio.min():.3g}–{ratio.max():.3g}× by position"
    words += f", {format_number(last)}× at the run's last)"
    return all_of(
        {
            "the run's noise is averaged out": Finding(bool(inside >= ORDERS), words),
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
