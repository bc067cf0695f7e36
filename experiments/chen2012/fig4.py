"""Chen et al. 2012, Figure 4: both approaches as queries, ε, attributes and tuples vary.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: section 5.1, Figure 4.
Read    from the text, which says only that it is about 2-D range queries; the plots, and what is
        varied in them, are not in our copy. The four parameters are our reading: the number of past
        queries m, the privacy ε of all of them, the number of attributes (the first d), and of tuples.
Open    The twin of the paper's extract alone, as its size can be chosen. ε = 0.1 makes the noise of an
        answer, as computed from fewer queries, much like that of the paper's Lap(5000). (A first trial
        had ε = 1, where answers have a tenth of that noise and nothing is left to infer.) One of the
        four varies at a time.
        α is chosen in the same way for all: a fifth of a history's noisy answers is held out, the least
        squared error on these decides, which is free, and then the fit is of all. More chains and steps
        of maximum entropy fit better, and take an hour for all points.
        The errors are of the past queries, and of new ranges, purely from past answers.
Words   usually lower = below, intervals apart, at three quarters of all points of all four sweeps, with
        and without prior, each against kernel PCA with the same prior, on past queries. Comparable =
        kernel PCA with prior is within 1.25× of maximum entropy with prior, or below it, or intervals
        overlap, at three quarters of the points, on past queries. The same is asked of new queries
        beside it, and not judged.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd

from experiments.chen2012.data import NEW, PAST, WITH, WITHOUT, QueryBank
from experiments.chen2012.shared import ENTROPY, KERNEL, ErrorsOfBoth, FirstAttributes
from workbench import Sweep
from workbench.claims import ALIKE, Finding, confidence_intervals, decide, format_number
from workbench.claims.old import Claim, all_of, check_lower
from workbench.datasets import IPUMSTwin
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.parameters import number, numbers, queries, seeds, whole, wholes
from workbench.plots import Panel
from workbench.value import value

TITLES = {
    "queries": "past queries",
    "epsilon": "privacy",
    "attributes": "attributes",
    "tuples": "tuples",
}


def _error(rows, method: str, label: str, kind: str) -> pd.DataFrame:
    """Over all points, each once."""
    errors = rows[(rows.series == f"{method}, {label}") & (rows.kind == kind)]
    return confidence_intervals(errors.drop_duplicates([*TITLES, "seed"]), [*TITLES])


def _pair(rows, label: str, kind: str) -> list[pd.DataFrame]:
    return [_error(rows, method, label, kind) for method in (ENTROPY, KERNEL)]


def comparable(entropy: pd.DataFrame, kernel: pd.DataFrame) -> Finding:
    """Whether kernel PCA is within 1.25× of the other, or below, or not apart."""
    ratio = kernel["mean"] / entropy["mean"]
    near = ((ratio <= ALIKE) | (kernel.low <= entropy.high)).mean()
    far = (kernel.low > ALIKE * entropy.high).mean()
    measured = f"{format_number(ratio.min())}–{format_number(ratio.max())}× as large, "
    measured += f"comparable or below at {near:.0%} of {len(ratio)} points"
    holds = decide((ratio <= ALIKE).mean() >= 0.75, far > 0.25)
    return Finding(holds, measured, if_unsettled=bool(near >= 0.75))


def _parts(rows, kind: str) -> dict[str, Finding]:
    """The claim's parts, of past queries or of new ones."""
    parts = {
        f"lower, {label}": check_lower(*_pair(rows, label, kind)) for label in (WITHOUT, WITH)
    }
    return parts | {"kernel PCA with prior comparable": comparable(*_pair(rows, WITH, kind))}


def _lower(rows) -> Finding:
    return all_of(_parts(rows, PAST))


CLAIMS = (
    Claim(
        "n-4",
        "Maximum entropy usually has the lower RMSE; kernel PCA with prior and a good α is comparable.",
        _lower,
        "With a prior kernel PCA is level with it, or better where few queries, few attributes or "
        "little noise leave little to infer; without one maximum entropy is lower at most points. At "
        "ε = 1 kernel PCA returns the bought answers, which a fit in few steps does not reach.",
    ),
)


@value
class Fig4(Figure):
    """One parameter varies at a time, from past ranges over two attributes."""

    title = "Kernel PCA and maximum entropy over four parameters"
    page = "Chen et al., EDBT 2012, section 5.1, Figure 4"
    quick = {
        "past": (300, 600),
        "epsilons": (0.1, 1.0),
        "attributes": (4, 9),
        "tuples": (50_000, 500_000),
        "usual_past": 300,
        "weights": (0.3,),
        "chains": 256,
        "steps": 60,
        "seeds": 2,
    }
    claims = CLAIMS

    past: tuple[int, ...] = wholes((500, 1000, 2000), "m, the past queries", kind=EFFORT)
    epsilons: tuple[float, ...] = numbers(
        (0.03, 0.1, 1.0), "privacy budgets ε of all past answers", 1e-6, 1000, kind=EFFORT
    )
    attributes: tuple[int, ...] = wholes((3, 6, 9), "attributes", 2, 9, kind=EFFORT)
    tuples: tuple[int, ...] = wholes((50_000, 150_000, 500_000), "people", kind=EFFORT)
    usual_past: int = whole(1000, "m where something else varies", kind=EFFORT)
    epsilon: float = number(0.1, "ε where something else varies", 1e-6, 1000, kind=UNPRINTED)
    prior_epsilon: float = number(0.02, "privacy budget ε of the prior", 1e-6, 1000)
    people: int = whole(500_000, "people where something else varies")
    alphas: tuple[float, ...] = numbers(
        tuple(np.geomspace(10, 1e7, 13).round(1).tolist()),
        "α of kernel PCA that are tried",
        strict=True,
        unit="tuples",
        kind=UNPRINTED,
    )
    weights: tuple[float, ...] = numbers(
        (0.03, 0.3, 3.0),
        "largest weights of maximum entropy (αN/b) that are tried",
        strict=True,
        unit="nats",
        kind=EFFORT,
    )
    chains: int = whole(512, "chains of maximum entropy", 64, 2**22, kind=EFFORT)
    steps: int = whole(100, "steps of maximum entropy, at most", kind=EFFORT)
    queries: int = queries(500, "new queries")
    seeds: int = seeds(3, "histories, each of queries and noise of its own")

    def sweeps(self) -> dict[str, Sweep]:
        """A panel a parameter; the point that they share is one trial."""
        usual = QueryBank(self.epsilon, self.prior_epsilon, queries=self.usual_past)
        data = IPUMSTwin(self.people)
        narrow = [data if d == 9 else FirstAttributes(data, d) for d in self.attributes]
        fit = dict(chains=self.chains, steps=self.steps)
        errors = ErrorsOfBoth(self.alphas, self.weights, self.queries, **fit)
        runs = {
            "queries": ([data], [replace(usual, queries=m) for m in self.past]),
            "epsilon": ([data], [replace(usual, epsilon=x) for x in self.epsilons]),
            "attributes": (narrow, [usual]),
            "tuples": ([replace(data, records=n) for n in self.tuples], [usual]),
        }
        return {panel: Sweep(*run, [errors], self.seeds) for panel, run in runs.items()}

    def rows(self, store) -> pd.DataFrame:
        """Methods are the series."""
        rows = super().rows(store)
        return rows.assign(series=rows.method)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """A panel a parameter: past queries above, new ones below."""
        return [
            Panel(f"{TITLES[sweep]}: {kind} ranges", {"panel": sweep, "kind": kind}, sweep)
            for sweeps in (("queries", "epsilon"), ("attributes", "tuples"))
            for kind in (PAST, NEW)
            for sweep in sweeps
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """RMSE of past and new queries, a row a point; what was bought has the noise."""
        lines = []
        for sweep in rows.panel.unique():
            for x, errors in rows[rows.panel == sweep].groupby(sweep):
                line = {"varied": TITLES[sweep], "value": f"{x:g}"}
                line["noise bought"] = format_number(float(errors.deviation.mean()))
                means = errors.groupby(["kind", "series"]).value.mean()
                for kind in (PAST, NEW):
                    for series in errors.series.unique():
                        line[f"{kind}: {series}"] = format_number(means[kind, series])
                lines.append(line)
        return pd.DataFrame(lines).set_index(["varied", "value"])

    def new_queries(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The claim's two halves, asked of new queries; not judged."""
        marks = {True: "yes", False: "no", None: "not settled"}
        lines = [
            {"": label, "holds": marks[finding.holds], "measured": finding.measured}
            for label, finding in _parts(rows, NEW).items()
        ]
        return pd.DataFrame(lines).set_index("")
