"""Figure 7 of Hay et al. (2010): the error of isotonic inference by the position in the sorted sequence.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: Appendix C, Figure 7.
Read    The plot is not in our copy, and the text prints no number.
Open    The value of ε is missing in our copy. We run the paper's three values, and show errors as a share of
        the error 2/ε² of the noisy sequence S̃. The paper does not print the positions that it shows. We show
        positions 20 to 1000 of the descending sequence. The insets are separate panels: the positions 20 to
        60, and the surroundings of two changes between long runs, from 3 to 2 and from 2 to 1. We find these
        changes in the true counts, which are public. Samples come in batches. The printed number of samples,
        200, is five batches. We run more batches if five leave a statement undecided. The run of empty cells
        is left out, as in the paper.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments._fields import effort, unprinted
from experiments.hay2010.data import INFERRED, NAMES, PositionErrors, Samples, at_hand
from workbench import DP, Sweep
from workbench.compiled import pd
from workbench.datasets import Ranked
from workbench.figures import Figure
from workbench.figures.fields import choice, epsilons, seeds
from workbench.figures.plots import Panel
from workbench.mechanisms import UnattributedHistogram
from workbench.noise import variance
from workbench.trials import claims
from workbench.trials.claims import OFTEN, Finding, all_of, check_between, check_lower
from workbench.value import value

SHARE = "ErrorShare"
ALL = "all"
MIDDLE = "the middle"
LEFT = 0.25  # at most, of an error that is reduced to zero
MORE = float(np.nextafter(1, 2))
COUNT = "Count"
CHANGE = "down to "


# What decides each statement.


def errors(rows: pd.DataFrame, panel: str = ALL) -> pd.DataFrame:
    """Return the errors by position in one panel, with the columns that the checks need."""
    own = rows[(rows.panel == panel) & (rows.metric == SHARE)]
    return own[["epsilon", "position", "count", "length", "place", "seed", "value"]]


def _mean(rows: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Return the mean error over positions, with one row per seed."""
    return rows.groupby([*by, "seed"], as_index=False).value.mean()


def check_few(rows, level: float, few: int) -> Finding:
    """Check whether the error is larger at counts that occur at most `few` times than at the other positions
    shown.
    """
    own = errors(rows, MIDDLE)
    alone = own.length <= few
    parts = (_mean(own[alone], "epsilon"), _mean(own[~alone], "epsilon"))
    return check_between(claims.ratios(*parts, "epsilon"), level, low=MORE)


def check_by_length(rows, level: float) -> Finding:
    """Check whether the error becomes smaller for longer runs of equal counts."""
    own = errors(rows)
    classes = 2 ** np.floor(np.log2(own.length))
    own = _mean(own.assign(least=classes), "least").assign(series=INFERRED)
    ends, steps = (measure(own, INFERRED, "least") for measure in (claims.ends, claims.steps))
    parts = {
        "longest to shortest runs": partial(check_lower, ends),
        "class to class": partial(check_lower, steps, share=OFTEN),
    }
    return all_of(parts, level)


def inside(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results in the middle half of each run of equal counts."""
    quarter = rows.length // 4
    return rows[(rows.place >= quarter) & (rows.place < rows.length - quarter)]


def at_ends(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the results at the first two and the last two positions of each run of equal counts."""
    return rows[(rows.place < 2) | (rows.place >= rows.length - 2)]


def check_ends(rows, level: float, shortest: int) -> Finding:
    """Check whether the error is larger at the ends of a run of equal counts than in its middle half."""
    own = errors(rows)
    own = own[own.length >= shortest]
    parts = (_mean(inside(own), "count"), _mean(at_ends(own), "count"))
    return check_lower(claims.ratios(*parts, "count"), level, OFTEN)


def check_middle(rows, level: float, shortest: int) -> Finding:
    """Check whether at most a quarter of the error of the noisy sequence S̃ is left in the middle half of
    every run of equal counts.
    """
    own = errors(rows)
    middle = _mean(inside(own[own.length >= shortest]), "count").assign(series=INFERRED)
    left = claims.means(middle, INFERRED, "count")
    return check_between(left, level, high=LEFT, words="at most a quarter", unit=" of S̃'s")


def check_locally(rows, level: float, width: int) -> Finding:
    """Check whether a window of positions has a larger error if it contains more different counts."""
    own = errors(rows, MIDDLE)
    window = (own.position - own.position.min()) // width
    whole = window < (own.position.max() - own.position.min() + 1) // width
    grouped = own[whole].groupby(["seed", window[whole]])
    table = pd.DataFrame({"distinct": grouped["count"].nunique(), "error": grouped.value.sum()})
    ranks = table.groupby("seed").rank()
    rho = ranks.groupby("seed").apply(lambda x: x.distinct.corr(x.error))
    correlations = rho.rename("value").reset_index().assign(series=INFERRED, width=width)
    numbers = claims.means(correlations, INFERRED, "width")
    return check_between(numbers, level, low=float(np.nextafter(0, 1)))


@value
class Fig7(Figure):
    """Counts in descending order, and the error of isotonic inference at each position. There are panels for
    several stretches of positions.
    """

    title = "Where the error of isotonic inference sits"
    headline = "The error vanishes inside long runs of equal counts"
    rests_on = ("h-7.2", "h-7.4")
    main = 4
    sharey = True
    page = "Hay et al., PVLDB 2010, Appendix C, Figure 7"
    quick = {"samples": 10, "seeds": 5}

    data: str = choice("NetTrace", NAMES, "counts (a stand-in if their file is missing)")
    epsilons: tuple[float, ...] = epsilons((1.0, 0.1, 0.01))
    first: int = unprinted(20, "first position shown")
    last: int = unprinted(1000, "last position shown")
    last_of_start: int = unprinted(60, "last position of the first part")
    changes: tuple[int, ...] = unprinted(
        (2, 1), "counts to which the curve falls in the insets"
    )
    around: int = unprinted(60, "positions on either side of such a change")
    samples: int = effort(40, "number of releases in a batch")
    seeds: int = seeds(20, "number of batches of releases")

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs, as one sweep."""
        (dataset,) = at_hand([self.data]).values()
        noisy = [UnattributedHistogram(DP(epsilon), "noisy") for epsilon in self.epsilons]
        samples = [Samples(mechanism, self.samples) for mechanism in noisy]
        return {ALL: Sweep([Ranked(dataset)], samples, [PositionErrors()], self.seeds)}

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results at all positions, and a second copy of the positions that are drawn,
        with the names of their panels.

        The column `length` says how often the count of a position occurs. The column `place` is the number of
        the position within this run of equal counts.
        """
        rows = super().rows(store)
        rows = rows[rows.estimate == INFERRED]
        rows = rows.assign(metric=SHARE, position=rows["rank"].max() + 1 - rows["rank"])
        rows["value"] /= rows.epsilon.map({x: self.expected(x) for x in self.epsilons})
        rows["series"] = INFERRED + rows.epsilon.map(", ε = {:g}".format)
        one = rows[(rows.seed == 0) & (rows.epsilon == self.epsilons[0])].set_index("position")
        counts = one["count"].sort_index()
        run = counts.groupby(counts)
        rows["length"] = rows.position.map(run.transform("size"))
        rows["place"] = rows.position.map(run.cumcount())
        truth = one.reset_index().assign(metric=COUNT, series="truth")
        rows = pd.concat([truth.assign(value=truth["count"]), rows], ignore_index=True)
        drawn = [
            rows[rows.position.between(*ends)].assign(panel=panel)
            for panel, ends in self.stretches(counts).items()
        ]
        rows = pd.concat([*drawn, rows], ignore_index=True)
        return rows.drop(columns=["estimate", "rank", "sample", "unchanged"])

    def expected(self, epsilon: float) -> float:
        """Return the theoretical squared error of the noisy sequence S̃ at each position."""
        (dataset,) = at_hand([self.data]).values()
        return variance(dataset.load().bound.l1, epsilon, "laplace")

    def stretches(self, counts: pd.Series) -> dict[str, tuple[int, int]]:
        """Return the first and the last position of each stretch that is drawn, by the title of its panel."""
        ends = {MIDDLE: (self.first, self.last)}
        ends["its beginning"] = (self.first, self.last_of_start)
        for count in self.changes:
            change = counts.index[counts > count].max()
            ends[f"{CHANGE}{count}"] = (change - self.around, change + self.around)
        return ends

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return two panels per stretch: the counts, and below them the errors with the theoretical error of
        the noisy sequence S̃.
        """
        flat = ("noisy, theory", lambda x: 1 + 0 * x)
        ends = rows[rows.panel != ALL].groupby("panel", sort=False).position.agg(["min", "max"])
        titles = {
            name: f"positions {first:,.0f}–{last:,.0f}"
            for name, first, last in ends.itertuples()
        }
        names = [*titles]
        grid = []
        for pair in (names[:1] + names[-1:], names[1:-1]):  # the middle, and the last change
            for name in pair:
                where = {"panel": name, "metric": COUNT}
                log = "" if name.startswith(CHANGE) else "y"
                grid.append(Panel(f"counts, {titles[name]}", where, "position", log=log))
            for name in pair:
                where = {"panel": name, "metric": SHARE}
                zero = dict(log="", linear_below=1e-3, theory=flat)
                grid.append(Panel(f"error, {titles[name]}", where, "position", **zero))
        return grid
