"""Figure 4 of Chen et al. (2012): errors of kernel PCA and maximum entropy by the number of queries, the
noise, the number of attributes, and the number of people.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: section 5.1, Figure 4.
Read    The text only says that the figure is about range queries on two attributes. The plots are not in our
        copy. We assume four parameters: the number of past queries m, the scale of their noise, the number of
        attributes (the first d), and the number of people.
Open    One of the four parameters varies at a time, from the paper's setting. The number of people varies
        only for the stand-in, whose size can be chosen. For both approaches, α is chosen by 5-fold
        cross-validation, which costs no budget. For comparison, we show kernel PCA at the α with the smallest
        true error, which nobody knows in practice. With more steps, maximum entropy could reach a larger
        weight. If the chosen fit did not converge, its error is unknown.
"""

from __future__ import annotations

from dataclasses import replace

from experiments._fields import effort, effort_number
from experiments.chen2012.approaches import LEAST, Approaches, ErrorsOfBoth
from experiments.chen2012.data import NEW, PAST, TWIN, WITH, OverAlpha, QueryBank, datasets
from experiments.chen2012.shared import (
    ENTROPY,
    KERNEL,
    FirstAttributes,
    open_where_far,
    over_cases,
    unless_far,
)
from workbench import Sweep
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.fields import queries, seeds, whole
from workbench.figures.plots import Panel
from workbench.trials.claims import (
    ALIKE,
    OFTEN,
    Finding,
    Intervals,
    check_between,
    check_lower,
    paired_ratios,
)
from workbench.value import format_number, value

VARIED = ["queries", "scale", "attributes", "tuples"]
POINT = [*VARIED, "prior"]


def ratios(rows, ours: str, other: str) -> Intervals:
    """Return the error of one approach divided by that of another, at every point. If a fit did not converge,
    the ratio may be any number.
    """
    own = rows.drop_duplicates([*POINT, "approach", "seed"])
    known = paired_ratios(own.assign(series=own.approach), ours, other, POINT)
    return open_where_far(known, own.groupby(POINT).lacks.max())


def check_often_lower(rows, level: float) -> Finding:
    """Check whether maximum entropy has a smaller error than kernel PCA with the same prior, at most points."""
    found = check_lower(ratios(rows, ENTROPY, KERNEL), level, OFTEN)
    return found if found.holds is not None else unless_far(rows.lacks.max(), found)


def check_comparable(rows, level: float) -> Finding:
    """Check whether kernel PCA with the prior has at most 1.25 times the error of maximum entropy, at most
    points.
    """
    own = rows[rows.prior == WITH]
    found = check_between(
        ratios(own, KERNEL, ENTROPY), level, high=ALIKE, share=OFTEN, words="comparable"
    )
    least = ratios(own, LEAST, ENTROPY).at(level).estimate
    span = f"{format_number(least.min())}–{format_number(least.max())}×"
    found = replace(found, measured=f"{found.measured}; {span} at the least true error")
    return found if found.holds is not None else unless_far(own.lacks.max(), found)


def over_kinds(rows, level: float, check) -> Finding:
    """Repeat a check on each dataset, for past and for new queries."""

    def of_kind(own, kind: str, level: float) -> Finding:
        return check(own[own.kind == kind], level)

    return over_cases(rows, level, "data, queries", of_kind, (PAST, NEW))


@value
class Fig4(OverAlpha, Figure):
    """Errors of both approaches from past ranges over two attributes. One parameter varies at a time."""

    height = 1.7
    sharey = True
    main = 4
    title = "Kernel PCA and maximum entropy over four parameters"
    page = "Chen et al., EDBT 2012, section 5.1, Figure 4"
    quick = {
        "data": (TWIN,),
        "past": (300, 400),
        "scales": (2000.0, 5000.0),
        "attributes": (4, 9),
        "tuples": (50_000, 500_000),
        "usual_past": 400,
        "weights": (0.3,),
        "chains": 256,
        "steps": 50,
        "seeds": 2,
    }
    sized_by = ("past", "scales", "attributes", "tuples", "usual_past", "weights")

    past: tuple[int, ...] = effort((1250, 2500, 5000), "number m of past queries")
    scales: tuple[float, ...] = effort_number(
        (2000.0, 5000.0, 12_500.0), "scales of the noise", strict=True, unit="tuples"
    )
    attributes: tuple[int, ...] = effort((3, 6, 9), "number of attributes", 2, 9)
    tuples: tuple[int, ...] = effort((50_000, 150_000, 500_000), "number of people")
    usual_past: int = effort(5000, "m where something else varies")
    people: int = whole(500_000, "people in the stand-in where something else varies")
    weights: tuple[float, ...] = effort_number(
        (0.03, 0.3, 1.0),
        "α of maximum entropy, as the largest weights αN/b",
        strict=True,
        unit="nats",
    )
    chains: int = effort(512, "number of chains of maximum entropy", 64, 2**22)
    steps: int = effort(2400, "largest number of steps of maximum entropy")
    folds: int = whole(5, "number of folds of cross-validation on past answers", 2)
    queries: int = queries(500, "number of new queries")
    seeds: int = seeds(5, "number of histories, each with other queries and noise")

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs, with one panel per dataset and parameter. The point that all parameters
        share is a single run.
        """
        budgets = (self.epsilon, self.prior_epsilon)
        usual = QueryBank(*budgets, queries=self.usual_past, scale=self.scale)
        tried = Approaches(self.alphas, self.weights, self.chains, self.steps, self.folds)
        errors = ErrorsOfBoth(tried, self.queries)
        sweeps = {}
        for name, data in datasets(self.data, self.people).items():
            has = len(data.domain.attributes)
            narrow = [
                data if d == has else FirstAttributes(data, d)
                for d in self.attributes
                if d <= has
            ]
            runs = {
                "queries": ([data], [replace(usual, queries=m) for m in self.past]),
                "scale": ([data], [replace(usual, scale=b) for b in self.scales]),
                "attributes": (narrow, [usual]),
            }
            if name == TWIN:
                runs["tuples"] = ([replace(data, records=n) for n in self.tuples], [usual])
            for parameter, run in runs.items():
                sweeps[f"{name}: {parameter}"] = Sweep(*run, [errors], self.seeds)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with one curve per approach and prior."""
        rows = super().rows(store)
        names = rows.panel.str.split(": ", n=1, expand=True)
        series = rows.approach + ", " + rows.prior
        return rows.assign(case=names[0], panel=names[1], series=series)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel per dataset, kind of queries and parameter. New ranges on the synthetic stand-in
        are first.
        """
        cases = sorted(rows.case.unique(), key=lambda case: case != TWIN)
        varied = rows.drop_duplicates(["case", "panel"])
        return [
            Panel(
                f"{case}, {kind} ranges",
                {"case": case, "panel": panel, "kind": kind},
                panel,
                bars=True,
            )
            for case in cases
            for kind in (NEW, PAST)
            for panel in varied[varied.case == case].panel
        ]

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return the results that the figure draws. Kernel PCA is drawn at the α that cross-validation chose.
        Points are not joined, because there are few.
        """
        drawn = rows[~rows.series.str.contains("at the least true error")]
        return drawn.assign(**{x: drawn[x].map("{:,.0f}".format) for x in VARIED})
