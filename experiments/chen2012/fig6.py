"""Figure 6 of Chen et al. (2012): errors of published joint distributions of two and of three attributes.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: section 5.2, Figure 6.
Read    The plot is not in our copy, and the text prints no error.
Open    We buy all cells of all 36 bivariate marginals, with noise Lap(36) at ε = 1. Maximum entropy fits a
        model to these cells, and draws a database from it. The paper does not print its α. We use 3·10⁻⁴, the
        best of 3·10⁻⁵, 10⁻⁴, 3·10⁻⁴ and 10⁻³ on another draw of the stand-in (seed 1). It is the best for
        199,523 and for 500,000 people. We chose it before the first run. "SGD as printed" is the paper's own
        fit, with γ = 10⁻⁴ and 10⁶ steps of one chain, at the same α. Flipping changes one bit per code. The
        joint distributions from randomised responses are unbiased estimates, whose negative cells become 0,
        scaled to the total. The paper does not mention this step, which helps these methods. The noisy
        marginals, which the paper does not show, are treated in the same way. Errors are Σ|p − p̃|. The
        drawing truncates them at 1, but statements are tested on the full errors. The error of sampling alone
        is the expected error if as many people are drawn again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from math import prod
from typing import Any

import numpy as np

from experiments._fields import effort
from experiments.chen2012._published import (
    ENTROPY,
    RIVALS,
    SHORT,
    PublishedFigure,
    check_below_rivals,
    if_converged,
    joint_shares,
)
from experiments.chen2012.data import TWIN
from experiments.chen2012.shared import convergence, of_case, over_cases
from workbench import Domain, SparseTable, Sweep
from workbench.compiled import pd
from workbench.figures.plots import Panel
from workbench.trials import claims
from workbench.trials.claims import (
    OFTEN,
    Finding,
    all_of,
    check_between,
    check_lower,
    decide,
    exact,
    means,
    paired_ratios,
)
from workbench.trials.metrics.answers import refuse_private
from workbench.value import format_number, value

MANY = 50  # values of an attribute
POOR = 1.0  # where the paper cuts its errors
REASONABLE = (0.25, 0.5, 1.0)
DUE = (0.25, 0.5, 0.75)  # shares of an error


# Errors of joints, and what sampling or no data at all would have.


def sampling_error(shares: np.ndarray, people: int) -> float:
    """Return the expected Σ|p − p̃| if `people` people are drawn again from the true distribution, by de
    Moivre's formula for each cell.
    """
    from scipy.stats import binom

    p = shares[(shares > 0) & (shares < 1)]
    k = np.floor(people * p) + 1
    return float((2 * k * (1 - p) * binom.pmf(k, people, p)).sum() / people)


@value
class JointErrors:
    """Metric: Σ|p − p̃| for every pair of attributes and for triples, and the errors of sampling alone and of
    a uniform distribution.
    """

    triples: int

    def __call__(self, truth: SparseTable, estimate: Any) -> pd.DataFrame:
        """Return the metric's values, with one row per joint distribution that the estimate has."""
        refuse_private(truth)
        domain = truth.domain
        exact = joint_shares(truth)
        ours = joint_shares(estimate)
        rows = []
        for axes in [*combinations(range(len(domain.shape)), 2), *self.drawn(domain)]:
            shares = ours(axes)
            if shares is not None:
                names = [SHORT.get(domain.attributes[a], domain.attributes[a]) for a in axes]
                true = exact(axes)
                cells = prod(domain.shape[a] for a in axes)
                row = {"k": len(axes), "joint": ", ".join(names), "cells": cells}
                row["wide"] = sum(domain.shape[a] >= MANY for a in axes)
                row["sampling"] = sampling_error(true, int(truth.total))
                row["no_data"] = float(np.abs(true - 1 / cells).sum())
                rows.append(row | {"value": float(np.abs(shares - true).sum())})
        return pd.DataFrame(rows).assign(**convergence(estimate))

    def drawn(self, domain: Domain) -> list[tuple[int, ...]]:
        """Return the triples of attributes: all of them, or `triples` of them at random."""
        candidates = [*combinations(range(len(domain.shape)), 3)]
        if self.triples >= len(candidates):
            return candidates
        lots = np.random.default_rng(3).choice(len(candidates), self.triples, replace=False)
        return [candidates[lot] for lot in sorted(lots)]


def couples(pairs: pd.DataFrame) -> pd.DataFrame:
    """Return all couples of joint distributions with different numbers of cells: the errors of the one with
    fewer cells, and those of the one with more.
    """
    both = pairs.merge(pairs, on="seed", suffixes=("", "_of_more"))
    both = both[both.cells < both.cells_of_more]
    both = both.assign(couple=both.joint + " | " + both.joint_of_more)
    fewer = both[["couple", "seed", "value"]].assign(series="fewer")
    more = both[["couple", "seed"]].assign(value=both.value_of_more, series="more")
    return pd.concat([fewer, more])


def for_each(rows, rivals, level: float, check: Callable) -> Finding:
    """Check whether a statement holds for both randomised responses."""
    return all_of({rival: partial(check, rows, rival) for rival in rivals}, level)


def check_best(rows, rivals, level: float) -> Finding:
    """Check whether maximum entropy has smaller errors than both randomised responses on every pair of
    attributes.
    """
    return check_below_rivals(rows[rows.k == 2], rivals, level, "joint")


def check_small_only(rows, rival: str, level: float, well: float) -> Finding:
    """Check whether errors are at most `well` up to some number of cells, and larger beyond, for most pairs."""
    pairs = rows[(rows.k == 2) & (rows.series == rival)]
    cells = pairs.groupby("joint").cells.first()
    errors = means(pairs, rival, "joint").at(1 - (1 - level) / len(cells))
    cells = cells[errors.index]
    good = errors.high <= well
    bad = errors.low > well
    upper = [cells <= cut for cut in cells.unique()]
    surely = max((good & u).sum() + (bad & ~u).sum() for u in upper)
    possibly = max((~bad & u).sum() + (~good & ~u).sum() for u in upper)
    need = np.ceil(OFTEN * len(cells))
    holds = decide(surely >= need and good.any(), possibly < need or bad.all())
    there = errors.estimate <= well
    most = f", up to {cells[there].max():,} cells" if there.any() else ""
    return Finding(
        holds,
        f"at {there.sum()} of {len(cells)} pairs{most}; order by size explains {surely} surely",
    )


def check_poor(rows, rival: str, level: float, k: int, wide: int = 0) -> Finding:
    """Check whether errors are 1 or more for most joint distributions of k attributes, of which at least
    `wide` have many values.
    """
    there = rows[(rows.k == k) & (rows.wide >= wide) & (rows.series == rival)]
    if there.empty:
        raise claims.MissingPoints(f"no joints of {rival}")
    errors = means(there, rival, "joint")
    found = check_between(errors, level, low=POOR, share=OFTEN, words="1 or more")
    none = there.groupby("joint").no_data.first()
    span = f"{format_number(none.min())}–{format_number(none.max())}"
    return replace(found, measured=f"{found.measured}; no look at data has {span}")


def of_small(rows, level: float, of: str, well: float) -> Finding:
    """Apply `check_small_only` to both randomised responses for one meaning of γ."""
    check = partial(check_small_only, well=well)
    return for_each(of_case(rows, TWIN), RIVALS[of], level, check)


def of_wide(rows, level: float, of: str, which: str) -> Finding:
    """Apply `check_poor` to both randomised responses for one meaning of γ, on pairs where one or both
    attributes have many values.
    """
    check = partial(check_poor, k=2, wide={"one": 1, "both": 2}[which])
    return for_each(of_case(rows, TWIN), RIVALS[of], level, check)


def over_reasonable(rows, level: float) -> Finding:
    """Check whether maximum entropy has reasonable errors on most triples, and smaller ones than both
    randomised responses, for each meaning of "reasonable".
    """
    rivals = RIVALS["an attribute's"]

    def at(own, bound: float, level: float) -> Finding:
        own = own[own.k == 3]
        small = partial(
            check_between, means(own, ENTROPY, "joint"), high=bound, share=OFTEN, words="so"
        )
        below = partial(check_below_rivals, own, rivals, by="joint", share=OFTEN)
        parts = {f"up to {bound:g}": lambda at: small(level=at), "lower": below}
        return if_converged(own, all_of(parts, level))

    return over_cases(rows, level, "data, reasonable", at, REASONABLE)


def over_data(rows, level: float, check: Callable) -> Finding:
    """Repeat a check on the pairs of attributes of each dataset."""
    return over_cases(rows[rows.k == 2], level, "data", check)


def check_growth(rows, level: float) -> Finding:
    """Check whether, for each method and most couples of joint distributions, the one with more cells has the
    larger error.
    """

    def part(series: str, level: float) -> Finding:
        own = rows[rows.series == series]
        ratios = paired_ratios(couples(own), "fewer", "more", "couple")
        found = check_lower(ratios, level, OFTEN)
        return if_converged(rows, found) if series == ENTROPY else found

    methods = (ENTROPY, *RIVALS["an attribute's"])
    return all_of({name: partial(part, name) for name in methods}, level)


def check_sampling(rows, series: str, share: float, level: float) -> Finding:
    """Check whether the error of sampling alone also grows with the number of cells, and is at least the
    given share of a method's error.
    """
    own = rows[rows.series == series].assign(series="all")
    first = own.drop_duplicates("joint").assign(value=own.sampling, seed=0)
    both = couples(first).pivot(index="couple", columns="series", values="value")
    growth = exact(both.fewer / both.more)
    sampled = own.assign(series="sampled", value=own.sampling)
    shares = paired_ratios(pd.concat([own, sampled]), "sampled", "all", "joint")
    parts = {
        "sampling alone": partial(check_lower, growth, share=OFTEN),
        "its share": partial(check_between, shares, low=share, share=OFTEN, words="as much"),
    }
    found = all_of(parts, level)
    return if_converged(rows, found) if series == ENTROPY else found


def over_methods(rows, level: float) -> Finding:
    """Repeat `check_sampling` for each method, and for each share that "due to" may mean."""
    swept = ((ENTROPY, *RIVALS["an attribute's"]), DUE)
    return over_cases(rows[rows.k == 2], level, "data, method, share", check_sampling, *swept)


def attributes(rows: pd.DataFrame) -> dict[str, str]:
    """Return the full names of the attributes of one dataset, by their short names."""
    names = {short: name for name, short in reversed(SHORT.items())}
    short = rows[rows.k == 2].joint.str.split(", ").explode().unique()
    return {name: names.get(name, name) for name in short}


def responses(rows: pd.DataFrame) -> list[str]:
    """Return the names of the randomised responses whose γ is for each attribute."""
    return [x for x in rows.series.unique() if ", γ" in x and not x.endswith("a tuple")]


def squares(rows: pd.DataFrame) -> pd.DataFrame:
    """Return boxes with the mean errors of pairs, as a square of attributes × attributes. A randomised
    response is above the diagonal, and maximum entropy below it.
    """
    pairs = rows[rows.k == 2]
    errors = pairs.groupby(["case", "series", "joint"], sort=False).value.mean()
    boxes = []
    for (case, series, joint), error in errors.items():
        order = [*attributes(rows[rows.case == case])]
        at = [order.index(name) for name in joint.split(", ")]
        x, y = at[::-1] if series == ENTROPY else at
        box = {"case": case, "value": error, "x0": x, "y0": y, "x1": x + 1, "y1": y + 1}
        above = responses(rows)
        boxes += [box | {"above": name} for name in above if series in (name, ENTROPY)]
    drawn = pd.DataFrame(boxes).assign(metric=pairs.metric.iloc[0])
    method = drawn.above.str.partition(",")[0]
    return drawn.assign(labels=method + " above,\nmax. entropy below|")


@value
class Fig6(PublishedFigure):
    """Errors of joint distributions from maximum entropy and from randomised responses."""

    title = "Errors of joint distributions of two and three attributes"
    headline = "Maximum entropy is more accurate than randomized response throughout"
    rests_on = ("n-6a.1", "n-6b.1")
    page = "Chen et al., EDBT 2012, section 5.2, Figure 6"
    quick = dict(data=(TWIN,), size=60_000, people=60_000, steps=150, triples=9, seeds=2)
    sized_by = ("size", "people", "triples")
    columns = 3
    height = 3.3

    triples: int = effort(84, "number of triples of attributes", 1, 84)

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: noisy pair tables with the fitted models, and randomised responses."""
        return self.sweeps_of(JointErrors(self.triples))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels for each dataset: a square with the errors of pairs, and the errors of
        triples in the order of their numbers of cells.
        """
        grid = []
        errors = rows[rows.joint.notna()]
        for case in sorted(rows.case.unique(), key=lambda case: case != TWIN):
            names = tuple(attributes(errors[errors.case == case]).values())
            for name in responses(errors):
                where = {"case": case, "above": name}
                grid.append(Panel(f"{case}: pairs", where, "x0", cells=True, names=names))
            where = {"case": case, "k": 3}
            grid.append(Panel(f"{case}: triples", where, "by_cells", log=""))
        return grid

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with the position of each joint distribution in the order of the
        numbers of cells.
        """
        rows = super().rows(store)
        joints = rows.drop_duplicates(["case", "joint"]).sort_values(["cells", "joint"])
        joints = joints.assign(by_cells=joints.groupby(["case", "k"]).cumcount() + 1)
        places = joints[["case", "joint", "by_cells"]]
        return rows.merge(places, on=["case", "joint"], how="left")

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results that the figure draws. Errors are truncated at 1, as in the paper."""
        cut = rows.assign(value=rows.value.clip(upper=POOR))
        whole = cut.series.str.endswith("a tuple")  # which are at 1 on all triples
        return pd.concat([cut[~whole], squares(cut)])
