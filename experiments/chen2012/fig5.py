"""Figure 5 of Chen et al. (2012): running time of kernel PCA and maximum entropy.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: section 5.1, Figure 5, and the costs in sections 3 and 4.
Read    The plot is not in our copy, and the text prints no number. The printed cost O(n²r), where n is the
        number of records, should be O(m²r), where m is the number of queries.
Open    Queries are ranges on pairs of attributes of the stand-in. The panel "universe" uses the stand-in's
        largest attributes, up to all 1.3·10¹¹ cells. We added the last panel after the first run, and test no
        statement on it. It always has nine attributes, whose codes are merged. We time inference and the
        improved answers to all past queries. For kernel PCA, these are inner products, one
        eigendecomposition, and one α. Maximum entropy takes a fixed number of steps, as in the paper. It is
        not run until it converges, which may take more steps for more queries. "Buying" is the release
        itself, which is the only step that uses the data. The paper does not print how many queries are too
        many. Its only larger number is 29,570, the number of cells of all bivariate marginals. We time
        maximum entropy for this number, and extrapolate the time of kernel PCA from its growth between the
        two largest m that we time. A time is the best processor time of several runs, with one thread. Slow
        methods have no warm-up run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from io import StringIO

import numpy as np

from experiments._fields import effort, unprinted, unprinted_number
from experiments.benchmarks._timing import in_process, machine, seconds_in_turns
from experiments.chen2012.shared import (
    ENTROPY,
    KERNEL,
    convergence,
    fewer_attributes,
    fewer_codes,
)
from workbench import DP, SparseTable, Trial
from workbench.compiled import pd
from workbench.datasets import IPUMSTwin
from workbench.figures import Figure
from workbench.figures.fields import epsilon, whole
from workbench.figures.plots import Panel
from workbench.inference import KernelPCA, MaximumEntropy
from workbench.mechanisms import LaplaceQueries
from workbench.mechanisms.options import parameter_text
from workbench.queries import RandomMarginalRanges
from workbench.trials.claims import (
    ALIKE,
    ORDERS,
    Finding,
    MissingPoints,
    all_of,
    check_between,
    exact,
)
from workbench.value import format_number, value

BUYING = "buying the answers"
CARRIED = "kernel PCA, carried on"
SLOW = 1000  # queries; above, kernel PCA is slow
REPEAT_SLOW = 2
OVER = {
    "queries": "IPUMS twin",
    "universe": "IPUMS twin, largest attributes, m = {:,}",
    "tuples": "IPUMS twin, m = {:,}",
    "merged": "IPUMS twin, merged codes, m = {:,}",
}


# How running times grow, and whether they do as the paper says.


def along(panel: str) -> str:
    """Return the name of the column with the sizes of a panel."""
    return "universe" if panel == "merged" else panel


def times_over(rows, panel: str) -> pd.DataFrame:
    """Return the measured times by the sizes of a panel, without extrapolated times."""
    times = rows[rows.panel == panel].pivot_table("value", along(panel), "series", sort=True)
    return times[[KERNEL, ENTROPY, BUYING]]


def growth(times: pd.Series, first: int, base: float) -> float:
    """Return the factor by which times grow if the size grows by the factor `base`, estimated from point
    `first` and the last point.
    """
    sizes = times.index.to_numpy(float)
    grown = np.log(times.iloc[-1] / times.iloc[first]) / np.log(sizes[-1] / sizes[first])
    return float(base**grown)


def _known(number: float, **ends: float) -> Callable[[float], Finding]:
    """Return a check of a single number, which is the best of several times."""
    return partial(check_between, exact(pd.Series([number])), **ends)


def check_square(rows, level: float) -> Finding:
    """Check whether the time of kernel PCA grows at least as fast as m²."""
    times = times_over(rows, "queries")[KERNEL].dropna()
    return _known(growth(times, -2, 2), low=4)(level)


def check_too_many(rows, level: float) -> Finding:
    """Check whether kernel PCA takes too long for the largest number of queries."""
    times = rows[rows.panel == "queries"].pivot_table("value", "queries", "series")
    if CARRIED not in times:
        raise MissingPoints("no time that is carried on")
    most = times[CARRIED].last_valid_index()
    usual = times[KERNEL].last_valid_index()
    carried = times[CARRIED][most]
    parts = {
        f"against {usual:,.0f} queries": _known(carried / times[KERNEL][usual], low=ORDERS),
        f"against {ENTROPY}": _known(carried / times[ENTROPY][most], low=np.nextafter(1, 2)),
    }
    found = all_of(parts, level)
    told = f"carried on to {most:,.0f} queries: {format_number(carried)} s, "
    told += f"and {format_number(8e-9 * most**2)} GB a matrix"
    return replace(found, measured=f"{found.measured}; {told}")


def check_insensitive(rows, level: float, panel: str) -> Finding:
    """Check whether both approaches take at most 1.25 times as long for ten times the size."""
    times = times_over(rows, panel)
    parts = {
        name: _known(growth(times[name].dropna(), 0, 10), high=ALIKE)
        for name in (KERNEL, ENTROPY)
    }
    found = all_of(parts, level)
    buying = format_number(growth(times[BUYING].dropna(), 0, 10))
    return replace(found, measured=f"{found.measured}; {BUYING} grows {buying}×")


def improved_answers(method, history) -> np.ndarray:
    """Return improved answers to all past queries."""
    return method(history).answer(history.workload)


@value
class Fig5(Figure):
    """Processor time of both approaches by four sizes. It never comes from a store."""

    title = "Running time of inference from past answers"
    headline = "Kernel PCA's cost grows at least with the square of the number of queries"
    rests_on = ("n-5.1",)
    sharey = True
    page = "Chen et al., EDBT 2012, section 5.1, Figure 5"
    quick = {
        "queries": (125, 250, 500, 1000),
        "attributes": (2, 4, 9),
        "tuples": (5000, 50_000, 500_000),
        "merged": (8, 1),
        "usual_queries": 250,
        "many": 2000,
        "steps": 20,
        "repeat": 4,
    }
    sized_by = ("queries", "attributes", "tuples", "usual_queries", "many", "steps")

    epsilon: float = epsilon(1.0)
    queries: tuple[int, ...] = effort((250, 500, 1000, 2500, 5000), "number m of past queries")
    attributes: tuple[int, ...] = effort(
        (2, 3, 4, 6, 9), "numbers of attributes, those with the most codes", 2, 9
    )
    tuples: tuple[int, ...] = effort((5000, 50_000, 500_000, 2_000_000), "people")
    merged: tuple[int, ...] = effort((8, 4, 2, 1), "neighbouring codes merged")
    usual_queries: int = effort(1000, "m where something else varies")
    many: int = effort(29_570, "m from which kernel PCA's time is extrapolated")
    people: int = whole(500_000, "number of people where something else varies")
    kernel_alpha: float = unprinted_number(
        3000.0, "α of kernel PCA", strict=True, unit="tuples"
    )
    entropy_alpha: float = unprinted_number(1e-3, "α of maximum entropy", strict=True)
    chains: int = unprinted(2048, "number of chains of maximum entropy", 64, 2**22)
    steps: int = effort(200, "number of steps of maximum entropy")
    repeat: int = effort(9, "repetitions, of which the fastest counts")

    def datasets_run(self) -> list[IPUMSTwin]:
        """Return the synthetic stand-in with the usual number of people."""
        return [IPUMSTwin(self.people)]

    def rows(self, store) -> pd.DataFrame:
        """Time all methods in a separate process, and return one row per method and point.

        Linear algebra uses one thread there. Two threads would wait for each other, and the waiting would
        count as processor time.
        """
        one_thread = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
        values = {name: parameter_text(getattr(self, name)) for name in self.parameters()}
        return pd.read_csv(StringIO(in_process(print_rows, environment=one_thread, **values)))

    def measured(self) -> pd.DataFrame:
        """Time all methods in this process, and return the results."""
        table = IPUMSTwin(self.people).load()
        points = [("queries", table, m, m) for m in self.queries]
        for d in self.attributes:
            part = fewer_attributes(table, d)
            points.append(("universe", part, self.usual_queries, float(part.domain.size)))
        for codes in self.merged:
            part = fewer_codes(table, codes)
            points.append(("merged", part, self.usual_queries, float(part.domain.size)))
        for n in self.tuples:
            points.append(("tuples", IPUMSTwin(n).load(), self.usual_queries, n))
        rows = pd.DataFrame([row for point in points for row in self.timing_rows(*point)])
        return pd.concat([rows, self.carried_on(rows, table)], ignore_index=True)

    def carried_on(self, rows: pd.DataFrame, table: SparseTable) -> pd.DataFrame:
        """Return the time of maximum entropy for very many queries, and the extrapolated time of kernel PCA."""
        times = times_over(rows, "queries")[KERNEL].dropna()
        if len(times) < 2:
            return pd.DataFrame()
        history = self.history(table, self.many)
        timed = partial(improved_answers, self.entropy(table), history)
        (seconds,) = seconds_in_turns(timed, repeat=1, cold=[timed])
        grown = times.iloc[-1] * growth(times, -2, self.many / times.index[-1])
        own = rows[rows.panel == "queries"].iloc[:2].assign(m=self.many, queries=self.many)
        own = own.assign(**convergence(None), repeated=1)
        return own.assign(series=[CARRIED, ENTROPY], value=[grown, min(seconds)])

    def history(self, table: SparseTable, m: int):
        """Return noisy answers to m ranges."""
        mechanism = LaplaceQueries(DP(self.epsilon), RandomMarginalRanges(m))
        return Trial(IPUMSTwin(), mechanism, 0).release(table).estimate

    def entropy(self, table: SparseTable) -> MaximumEntropy:
        """Return maximum entropy with the settings that are timed."""
        fixed = dict(limit=0, chains=self.chains, steps=self.steps, tolerance=0.0)
        return MaximumEntropy(self.entropy_alpha, float(table.total), **fixed)

    def timing_rows(self, panel: str, table: SparseTable, m: int, x: float) -> list[dict]:
        """Return the time of each method in seconds, for m ranges over one table."""
        mechanism = LaplaceQueries(DP(self.epsilon), RandomMarginalRanges(m))
        history = self.history(table, m)
        entropy_method = self.entropy(table)
        kernel_method = KernelPCA(self.kernel_alpha, float(table.total))
        kernel = partial(improved_answers, kernel_method, history)
        entropy = partial(improved_answers, entropy_method, history)
        buying = partial(mechanism, table)
        slow = (entropy, buying)
        slow_seconds = seconds_in_turns(*slow, repeat=REPEAT_SLOW, cold=slow)
        if m > SLOW:
            kernel_seconds = seconds_in_turns(kernel, repeat=REPEAT_SLOW, cold=[kernel])
        else:
            kernel_seconds = seconds_in_turns(kernel, repeat=self.repeat)
        columns = {
            "panel": panel,
            "dataset": "IPUMSTwin",
            "truth_public": True,
            "epsilon": self.epsilon,
            "metric": "ProcessorTime",
            "m": m,
            along(panel): x,
            "machine": machine(),
        }
        names = (KERNEL, ENTROPY, BUYING)
        reached = {ENTROPY: convergence(entropy_method(history))}
        return [
            columns
            | {"series": name, "value": min(seconds), "repeated": len(seconds)}
            | reached.get(name, {})
            for name, seconds in zip(names, kernel_seconds + slow_seconds, strict=True)
        ]

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return one panel for each of the four sizes."""
        titles = {panel: title.format(self.usual_queries) for panel, title in OVER.items()}
        return [Panel(title, {"panel": panel}, along(panel)) for panel, title in titles.items()]


def print_rows(**values: str) -> None:
    """Print the results of a figure with these parameters, as CSV."""
    print(Fig5.at("paper", **values).measured().to_csv(index=False))
