"""Chen et al. 2012, Figure 6: joint distributions of two and three attributes, as published.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: section 5.2, Figure 6.
Read    from the text; the plot is not in our copy, and no error is printed.
Open    All cells of all 36 bivariate marginals are bought, Lap(36) at ε = 1. Maximum entropy makes a
        database of them; its α is not printed. Here 3·10⁻⁴, the best of 3·10⁻⁵, 10⁻⁴, 3·10⁻⁴ and 10⁻³
        on another draw of the twin (seed 1; 199,523 and 500,000 people agree on it), settled before the
        first run. "SGD as printed" is the paper's own fit, γ = 10⁻⁴ and 10⁶ steps of one chain, at the
        same α.
        Flipping: a bit a code. Joints of responses are unbiased ones with negative cells put to 0, scaled
        to the total; the paper says nothing of this, and it helps them. So are the noisy marginals
        treated, which it does not show. Errors, Σ|p − p̃|, are cut at 1 in the drawing, not before they
        are judged. What sampling alone does is the expected error of as many people drawn anew.
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
    """The expected Σ|p − p̃| of so many people drawn anew: de Moivre's, of each cell."""
    from scipy.stats import binom

    p = shares[(shares > 0) & (shares < 1)]
    k = np.floor(people * p) + 1
    return float((2 * k * (1 - p) * binom.pmf(k, people, p)).sum() / people)


@value
class JointErrors:
    """Σ|p − p̃| of every pair of attributes, and of triples; what sampling and no data would have."""

    triples: int

    def __call__(self, truth: SparseTable, estimate: Any) -> pd.DataFrame:
        """A row a joint that the estimate has."""
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
        """The triples: all, or so many by lot."""
        candidates = [*combinations(range(len(domain.shape)), 3)]
        if self.triples >= len(candidates):
            return candidates
        lots = np.random.default_rng(3).choice(len(candidates), self.triples, replace=False)
        return [candidates[lot] for lot in sorted(lots)]


def couples(pairs: pd.DataFrame) -> pd.DataFrame:
    """All couples of joints of unlike size: the values of the one of fewer cells, and of more."""
    both = pairs.merge(pairs, on="seed", suffixes=("", "_of_more"))
    both = both[both.cells < both.cells_of_more]
    both = both.assign(couple=both.joint + " | " + both.joint_of_more)
    fewer = both[["couple", "seed", "value"]].assign(series="fewer")
    more = both[["couple", "seed"]].assign(value=both.value_of_more, series="more")
    return pd.concat([fewer, more])


def for_each(rows, rivals, level: float, check: Callable) -> Finding:
    """Whether something is so of both responses."""
    return all_of({rival: partial(check, rows, rival) for rival in rivals}, level)


def check_best(rows, rivals, level: float) -> Finding:
    """Whether maximum entropy is below both on every pair."""
    return check_below_rivals(rows[rows.k == 2], rivals, level, "joint")


def check_small_only(rows, rival: str, level: float, well: float) -> Finding:
    """Whether errors are small up to some number of cells, and not beyond, at most pairs."""
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
    """Whether errors are 1 or more at most joints of k attributes, `wide` of which have many values."""
    there = rows[(rows.k == k) & (rows.wide >= wide) & (rows.series == rival)]
    if there.empty:
        raise claims.MissingPoints(f"no joints of {rival}")
    errors = means(there, rival, "joint")
    found = check_between(errors, level, low=POOR, share=OFTEN, words="1 or more")
    none = there.groupby("joint").no_data.first()
    span = f"{format_number(none.min())}–{format_number(none.max())}"
    return replace(found, measured=f"{found.measured}; no look at data has {span}")


def of_small(rows, level: float, of: str, well: float) -> Finding:
    """`check_small_only` of both responses at a γ."""
    check = partial(check_small_only, well=well)
    return for_each(of_case(rows, TWIN), RIVALS[of], level, check)


def of_wide(rows, level: float, of: str, which: str) -> Finding:
    """`check_poor` of both responses at a γ, where one attribute or both have many values."""
    check = partial(check_poor, k=2, wide={"one": 1, "both": 2}[which])
    return for_each(of_case(rows, TWIN), RIVALS[of], level, check)


def over_reasonable(rows, level: float) -> Finding:
    """Whether maximum entropy has so little an error on most triples, and less than both responses."""
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
    """A statement on pairs of each dataset."""
    return over_cases(rows[rows.k == 2], level, "data", check)


def check_growth(rows, level: float) -> Finding:
    """Whether, for each method, of most couples the one of more cells has the greater error."""

    def part(series: str, level: float) -> Finding:
        own = rows[rows.series == series]
        ratios = paired_ratios(couples(own), "fewer", "more", "couple")
        found = check_lower(ratios, level, OFTEN)
        return if_converged(rows, found) if series == ENTROPY else found

    methods = (ENTROPY, *RIVALS["an attribute's"])
    return all_of({name: partial(part, name) for name in methods}, level)


def check_sampling(rows, series: str, share: float, level: float) -> Finding:
    """Whether that is so of sampling alone, and whether it makes up such a share of a method's error."""
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
    """The same of each method, and of each share that "due to" may mean."""
    swept = ((ENTROPY, *RIVALS["an attribute's"]), DUE)
    return over_cases(rows[rows.k == 2], level, "data, method, share", check_sampling, *swept)


def attributes(rows: pd.DataFrame) -> dict[str, str]:
    """Full names of one dataset's, by the short ones."""
    names = {short: name for name, short in reversed(SHORT.items())}
    short = rows[rows.k == 2].joint.str.split(", ").explode().unique()
    return {name: names.get(name, name) for name in short}


def responses(rows: pd.DataFrame) -> list[str]:
    """Those at an attribute's γ, whatever it is."""
    return [x for x in rows.series.unique() if ", γ" in x and not x.endswith("a tuple")]


def squares(rows: pd.DataFrame) -> pd.DataFrame:
    """Boxes of mean errors of pairs, attribute × attribute: a response above, maximum entropy below."""
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
    """What maximum entropy makes of noisy pair tables, and randomised responses."""

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
        """Noisy pair tables, and responses at γ."""
        return self.sweeps_of(JointErrors(self.triples))

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Of each dataset pairs, attribute × attribute, and triples in the order of their cells."""
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
        """With the place of each joint among those of its kind, by cells."""
        rows = super().rows(store)
        joints = rows.drop_duplicates(["case", "joint"]).sort_values(["cells", "joint"])
        joints = joints.assign(by_cells=joints.groupby(["case", "k"]).cumcount() + 1)
        places = joints[["case", "joint", "by_cells"]]
        return rows.merge(places, on=["case", "joint"], how="left")

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Errors cut at 1, as in the paper; rows and columns of a square are attributes."""
        cut = rows.assign(value=rows.value.clip(upper=POOR))
        whole = cut.series.str.endswith("a tuple")  # which are at 1 on all triples
        return pd.concat([cut[~whole], squares(cut)])
