"""Simulation that runs candidate mechanisms on simulated data and computes their errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, replace
from importlib.metadata import entry_points
from itertools import combinations
from math import inf, isnan, nan, sqrt
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from workbench import mechanisms
from workbench.compiled import find, pd, stated_modules
from workbench.data import Interactions, Records, SparseTable
from workbench.estimates import Histogram, Summary
from workbench.mechanisms.histograms import BYTES_PER_CELL
from workbench.mechanisms.protocol import series_name
from workbench.owner.advice.beliefs import MARGINALS, Beliefs, marginal_cells, strings_of
from workbench.privacy import DP, LOCAL, ZCDP
from workbench.queries import Dyadic, Haar, Marginals, Nodes, Products, RandomBoxes, Ranges
from workbench.spaces import Domain, Prefixes, Quadtree
from workbench.trials import run, watched
from workbench.trials.metrics import MeanSquaredCountError
from workbench.trials.sweep import Sweep
from workbench.value import number, stated

_ASKED = 300  # queries of a kind
_MARGINAL_TASKS = "all", "marginals", "rows"
_SYMBOLS = {"theta": "θ", "tau": "τ"}


@dataclass(frozen=True)
class Row:
    """Errors of one mechanism on simulated data.

    Parameters
    ----------
    name : str
        Name of the mechanism with its most important parameters.
    mechanism : Mechanism
        Mechanism with these parameters, which you can call on the private table.
    errors : dict
        Mean absolute error for each kind of query, as a number of records. For the task "users", the error is
        the root mean squared error of the items' counts. Only queries that contain records are used. The error
        is NaN if a release cannot answer this kind of query.
    cells : float
        Mean number of cells, nodes or answers in a release.
    noise_cells : float
        Mean number of released cells that are empty in the table. The counts of these cells consist of noise
        only. `noise_cells` is NaN if a release contains no cells.
    cost : str
        Privacy guarantee of a release, in symbols.
    seconds : float
        Time that one release of the simulated data takes, in seconds.
    score : float
        Relative error by which mechanisms are ordered. For each kind of query, the workbench divides the error
        by the mean true answer. The score is the geometric mean of these ratios. A release without any
        information has the score 1.
    key : tuple
        Identifier of the mechanism and its parameters, which is the same for every ε.
    """

    name: str
    mechanism: Any
    errors: dict[str, float]
    cells: float
    noise_cells: float
    cost: str
    seconds: float
    score: float
    key: Any = None

    @property
    def unanswered(self) -> int:
        """Number of kinds of query that a release cannot answer."""
        return sum(map(isnan, self.errors.values()))


@dataclass(frozen=True)
class Clock:
    """Time limit for a part of the simulation, with a function that shows the progress."""

    end: float
    show: Callable[[str, float], Any]

    @classmethod
    def of(cls, seconds: float, show: Callable[[str, float], Any]) -> Clock:
        """Return a clock that ends after the given number of seconds."""
        return cls(perf_counter() + seconds, show)

    def left(self) -> bool:
        """Return whether time is left."""
        return perf_counter() < self.end


@dataclass(frozen=True)
class Question:
    """Metric of trials that computes the error of a release for one kind of query. The error is the mean
    absolute error of the answers or, for the task "users", the root mean squared error of counts. The true
    answers are computed only once.
    """

    kind: str
    workload: Any
    answers: Any = field(compare=False, repr=False)

    @property
    def exact(self) -> float:
        """Mean of the true answers, in counts."""
        return float(self.answers.mean())

    def __call__(self, truth: Any, estimate: Any) -> pd.DataFrame:
        """Return a row with the error of an estimate, whose answers are compared with the simulated truth."""
        error = nan
        if self.workload is None:
            error = sqrt(MeanSquaredCountError("items")(truth, estimate))
        else:
            with suppress(ValueError, TypeError, AttributeError):
                error = float(np.abs(estimate.answer(self.workload) - self.answers).mean())
        noise = _noise_cells(truth, estimate)
        return pd.DataFrame([dict(kind=self.kind, value=error, noise_cells=noise)])


def _noise_cells(truth: Any, estimate: Any) -> float:
    """Return the number of released cells that are empty in the table, or NaN if the release has no
    cells.
    """
    if not isinstance(truth, SparseTable) or getattr(estimate, "transform", None) is not None:
        return nan
    if isinstance(estimate, Histogram) and len(estimate) == truth.domain.size:
        return truth.domain.size - len(truth)
    if type(estimate) is not Summary:
        return nan
    return float((~np.isin(estimate.keys, truth.keys)).sum())


# Queries


def questions(
    beliefs: Any,
    task: str,
    queries: Sequence[int] | None,
    shape: Sequence[int] | None,
    order: int,
) -> list[Question]:
    """Return the kinds of query on which mechanisms are compared, each as a metric. The most important kind
    for the task comes first. The queries are drawn so that they contain records.
    """
    data = beliefs.load()
    rng = np.random.default_rng(1)
    if task == "users":
        return [Question("item", None, np.bincount(data.items, minlength=data.domain.shape[0]))]
    if task == "records":
        name, regions = _regions(beliefs.domain)
        return [Question(name, regions, data.answer(regions))]
    domain = beliefs.domain
    if task == "degrees":
        rank = np.sort(rng.integers(domain.size - len(data), domain.size, _ASKED))
        places = Ranges(rank, rank + 1)
        return [Question("sorted count", places, data.ranked().answer(places))]
    keys = rng.choice(data.keys, _ASKED, p=data.counts / data.counts.sum())
    codes = domain.codes(keys)
    asked: dict[str, Any] = {}
    if task in ("all", "cells"):
        asked["cell"] = Ranges(keys, keys + 1)
    if task in ("all", "ranges"):
        per_cell = domain.size / len(data)
        for cells in queries or sorted({round(n * per_cell) for n in (100, 10_000)}):
            if not 1 <= cells <= domain.size:
                if queries:
                    raise ValueError(
                        f"queries: a range of {cells:,} cells does not fit the domain"
                    )
                continue
            lo = np.clip(keys - rng.integers(0, cells, _ASKED), 0, domain.size - cells)
            asked[f"range of {cells:,}"] = Ranges(lo, lo + cells)
    if task == "boxes":
        sides = [*(shape or [-(-n // 4) for n in domain.shape])]
        most = domain.shape
        if len(sides) != len(most) or not all(
            1 <= x <= n for x, n in zip(sides, most, strict=True)
        ):
            raise ValueError(f"a box of {sides} labels does not fit a domain of {most}")
        lo = np.clip(
            codes - rng.integers(0, sides, codes.shape), 0, np.array(domain.shape) - sides
        )
        asked[f"box of {' × '.join(map(str, sides))}"] = Products.boxes(domain, lo, lo + sides)
    if task in ("all", "marginals", "rows") and len(domain.shape) > 1:
        orders = [order] if task == "marginals" else sorted({1, order})
        for k in orders:
            terms = []
            sets = list(combinations(range(len(domain.shape)), k))
            for i, code in enumerate(codes.tolist()):
                chosen = sets[i % len(sets)]
                terms.append({domain.attributes[a]: (code[a], code[a] + 1) for a in chosen})
            if k < len(domain.shape) or task != "all":
                asked[f"marginal of {k}"] = Products.of(domain, terms)
    return [Question(kind, workload, data.answer(workload)) for kind, workload in asked.items()]


def _regions(tree: Quadtree | Prefixes) -> tuple[str, Any]:
    """Return queries for points or strings. For points, each query is a box whose sides are a quarter of the
    sides of the domain. For strings, each query asks how many strings begin with the first one or two symbols
    of a frequent string.
    """
    if isinstance(tree, Quadtree):
        space: Any = tree  # its sides are asked for, as a domain's
        side = max(1, tree.shape[0] // 4)
        return "box of a quarter of each side", RandomBoxes((side,) * tree.dims, 50).on(space)
    words = strings_of(tree)[:50]
    return "one or two first symbols", Nodes.of(
        tree, sorted({w[:n] for w in words for n in (1, 2)})
    )


# Candidates


_QUICK_FIRST = (
    "histograms summaries queries hierarchical contributions smoothing adaptive".split()
)
_LEFT_OUT = {
    "AIM",  # which takes seconds
    "LaplaceHistogram",  # geometric noise is as large, and exact
}


def other_mechanisms() -> list[Any]:
    """Return the mechanisms that do not belong to the workbench. These mechanisms are defined in modules that
    the option `--with` names, and in installed packages.
    """
    members = [x for module in stated_modules() for x in vars(module).values()]
    entries = [find("mechanisms", e.name) for e in entry_points(group="workbench.mechanisms")]
    classes = [x for x in (*members, *entries) if isinstance(x, type) and hasattr(x, "example")]
    return [x for x in dict.fromkeys(classes) if not x.__module__.startswith("workbench.")]


def _classes() -> list[Any]:
    """Return the classes of mechanisms that may be recommended. Classes of plug-ins come first, and then
    classes of the workbench, with fast ones first.
    """
    families = mechanisms.FAMILIES
    others = [f for f in families if f not in (*_QUICK_FIRST, "straw_men", "local", "chosen")]
    names = [name for family in (*_QUICK_FIRST, *others) for name in families[family]]
    return [*other_mechanisms(), *(getattr(mechanisms, x) for x in names if x not in _LEFT_OUT)]


def _candidates(
    how: Simulation, beliefs: Beliefs, epsilon: float, size: int | None
) -> dict[Any, Any]:
    """Return the mechanisms to compare, by an identifier that is the same for every ε. The parameters of the
    mechanisms follow from public numbers.
    """
    found: dict[Any, Any] = {}
    for cls in _classes():
        if not _fits(cls, how.task) or (how.classes and cls.__name__ not in how.classes):
            continue
        for budget in _budgets(cls, epsilon, how.delta):
            with suppress(ValueError):
                example = cls.example(budget)
                for label, settings in _settings(example, beliefs, how, size):
                    with suppress(ValueError):
                        key = cls.__name__, type(budget).__name__, label
                        found[key] = replace(example, **settings)
    return found


def _fits(cls: Any, task: str) -> bool:
    """Return whether a class of mechanisms accepts this kind of data, and may be recommended for the task."""
    takes = {"users": Interactions, "records": Records}.get(task, SparseTable)
    if cls.takes is not takes or cls.relation == LOCAL or cls.idealised:
        return False
    if getattr(cls, "ranked", False) != (task == "degrees"):
        return False
    names = {f.name for f in fields(cls)}
    if "nonempty" in names:  # a promise about every table, which no belief replaces
        return False
    if {"workload", "marginals"} & names and task not in _MARGINAL_TASKS:
        return False
    return (cls is mechanisms.MaximumEntropySynthesis) == (task == "rows")


def _budgets(cls: Any, epsilon: float, delta: float) -> Iterator[DP | ZCDP]:
    if cls.accepts_dp and not cls.spends_delta:
        yield DP(epsilon)
    if delta and cls.spends_delta:
        yield DP(epsilon, delta)
    elif delta and cls.accepts_zcdp:
        yield ZCDP.within(DP(epsilon, delta))


def _settings(
    example: Any, beliefs: Beliefs, how: Simulation, size: int | None
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Yield combinations of a mechanism's parameters to try. Each combination has a label that is the same
    for every ε.
    """
    names = {f.name for f in fields(example)}
    known = {
        "width": size,
        "total": round(beliefs.records),
        "largest": round(beliefs.mean + 10 * (beliefs.spread or beliefs.mean)),
        "records": how.rows or round(beliefs.records),
        "rows": how.rows,
    }
    base = {
        f.name: known[f.name]
        for f in fields(example)
        if f.name in known and (f.default is MISSING or f.name == "rows")
    }
    if isinstance(beliefs.domain, Quadtree | Prefixes) and "depth" in names:
        base["depth"] = min(beliefs.domain.digits.depth, 8)
    for name in ("workload", "marginals"):
        if name in names:
            for k in range(1, min(how.order, len(beliefs.domain.shape) - 1) + 1):
                yield (name, k), base | {name: Marginals(k)}
            return
    if beliefs.users is not None and "l" in names:
        most = max(1, round(beliefs.mean))
        for i, count in enumerate((1, 3, 10, most, 2 * most, 5 * most)):
            if count not in (1, 3, 10, most, 2 * most)[:i]:
                yield ("l", i), base | {"l": count}
        return
    if "bound" in names and beliefs.users is not None:
        base["bound"] = max(1, round(5 * beliefs.mean))
    transforms: list[Any] = [None]
    if "transform" in names and how.task in ("all", "ranges", "boxes"):
        dims = len(beliefs.domain.shape)
        transforms.append(Dyadic(dims=2) if how.task == "boxes" and dims == 2 else Dyadic())
        if "size" not in names and dims == 1:
            transforms.append(Haar())
    for transform in transforms:
        one = base | ({"transform": transform} if "transform" in names else {})
        if not {"size", "theta"} <= names or size is None:
            yield repr(transform), one
            continue
        given = {
            name: type(example).__dataclass_fields__[name].default
            for name in ("theta", "tau")
            if name in names
        }
        for i, few in enumerate((1, 10, 100, 1000)):
            if size >= few and (i == 0 or transform is None):
                yield (repr(transform), i), one | given | {"size": max(1, size // few)}
                cut = _cut(example.budget, beliefs, max(1, size // few), transform)
                yield (repr(transform), i, "cut"), one | {"size": size, "theta": cut}


def _too_wide(mechanism: Any, domain: Domain) -> bool:
    """Return whether the mechanism's marginals have too many cells to simulate each cell."""
    asked = getattr(mechanism, "workload", None) or getattr(mechanism, "marginals", None)
    return isinstance(asked, Marginals) and marginal_cells(domain.shape, asked.k) > MARGINALS


def _cut(budget: DP | ZCDP, beliefs: Beliefs, size: int, transform: Any) -> int:
    """Return a threshold θ for noisy counts. The noise of about `size` empty cells (or nodes of the
    transform) is expected to reach θ.
    """
    filter_ = mechanisms.HighPassFilter(budget, size=size, transform=transform)
    return int(filter_.threshold(beliefs.domain, beliefs.bound))


# Comparison


@dataclass(frozen=True)
class Simulation:
    """Simulated data, the queries about them, and all requirements on a release except its ε.

    Parameters
    ----------
    beliefs : Beliefs
        Description of all data, for which mechanisms are recommended.
    small : Beliefs
        Description of the part of the data that is simulated.
    part : float
        Share of all data that is in this part.
    data : dataset
        Dataset with the simulated part.
    asked : sequence of Question
        Kinds of query, each as a metric of the error.
    """

    beliefs: Beliefs
    small: Beliefs
    part: float
    data: Any
    asked: Sequence[Question]
    task: str
    size: int | None
    delta: float
    order: int
    rows: int | None
    limit: float = inf  # cells of a release that may be recommended
    classes: tuple[str, ...] = ()  # that may run; () means all

    @property
    def scale(self) -> float:
        """Number of simulated people divided by the number of all people. The simulation uses ε divided by this
        number, so that the errors stay the same relative to the counts. For tables, this number is 1, because
        the simulation uses a smaller domain instead.
        """
        return 1.0 if self.beliefs.cells else self.part

    @property
    def truths(self) -> dict[str, float]:
        """Mean true answer for each kind of query."""
        return {each.kind: each.exact / self.scale for each in self.asked}

    def compare(
        self,
        epsilon: float,
        clock: Clock,
        repeats: tuple[int, ...],
        only: set[Any] | None = None,
    ) -> tuple[list[Row], list[str]]:
        """Run all candidate mechanisms on the simulated data. Return one row per mechanism, from best to
        worst, and sentences about mechanisms that were left out.
        """
        size = self.size and max(1, round(self.size * self.part))
        made = _candidates(self, self.beliefs, epsilon, self.size)
        trials = _candidates(self, self.small, epsilon / self.scale, size)
        keys = [key for key in made if key in trials and (only is None or key in only)]
        keys.sort(key=lambda key: getattr(made[key], "transform", None) is not None)
        # One setting of each mechanism runs however busy the machine is: time decides about the others alone.
        always = {key[:2]: key for key in reversed(keys)}.values() if only is None else ()
        frames: dict[Any, pd.DataFrame] = {}
        refused: dict[str, str] = {}
        quiet = watched(lambda done, total: None)  # the clock shows progress
        with TemporaryDirectory() as store, warnings.catch_warnings(), quiet:
            warnings.simplefilter("ignore")
            for count in repeats:
                for i, key in enumerate(keys):
                    name = mechanism_name(made[key])
                    if name in refused:
                        continue
                    waits = key in frames or key not in always
                    if frames and waits and not clock.left():
                        if key not in frames:
                            refused[name] = ""
                        continue
                    if _too_wide(trials[key], self.data.domain):
                        refused[name] = "its marginals have too many cells to simulate"
                        continue
                    clock.show(f"simulating at ε = {epsilon:.3g}", i / len(keys))
                    try:
                        sweep = Sweep([self.data], [trials[key]], self.asked, count)
                        frames[key] = run(sweep, store)
                    except (ValueError, MemoryError, ArithmeticError) as e:
                        refused[name] = str(e)
        rows = [self._row(key, made[key], frame) for key, frame in frames.items()]
        for row in rows:
            if row.cells * BYTES_PER_CELL > getattr(row.mechanism, "memory", inf):
                refused[row.name] = (
                    f"it releases {row.cells:,.0f} cells, too many for its memory"
                )
        rows = [r for r in rows if r.name not in refused and r.unanswered < len(self.asked)]
        rows.sort(
            key=lambda r: (r.cells > self.limit, r.unanswered, round(r.score, 3), r.cells)
        )
        return rows, _left_out(refused)

    def _row(self, key: Any, mechanism: Any, frame: pd.DataFrame) -> Row:
        means = frame.groupby("kind", sort=False).value.mean()
        errors = {kind: float(x) / self.scale for kind, x in means.items()}
        ratios = [ratio(errors[kind], truth) for kind, truth in self.truths.items()]
        score = float(np.exp(np.log(np.clip(ratios, 1e-6, 1e6)).mean()))
        cells = float(frame.released.mean()) * self.scale / self.part
        noise = float(frame.noise_cells.mean()) / self.part
        cost, seconds = _cost(mechanism.budget), float(frame.seconds.min())
        name = mechanism_name(mechanism)
        return Row(name, mechanism, errors, cells, noise, cost, seconds, score, key)


def _left_out(refused: dict[str, str]) -> list[str]:
    """Return sentences about the candidate mechanisms that were not compared."""
    late = [name for name, why in refused.items() if not why]
    notes = [f"Left out is {name}: {why.rstrip('.')}." for name, why in refused.items() if why]
    if late:
        notes.append(
            f"The time ended before {len(late)} candidates ran, for example {late[0]}. After a first use, when "
            "the workbench has compiled its functions, more of them run."
        )
    return notes


def ratio(error: float, truth: float) -> float:
    """Return the error divided by the true answer. If the release cannot answer (the error is NaN), return 1,
    which is the relative error of a release without any information.
    """
    return 1.0 if isnan(error) else error / max(truth, 1e-9)


def mechanism_name(mechanism: Any) -> str:
    """Return the name of a mechanism with the parameters that differ from their defaults."""
    own = [
        f"{_SYMBOLS.get(f.name, f.name)} = {_setting(getattr(mechanism, f.name))}"
        for f in fields(mechanism)
        if f.name not in ("budget", "transform") and getattr(mechanism, f.name) != f.default
    ]
    return ", ".join([series_name(mechanism), *own])


def _setting(x: Any) -> str:
    return number(x) if isinstance(x, int) else str(x)


def _cost(budget: DP | ZCDP) -> str:
    """Return a guarantee in symbols, for example "ε = 1"."""
    if isinstance(budget, ZCDP):
        return f"ρ = {budget.rho:.3g}"
    cost = f"ε = {stated(budget.epsilon)}"
    return f"{cost}, δ = {stated(budget.delta)}" if budget.delta else cost
