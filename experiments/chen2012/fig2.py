"""Figure 2 of Chen et al. (2012): errors of kernel PCA and maximum entropy by their trade-off α.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: section 5.1, Figure 2.
Read    The plots are not in our copy, and the text prints no number. Panel (c) is about one kind of queries
        and (d) about two. The text does not say which. We run new ranges and new tables, from both kinds of
        past queries.
Open    m, the noise and the prior are the paper's. The α of kernel PCA is in records. That of maximum entropy
        is given as αN/b, the largest weight of an answer. Both are drawn on one axis, where α of kernel PCA
        is in standard deviations of the noise. The paper does not say which values of α it draws. Our
        smallest value gives almost the prior alone. The largest gives almost the unbiased answers, which
        kernel PCA also has at α = ∞. Our inner products are averages over the prior. If the paper's are sums,
        its α differs by the factor √N. Intervals are uniform among all non-empty intervals. The errors of
        kernel PCA are expected values over the noise, computed by a formula. Maximum entropy is fitted up to
        a weight of 1. At a weight of 3, its fits do not converge and end 150 to 470 nats below the optimum,
        so its errors at larger α are unknown. The text also mentions the union of past and new queries, which
        no panel shows. We run it on the stand-in, with ranges, and choose α by cross-validation. Figure 3
        also has noise for the computed sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product

import numpy as np

from experiments._fields import effort, effort_number, unprinted
from experiments.chen2012.approaches import (
    ALONE,
    UNION,
    Approaches,
    ErrorsOfUnion,
    ErrorsOverAlpha,
    finite,
)
from experiments.chen2012.data import (
    CENSUS,
    PAST,
    RECIPES,
    TWIN,
    OverAlpha,
    QueryBank,
    UnionBank,
    datasets,
)
from experiments.chen2012.shared import (
    KERNEL,
    of_case,
    of_neither,
    open_where_far,
    over_cases,
    unless_far,
)
from workbench import Sweep
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.fields import queries, seeds
from workbench.figures.plots import Panel
from workbench.trials import claims
from workbench.trials.claims import (
    SOMEWHERE,
    Finding,
    Intervals,
    all_of,
    check_between,
    check_lower,
    paired_ratios,
)
from workbench.value import value

CURVE = ["approach", "prior", "bought", "asked"]
DATA = (TWIN, CENSUS)
REASONABLE = (1, 2, 3)  # times the error of a bought answer
PAST_PANELS = {"ranges": "a", "tables": "b"}
COLUMNS = ["case", "panel", "asked", "bought"]


# What its curves over α show, and whether it is as the paper says.
#
# A curve is one approach without or with prior, from past queries of one kind (`bought`), on queries of the
# past or new ones of a kind (`asked`). If a fit of maximum entropy did not converge, its error is unknown.


def for_each(rows, level: float, columns: list[str], check: Callable) -> Finding:
    """Check whether a statement holds in every group of rows."""
    groups = rows.groupby(columns, sort=False)
    return all_of({", ".join(name): partial(check, own) for name, own in groups}, level)


def over_data(rows, level: float, check: Callable) -> Finding:
    """Repeat a check on each dataset."""
    return over_cases(rows, level, "data", check)


def over_kinds(rows, level: float, check: Callable, **where: str) -> Finding:
    """Repeat a check for both kinds of new queries, on each dataset, and for each meaning of "reasonable"
    errors. The past queries are of both kinds.
    """
    for column, name in where.items():
        rows = rows[rows[column] == name]

    def at(setting: tuple[str, str, int], level: float) -> Finding:
        asked, case, times = setting
        own = of_case(rows, case)
        own = own[own.asked == asked].assign(deviation=times * own.deviation)
        return for_each(own, level, CURVE, check)

    settings = tuple(product(RECIPES, DATA, REASONABLE))
    return of_neither(claims.over("asked, data, reasonable", settings, at, level))


# --- single curves


def ratios(curve, other: pd.Series) -> Intervals:
    """Return a curve divided by another number for each of its rows, by seed, at every α."""
    both = [curve.assign(series="own"), curve.assign(series="other", value=other)]
    known = paired_ratios(pd.concat(both), "own", "other", "alpha")
    return open_where_far(known, curve.groupby("alpha").lacks.max())


def somewhere_lower(curve, other: pd.Series, level: float) -> Finding:
    """Check whether a curve is lower than another number at some α."""
    found = check_lower(ratios(curve, other), level, SOMEWHERE)
    return unless_far(curve.lacks.max(), found) if found.holds is None else found


def check_good(curve, level: float) -> Finding:
    """Check whether, at some α, the error is smaller than `deviation`, the error of a bought answer times the
    meaning of "reasonable".
    """
    grid = finite(curve)
    return somewhere_lower(grid, grid.deviation, level)


def check_beats(curve, level: float, end: int) -> Finding:
    """Check whether some α has a smaller error than the smallest α (end 0) or the largest α (end −1)."""
    grid = finite(curve)
    alpha = np.sort(grid.alpha.unique())[end]
    there = grid[grid.alpha == alpha]
    rest = grid[grid.alpha != alpha]
    found = somewhere_lower(rest, rest.seed.map(there.set_index("seed").value), level)
    return unless_far(there.lacks.max(), found)


def check_works(curve, level: float) -> Finding:
    """Check whether answers are reasonable at some α, and better there than at the smallest α."""
    smallest = partial(check_beats, curve, end=0)
    parts = {
        "reasonable": partial(check_good, curve),
        "better than at the smallest α": smallest,
    }
    return all_of(parts, level)


def check_needs_small(curve, level: float) -> Finding:
    """Check whether answers are reasonable at some α, but not at the largest α or at ∞, and whether they are
    better than at the smallest α.
    """
    large = curve[curve.alpha >= finite(curve).alpha.max()]

    def unreasonable(level: float) -> Finding:
        numbers = ratios(large, large.deviation)
        return check_between(numbers, level, low=1, words="not reasonable")

    parts = {"works": partial(check_works, curve), "not at the largest α and ∞": unreasonable}
    return all_of(parts, level)


# --- the union


def check_improves(rows, level: float) -> Finding:
    """Check whether past answers improve the answers to new queries, so that these are better than the bought
    ones.
    """
    own = rows.assign(series=rows.history)
    bought = own[own.series == UNION].assign(series="bought", value=rows.deviation)
    both = pd.concat([own, bought])
    parts = {
        "than alone": partial(check_lower, paired_ratios(both, UNION, ALONE, "added")),
        "than bought": partial(check_lower, paired_ratios(both, UNION, "bought", "added")),
    }
    return unless_far(rows.lacks.max(), all_of(parts, level))


def over_added(rows, level: float) -> Finding:
    """Repeat a check for each number of new queries."""
    union = of_case(rows, UNION)
    check = partial(for_each, columns=["approach", "prior"], check=check_improves)
    counts = tuple(sorted(union.added.astype(int).unique().tolist()))
    return claims.over(
        "new queries", counts, lambda n, at: check(union[union.added == n], at), level
    )


def panel_of(bought: str, asked: str) -> str:
    """Return the panel with such past and new queries."""
    if asked == PAST:
        return PAST_PANELS[bought]
    return "c" if asked == bought else "d"


@value
class Fig2(OverAlpha, Figure):
    """Errors of both approaches by α, with and without a prior, on past and on new queries. There are two
    kinds of bought queries.
    """

    title = "Error of both approaches over their trade-off α"
    headline = "With α too small, estimates are biased and the error grows"
    rests_on = ("n-2a.3",)
    height = 1.8
    sharey = True
    main = 4
    page = "Chen et al., EDBT 2012, section 5.1, Figure 2"
    quick = {
        "data": (TWIN,),
        "past": 400,
        "queries": 100,
        "weights": (0.03, 0.3),
        "chains": 256,
        "steps": 50,
        "added": (40,),
        "union_weights": (0.3,),
        "seeds": 2,
    }
    sized_by = ("past", "queries", "weights", "added", "union_weights")

    past: int = effort(5000, "number m of past queries")
    queries: int = queries(1000, "number of new queries of each kind")
    weights: tuple[float, ...] = effort_number(
        (0.003, 0.01, 0.03, 0.1, 0.3, 1.0),
        "α of maximum entropy, as the largest weights αN/b",
        strict=True,
        unit="nats",
    )
    chains: int = effort(512, "number of chains of maximum entropy", 64, 2**22)
    steps: int = effort(2400, "largest number of steps of maximum entropy")
    added: tuple[int, ...] = effort(
        (100, 1000, 5000), "number of new queries that are also bought"
    )
    union_weights: tuple[float, ...] = effort_number(
        (0.03, 0.3, 1.0), "weights αN/b that the union tries", strict=True, unit="nats"
    )
    folds: int = unprinted(5, "number of folds of cross-validation in the union", 2)
    seeds: int = seeds(6, "number of histories, each with other queries and noise")

    @property
    def tried(self) -> Approaches:
        """Settings of both approaches that the figure tries."""
        return Approaches(self.alphas, self.weights, self.chains, self.steps, self.folds)

    @property
    def metric(self) -> ErrorsOverAlpha:
        """Metric of the figure: errors of both approaches by α."""
        return ErrorsOverAlpha(self.tried, self.queries)

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs: each dataset with the printed noise, and the union of past and new
        answers.
        """
        budgets = (self.epsilon, self.prior_epsilon)
        sizes = dict(queries=self.past, scale=self.scale)
        banks = [QueryBank(*budgets, past=kind, **sizes) for kind in RECIPES]
        all_data = datasets(self.data)
        runs = {
            name: Sweep([data], banks, [self.metric], self.seeds)
            for name, data in all_data.items()
        }
        if TWIN in all_data:
            both = [UnionBank(*budgets, **sizes, added=count) for count in self.added]
            errors = ErrorsOfUnion(replace(self.tried, weights=self.union_weights))
            runs[UNION] = Sweep([all_data[TWIN]], both, [errors], self.seeds)
        return runs

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, named by the kinds of bought and of new queries."""
        rows = super().rows(store)
        return self.named(rows.assign(case=rows.panel, bought=rows.past))

    def named(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results with their panels and curves, and with α in units that both approaches share."""
        union = rows.case == UNION
        kinds = zip(rows.bought, rows.asked, strict=True)
        panels = np.where(union, UNION, [panel_of(bought, asked) for bought, asked in kinds])
        series = rows.approach + ", " + rows.prior
        noise = np.where(rows.approach == KERNEL, np.sqrt(2) * self.scale, 1.0)
        return rows.assign(panel=panels, series=series, relative_alpha=rows.alpha / noise)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels for each dataset and kinds of queries, with the synthetic stand-in
        first. A dashed line shows the noise of a bought answer.
        """
        grid = []
        curves = rows[rows.panel != UNION]

        def place(group) -> tuple:
            case, _, asked, _ = group[0]  # in the picture: new ranges where new are asked
            drawn = case == TWIN and asked in (PAST, "ranges")
            return not drawn, case != TWIN, group[0]

        for (case, _, asked, bought), own in sorted(curves.groupby(COLUMNS), key=place):
            where = {"case": case, "asked": asked, "bought": bought}
            kind = f"past {bought}" if asked == PAST else f"new {asked} from past {bought}"
            dashes = partial(np.full_like, fill_value=float(own.deviation.mean()))
            title = f"{kind}: {case}"
            theory = ("noise of a bought answer", dashes)
            grid.append(Panel(title, where, "relative_alpha", theory=theory))
        if len(curves) < len(rows):
            for history in (ALONE, UNION):
                where = {"case": UNION, "history": history}
                grid.append(
                    Panel(f"new ranges, from {history} answers: {TWIN}", where, "added")
                )
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results without those at α = ∞, which no axis shows."""
        return rows[~np.isinf(rows.relative_alpha)]
