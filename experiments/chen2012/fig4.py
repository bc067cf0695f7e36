"""Chen et al. 2012, Figure 4: both approaches as queries, noise, attributes and people vary.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: section 5.1, Figure 4.
Read    from the text, which says only that it is about 2-D range queries; the plots, and what is
        varied in them, are not in our copy. The four parameters are our reading: the number of past
        queries m, the scale of their noise, the number of attributes (the first d), and of people.
Open    One of the four varies at a time from the paper's setting; how many people there are varies on
        the twin alone, whose size can be chosen. α is chosen by 5-fold cross-validation for both
        approaches, which is free. Kernel PCA at the α of the least true error, which nobody knows, stands
        beside. More steps of maximum entropy reach a larger weight; where the chosen fit did not
        converge nothing is known of its error.
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
    """One approach against another at every point; at what did not converge it may be anything."""
    own = rows.drop_duplicates([*POINT, "approach", "seed"])
    known = paired_ratios(own.assign(series=own.approach), ours, other, POINT)
    return open_where_far(known, own.groupby(POINT).lacks.max())


def check_often_lower(rows, level: float) -> Finding:
    """Whether maximum entropy has less error than kernel PCA of the same version at most points."""
    found = check_lower(ratios(rows, ENTROPY, KERNEL), level, OFTEN)
    return found if found.holds is not None else unless_far(rows.lacks.max(), found)


def check_comparable(rows, level: float) -> Finding:
    """Whether kernel PCA with prior has at most 1.25× the error of maximum entropy at most points."""
    own = rows[rows.prior == WITH]
    found = check_between(
        ratios(own, KERNEL, ENTROPY), level, high=ALIKE, share=OFTEN, words="comparable"
    )
    least = ratios(own, LEAST, ENTROPY).at(level).estimate
    span = f"{format_number(least.min())}–{format_number(least.max())}×"
    found = replace(found, measured=f"{found.measured}; {span} at the least true error")
    return found if found.holds is not None else unless_far(own.lacks.max(), found)


def over_kinds(rows, level: float, check) -> Finding:
    """A statement on each dataset, of past queries and of new ones."""

    def of_kind(own, kind: str, level: float) -> Finding:
        return check(own[own.kind == kind], level)

    return over_cases(rows, level, "data, queries", of_kind, (PAST, NEW))


@value
class Fig4(OverAlpha, Figure):
    """One parameter varies at a time, from past ranges over two attributes."""

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
        """A panel a dataset and parameter; the point that they share is one trial."""
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
        """Approaches without and with prior are the series."""
        rows = super().rows(store)
        names = rows.panel.str.split(": ", n=1, expand=True)
        series = rows.approach + ", " + rows.prior
        return rows.assign(case=names[0], panel=names[1], series=series)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """A panel a dataset, kind of queries and parameter: new ranges of the twin first."""
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
        """Kernel PCA at the α that cross-validation chose; of so few points none are joined."""
        drawn = rows[~rows.series.str.contains("at the least true error")]
        return drawn.assign(**{x: drawn[x].map("{:,.0f}".format) for x in VARIED})
