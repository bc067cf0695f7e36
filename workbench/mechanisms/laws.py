"""Laws: rules that every mechanism must obey. Each law is a function that checks a mechanism, so you can also
check a mechanism of your own.
"""

from __future__ import annotations

import copy
import inspect
import re
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, dataclass, fields, replace
from math import inf, nan
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from workbench.data import PUBLIC, Bound, Interactions, Public, Records, SparseTable
from workbench.estimates import Leaves, Summary
from workbench.estimates.release import Release
from workbench.mechanisms.neighbours import large_pair, pairs_for
from workbench.mechanisms.protocol import Mechanism, amount
from workbench.noise.replay import NoSensitivity, Replay
from workbench.noise.source import Source
from workbench.privacy import ADD_REMOVE, DP, REPLACE, ZCDP, Receipt, exact_rho
from workbench.queries import RandomRanges, Ranges
from workbench.spaces import Domain, Quadtree
from workbench.value import number

# Subject

DOMAIN = Domain(("home", "work"), (6, 8), (tuple("abcdef"), range(2000, 2008)))
CELLS = Ranges(np.arange(48), np.arange(1, 49))


class Broken(AssertionError):
    """Error for a mechanism that breaks a law, which is a rule for all mechanisms. The message describes the
    fault.
    """


def demand(holds: Any, says: str) -> None:
    """Raise the error `Broken` with the message `says` if the condition `holds` is false."""
    if not holds:
        raise Broken(says)


def seeded(seed: int = 0) -> np.random.Generator:
    """Return a seeded generator of random numbers. With the same seed, a mechanism draws the same noise."""
    return np.random.default_rng(seed)


class Subject:
    """Test object for one class of mechanisms. It makes examples of the class, and test data in the form that
    the class accepts.

    Parameters
    ----------
    cls : type
        Class of mechanisms, or another object with a method `example`.
    zcdp : bool
        Whether to check the class with a budget in ρ. Default False. A class that accepts no budget in ε is
        always checked with a budget in ρ.
    """

    def __init__(self, cls: Any, zcdp: bool = False):
        self.cls = cls
        self.zcdp = zcdp or not getattr(cls, "accepts_dp", True)
        self.relation = getattr(cls, "relation", ADD_REMOVE)

    def budget(self, epsilon: float = 1.0) -> DP | ZCDP:
        """Return a budget with the given ε. If the class spends a δ, the budget has δ = 10⁻⁶. If the class is
        checked with a budget in ρ, the budget is ρ = ε²/8.
        """
        delta = 1e-6 if getattr(self.cls, "spends_delta", False) else 0.0
        return ZCDP(epsilon**2 / 8, delta) if self.zcdp else DP(epsilon, delta)

    def table(self, counts: Any, bound: Bound | Public | None = None) -> SparseTable:
        """Return a test table with the given counts in every fifth cell. All other cells are empty."""
        keys = np.arange(0, 5 * len(counts), 5)
        return SparseTable.from_keys(DOMAIN, keys, counts, bound or Bound())

    def given(self, table: SparseTable) -> Any:
        """Convert a test table to the kind of data that the mechanism accepts, for example to records."""
        if self.cls.takes is Records:
            keys = table.keys.astype(np.uint64)
            return Records(Quadtree(2, 3), keys, table.counts, table.bound)
        if self.cls.takes is Interactions:
            # a user each; the last two cells are one user's, if there may be
            places = np.repeat(table.keys, table.counts)
            users = np.arange(len(places))
            bound = table.bound
            users[-1:] -= isinstance(bound, Bound) and bound.l0 == 2 and len(table) == 3
            items, contexts = table.domain.codes(places).T
            return Interactions.from_codes(table.domain, users, items, contexts, bound)
        return table

    def truth(self, table: SparseTable) -> Any:
        """Return the exact data of a test table, in the form in which tests compare these data with the
        mechanism's estimate.
        """
        return table.ranked() if getattr(self.cls, "ranked", False) else self.given(table)

    def example(self, table: SparseTable, epsilon: float = 1.0) -> Mechanism:
        """Return an example of the mechanism for a test table. If the mechanism needs the public number of
        records, the example gets the table's number of records.
        """
        return stated_total(self.cls.example(self.budget(epsilon)), table)

    def release(
        self,
        table: SparseTable,
        rng: np.random.Generator | None = None,
        epsilon: float = 1.0,
    ) -> Release:
        """Run an example of the mechanism on a test table, and return the release."""
        return self.example(table, epsilon)(self.given(table), rng)

    def rebuilt(self, **changed: Any) -> Any:
        """Return an example of the mechanism with some fields replaced. If the mechanism has no field `budget`,
        because it runs an inner mechanism, the fields of the inner mechanism are replaced.
        """
        example = self.cls.example(self.budget())
        if "budget" not in {f.name for f in fields(self.cls)}:
            return self.cls(replace(example.mechanism, **changed))
        return replace(example, **changed)


def stated_total(mechanism: Any, table: Any) -> Any:
    """Return a copy of the mechanism that can be run on a table. If the mechanism has a field `total` for the
    public number of records, the copy has the table's number of records in this field.
    """
    if getattr(mechanism, "relation", ADD_REMOVE) != REPLACE or mechanism.total is None:
        return mechanism
    return replace(mechanism, total=table.total)


def answers(release: Release) -> np.ndarray:
    """Return the released counts of all cells of the test domain. If the release also has counts of items,
    these counts come after the cells.
    """
    items = getattr(release.estimate, "items", None)
    return np.append(release.answer(CELLS), [] if items is None else items.values)


# Values


def frozen_value(subject: Subject) -> None:
    """Check that a mechanism cannot be changed, that it can be hashed, and that it is equal to a copy of
    itself.
    """
    mechanism = subject.cls.example(subject.budget())
    same = subject.cls.example(subject.budget())
    demand(mechanism == same and hash(mechanism) == hash(same), "two examples differ")
    try:
        setattr(mechanism, fields(mechanism)[0].name, None)
    except FrozenInstanceError:
        pass
    else:
        demand(False, "its fields can be changed: need a frozen dataclass")
    demand(copy.deepcopy(mechanism) == mechanism, "a copy of it is another")
    demand(mechanism.budget == subject.budget(), "its budget is not the one it was given")


def refuses_budgets(subject: Subject) -> None:
    """Check that a mechanism raises an error for budgets that it cannot spend, for example an ε of 0 or ∞."""
    delta = subject.budget().delta
    wrong: list[DP | ZCDP] = [ZCDP(1.0, 0.0 if delta else 1e-6)]
    if not subject.zcdp:
        wrong = [subject.budget(0.0), subject.budget(inf), DP(1.0, 1.0 if delta else 1e-6)]
    if not getattr(subject.cls, "accepts_zcdp", False):
        wrong.append(ZCDP(1.0))
    if not getattr(subject.cls, "accepts_dp", True):
        wrong.append(DP(1.0))
    for bad in (*wrong, 1.0, None):
        _refused(subject, "budget|epsilon|delta", budget=bad)


def refuses_numbers(subject: Subject) -> None:
    """Check that a mechanism raises an error if a field is outside its range. The error message must contain
    the name of the field and the allowed range.
    """
    for f in fields(subject.cls):
        if "low" not in f.metadata or f.metadata["check"]:
            continue
        for bad in (nan, -1, "x", inf):
            _refused(subject, rf"{f.name} = .*need", **{f.name: bad})


def states_promises(subject: Subject) -> None:
    """Check that the docstring of the class has the sections Guarantee, Assumes, Source, Differs and Cost."""
    doc = inspect.getdoc(subject.cls) or ""
    for word in ("Guarantee", "Assumes", "Source", "Differs", "Cost"):
        demand(re.search(rf"^{word}\s+\S", doc, re.M), f"its docstring states no {word}")
    demand(subject.cls.takes and subject.cls.__doc__, "it has no docstring, or takes nothing")


def _refused(subject: Subject, says: str, **changed: Any) -> None:
    try:
        subject.rebuilt(**changed)
    except ValueError as e:
        demand(re.search(says, str(e)), f"{changed} is refused without its name: {e}")
    else:
        demand(False, f"{changed} is not refused")


# Releases

COUNTS = (9, 1, 4, 400, 7)


def costs_its_budget(subject: Subject) -> None:
    """Check that the receipts of a release, which record the privacy cost, add up to the budget and to no
    more.
    """
    release = subject.release(subject.table([9, 1, 4]), seeded())
    demand(release.ledger, "it wrote no receipt")
    demand(subject.budget().covers(release.privacy), f"it costs {release.privacy}")
    least = 0.99 if subject.zcdp else 1 - 1e-12  # of ρ a choice may cost a little less
    given = subject.budget()
    spent = amount(release.privacy) / amount(given)
    demand(least < spent <= 1.0, f"{given} was given, {release.privacy} spent")
    demand(release.simulated, "seeded noise does not say that it is simulated")
    demand(release.relation == subject.relation, f"its receipts say {release.relation}")


def randomness_is_the_rngs(subject: Subject) -> None:
    """Check that all random numbers come from `rng`, and that no global state changes."""
    before = np.random.get_state(legacy=False)["state"]["key"].copy()  # noqa: NPY002
    table = subject.table([90, 10, 40, 9000, 70])
    one, same, other = (answers(subject.release(table, seeded(s))) for s in (0, 0, 1))
    demand((one == same).all(), "one seed gives two releases")
    demand((one != other).any(), "two seeds give one release")
    after = np.random.get_state(legacy=False)["state"]["key"]  # noqa: NPY002
    demand((before == after).all(), "it draws from numpy's global state")


def fit_to_publish(subject: Subject) -> None:
    """Check that a release without `rng` is not marked as simulated, and that two such releases differ.

    A correct mechanism fails this check in one of 10⁹ runs.
    """
    table = subject.table([90_000, 800, 700, 600, 500])  # the first is far above any threshold
    one, other = (subject.release(table, epsilon=0.05) for _ in range(2))
    demand(not one.simulated, "a release without rng says that it is simulated")
    demand((one.answer(CELLS) != other.answer(CELLS)).any(), "two releases are the same")


def estimate_is_public(subject: Subject) -> None:
    """Check that the estimate in a release has the declared domain and finite values. The estimate must have no
    bound, because only private data have a bound.
    """
    table = subject.table([9, 1, 4])
    release = subject.release(table, seeded())
    estimate = release.estimate
    demand(estimate.domain == subject.truth(table).domain, "it is on another domain")
    demand(not hasattr(estimate, "bound"), "the estimate has a bound, as private data has")
    demand(np.isfinite(release.answer(CELLS)).all(), "it answers with numbers that are none")
    frame = estimate.to_frame()
    if type(estimate) is Leaves:  # whose frame is of synthetic records
        demand(len(frame) == estimate.total, "its frame has another number of records")
        frame = estimate.nodes()
    else:
        demand(len(frame) == len(estimate), "its frame has another number of rows")
    demand(list(frame.columns)[-1] == "noisy", "its frame does not end with `noisy`")


def cells_are_released_once(subject: Subject) -> None:
    """Check that no cell is released twice, and that all released cells are in the domain."""
    full = SparseTable.from_keys(DOMAIN, range(48), [9] * 48, Bound())
    for table in (full, subject.table([9] * 10), subject.table([])):
        estimate = subject.release(table, seeded(), 0.5).estimate
        if type(estimate) is Summary:
            keys = np.concatenate([[-1], estimate.keys, [DOMAIN.size]])
            demand((np.diff(keys) > 0).all(), "keys are not sorted, unique and in the domain")


def saved_is_loaded(subject: Subject) -> None:
    """Check that a release is identical after it was saved and loaded. If the noise is idealised (drawn with
    floating-point numbers), check that the release cannot be saved.
    """
    release = subject.release(subject.table(COUNTS))
    for name in ("x.parquet", "x.csv"):
        _demand_saved_is_loaded(release, name)


def _demand_saved_is_loaded(release: Release, name: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        if any(receipt.idealised for receipt in release.ledger):
            try:
                release.save(path)
            except ValueError as e:
                return demand("idealised" in str(e), f"it is refused without saying why: {e}")
            return demand(False, "idealised noise is saved")
        back = Release.load(release.save(path))
    parts: dict[str, Callable[[Release], Any]] = {
        "estimate": lambda r: (type(r.estimate), repr(r.estimate), r.estimate.metadata()),
        "ledger": lambda r: (r.ledger, r.privacy, r.relation, r.bound, r.simulated),
        "mechanism's text": lambda r: str(r.mechanism),
        "frame": lambda r: r.to_frame().to_csv(),
        "error bars": lambda r: r.answer(CELLS, error=True)[1].tobytes(),
        "answers": lambda r: answers(r).tobytes(),
    }
    for what, part in parts.items():
        demand(part(back) == part(release), f"another {what} is loaded than was saved")


def empty_tables_are_tables(subject: Subject) -> None:
    """Check that a mechanism works for an empty table and for a table with one cell."""
    for counts in ([], [3]):
        release = subject.release(subject.table(counts), seeded())
        demand(np.isfinite(answers(release)).all(), f"counts {counts} have no finite answers")


def recipes_are_their_queries(subject: Subject) -> None:
    """Check the answers to a recipe, which describes how to draw random queries. A release must give the same
    answers to the recipe and to the queries that are drawn by this recipe.
    """
    release = subject.release(subject.table([9, 1, 4]), seeded())
    recipe = RandomRanges(4, 5)
    drawn = recipe.on(release.estimate.domain)
    demand((release.answer(recipe) == release.answer(drawn)).all(), "they differ")


def public_tables_are_refused(subject: Subject) -> None:
    """Check that a mechanism raises an error for a public table, because mechanisms are only for private
    data.
    """
    table = subject.table([1], PUBLIC)
    try:
        subject.release(table)
    except ValueError as e:
        demand("PUBLIC" in str(e), f"it is refused without saying why: {e}")
    else:
        demand(False, "budget was spent on a table without a bound")


def error_vanishes(subject: Subject) -> None:
    """Check that the error of a release goes to 0 as ε grows. A class with `converges = False` is not
    checked.
    """
    if not getattr(subject.cls, "converges", True):
        return
    table = subject.table([2, 3, 5, 8, 13, 21, 34, 55, 89])
    truth = subject.truth(table).answer(CELLS)
    errors = []
    for epsilon in (0.1, 1e8):
        release = subject.release(table, seeded(), epsilon)
        errors.append(float(np.abs(release.answer(CELLS, weights="raw") - truth).sum()))
    says = f"errors are {number(errors[0])} at ε = 0.1 and {number(errors[1])} at ε = 10⁸"
    demand(errors[1] < 1e-6 < errors[0], says)


def price_is_fixed(subject: Subject) -> None:
    """Check that a mechanism with `fixed_price = True` writes the same receipts (records of the privacy cost)
    for different data.
    """
    if not getattr(subject.cls, "fixed_price", False):
        return
    prices = {
        exact_rho(subject.release(subject.table(counts), seeded(seed)).ledger)
        for seed, counts in enumerate(([], [9, 1, 4], [900] * 9))
    }
    says = " and ".join(f"ρ = {number(float(rho))}" for rho, _ in sorted(prices))
    demand(len(prices) == 1, f"its receipts say {says}")


def receipts_are_kept(subject: Subject) -> None:
    """Check that a release contains one receipt per measurement, which records the cost of this measurement.
    If a theorem allows a smaller total cost, one receipt may replace several others.
    """
    written: list[Receipt] = []
    write = Source.receipt

    def remember(self: Source, *args: Any, **kwargs: Any) -> Receipt:
        written.append(write(self, *args, **kwargs))
        return written[-1]

    with patch.object(Source, "receipt", remember):
        release = subject.release(subject.table([9, 1, 4]), seeded())
    priced = [receipt for receipt in release.ledger if receipt.theorem]
    demand(priced or list(release.ledger) == written, "a receipt that was written is missing")


def neighbours_are_alike(
    subject: Subject, bound: Bound | None = None, runs: int = 2000
) -> None:
    """Check that releases of two tables D and D′ that differ in one unit (neighbours) are hard to distinguish.
    Differential privacy requires Pr[A | D] ≤ e^ε Pr[A | D′] + δ for all events A.

    The check makes many releases of both tables and compares the frequencies of some events. Because the noise
    is seeded, the check gives the same result every time. The check fails if a frequency exceeds the limit e^ε
    Pr[A | D′] + δ by more than five standard errors. For example, with 2000 runs and ε = 1, the frequency of a
    very probable event may exceed the limit by about 0.2 without failure. If the noise on one or two cells has
    half the correct scale, 500 runs find this fault. If the noise has three fifths of the correct scale, 1000
    runs find the fault.

    To save time, the check stops after a third of the runs if no frequency exceeds the limit by more than one
    standard error. Consider a fault that is twice as large as the smallest fault that the check can find.
    Without the early stop, the check misses this fault with probability 10⁻⁶. With the early stop, the
    probability is 10⁻⁵.
    """
    bound = bound or Bound()
    whole = SparseTable.from_keys(DOMAIN, [0, 3, 5], [4, 1, bound.l0 - 1], bound)
    replaced = subject.relation != ADD_REMOVE  # the same number of units
    without = SparseTable.from_keys(DOMAIN, [0], [4 + replaced], bound)
    mechanism = subject.example(whole)
    budget = mechanism.budget
    if isinstance(budget, ZCDP):
        budget = budget.at(0.01 + budget.delta)
    asked = Ranges(np.array([3, 5, 0]), np.array([4, 6, 48]))

    def frequencies(answers: list[np.ndarray]) -> np.ndarray:
        values = np.array(answers)
        moved = values[:, : bound.l0]  # no noise of what does not move
        events = [(moved.sum(axis=1) >= x).mean() for x in (-3, -1, 0.7, 2, 3, 5)]
        events += [(moved >= x).all(axis=1).mean() for x in (-1, 0.7, 2, 3)]
        return np.array(events + [(values[:, 2] >= x).mean() for x in (0, 4.5, 5.5, 9)])

    sides: list[tuple[Any, np.random.Generator, list[Any]]] = [
        (subject.given(whole), seeded(1), []),
        (subject.given(without), seeded(2), []),
    ]
    few = runs // 3
    for more, errors in ((few, 1), (runs - few, 5)):
        for data, rng, drawn in sides:
            drawn += [mechanism(data, rng).answer(asked, weights="raw") for _ in range(more)]
        p, q = (frequencies(drawn) for _, _, drawn in sides)
        count = len(sides[0][2])
        excess = excess_probability(p, q, count, budget.epsilon, budget.delta, errors)
        if excess <= 0:
            return
    demand(False, f"an event is likelier by {excess:.3g} than ε allows")


def excess_probability(
    p: np.ndarray, q: np.ndarray, runs: int, epsilon: float, delta: float = 0.0, errors: int = 5
) -> float:
    """Compare the frequencies of events in the releases of two data sets that differ in one unit. `p` and `q`
    are the frequencies for the two data sets, each from `runs` releases. Return the largest amount by which one
    frequency exceeds its limit, minus `errors` standard errors. The limit is e^ε times the frequency of the
    same event for the other data set, plus δ.

    The result is above 0 only if the frequency of an event, or of its complement, exceeds the limit by more
    than `errors` standard errors.
    """
    growth = np.exp(epsilon)
    excesses = []
    for a, b in ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p)):
        slack = errors * np.sqrt((a + growth**2 * b) / runs) + errors / runs
        excesses.append((a - growth * b - delta - slack).max())
    return float(max(excesses))


def differences_in_replay(mechanism: Any, one: Any, other: Any) -> list[str]:
    """Run a mechanism on two data sets with the same noise. The data sets differ in one unit. Return the
    differences between the two runs that noise cannot hide.

    Parameters
    ----------
    mechanism : Mechanism, or another function of data and an `rng`.
    one, other : Two data sets that differ in one unit (neighbours).

    Returns
    -------
    list of str
        One sentence per fault. The list is empty if two conditions hold. First, the private numbers to which
        the mechanism adds noise differ by at most the sensitivity. The mechanism states this sensitivity, the
        largest change that one unit can cause, when it draws the noise. Second, if all noisy numbers are equal,
        the releases are equal.
    """
    replay = Replay()
    try:
        first, again, second = (_shown(mechanism, data, replay) for data in (one, one, other))
    except NoSensitivity as e:
        return [str(e)]
    if first != again:
        return ["it draws past its rng: the same draws of the same data give another release"]
    refused = [x for x in (first, second) if isinstance(x, str)]
    if refused:
        where = _BOTH if first == second else "it raises for one neighbour only, "
        return [f"{where}{refused[0]}"]
    found = [
        f"under the same noise it releases {name}"
        for name, x, y in zip(_NAMES, first, second, strict=True)
        if x != y
    ]
    return [*replay.differences(), *found]


_BOTH = "it raises for both neighbours, "
_NAMES = (
    "a different estimate",
    "values of other types",
    "other metadata",
    "another ledger",
    "another bound",
    "another mechanism",
    "another number of truncated users",
)


def _shown(mechanism: Any, data: Any, replay: Replay) -> Any:
    """Run the mechanism with recorded noise, and return everything that the release reveals. If there is no
    release, return the error as text.
    """
    replay.again()
    try:
        release = mechanism(data, replay)
    except NoSensitivity:
        raise
    except Exception as e:  # somebody else's mechanism may raise anything
        return f"{type(e).__name__}: {e}"
    columns = release.estimate.to_arrow()
    metadata = release.estimate.metadata()
    shown = (columns.to_pydict(), (type(release.estimate), columns.schema), metadata)
    return (
        *map(repr, shown),
        tuple(release.ledger),
        release.bound,
        str(release.mechanism),
        release.users_cut,
    )


def reads_what_it_pays_for(subject: Subject) -> None:
    """Check that a mechanism pays for everything that it reads from private data. If the noisy numbers of
    two data sets that differ in one unit (neighbours) are equal, their releases must be equal.

    A mechanism draws noise for a stated sensitivity, the largest change that one unit can cause. The private
    numbers to which the mechanism adds noise may differ between the two data sets by at most this sensitivity.

    The check runs the mechanism on a table and records the noise. Then it runs the mechanism with the same
    noise on a neighbour of this table. One of the tables has a few thousand cells or users. The other tables
    are small, for example empty, full, or with a count at a threshold.
    """
    example = subject.cls.example(subject.budget())
    large = large_pair(example)
    small = [(pair.one, pair.other) for pair in pairs_for(example)]
    for one, other in ((large.one, large.other), (large.other, large.one), *small):
        differences = differences_in_replay(stated_total(example, one), one, other)
        if differences and differences[0].startswith(_BOTH) and one is not large.one:
            continue  # its fields may be for larger tables
        demand(not differences, "; ".join(differences[:3]))


def error_bars_fit(subject: Subject) -> None:
    """Check that the squared error bars of releases agree with the squared errors on average, up to 30 %. A
    mechanism without error bars passes.

    The check uses seeded noise, so it gives the same result every time.

    For example, suppose that the squared errors of Laplace noise are on average twice as large as the squared
    error bars. With 700 releases, the check misses such a fault with probability 4·10⁻⁴. To save time, the
    check stops after half of the releases if squared errors and squared error bars agree within 15 %. The early
    stop alone causes such a miss with probability 3·10⁻⁴.
    """
    table = subject.table([9, 1, 4, 40, 7])
    asked = Ranges(np.array([0, 10]), np.array([48, 40]))
    mechanism = subject.example(table)
    data = subject.given(table)
    truth = subject.truth(table).answer(asked)
    drawn: list[Any] = []
    for runs, within in ((100, 0.0), (350, 0.15), (700, 0.3)):
        seeds = range(len(drawn), runs)
        drawn += [mechanism(data, seeded(s)).answer(asked, error=True) for s in seeds]
        squared_bars = np.array([bars for _, bars in drawn]) ** 2
        if np.isnan(squared_bars).all():
            return  # it gives none
        squared = (np.array([values for values, _ in drawn]) - truth) ** 2
        known = ~np.isnan(squared_bars)  # a node that a query cuts has no bar
        count = known.sum(axis=0)
        often = count > 200
        seen = squared[:, often].mean(axis=0, where=known[:, often])
        foreseen = squared_bars[:, often].mean(axis=0, where=known[:, often])
        fits = np.abs(foreseen - seen) <= within * seen
        if (often | (count == 0)).all() and fits.all():
            return
    says = f"squared errors are {', '.join(map(number, seen))}, and squared bars "
    says += ", ".join(map(number, foreseen))
    demand(fits.all(), says)


# Run

LAWS: tuple[Callable[[Subject], None], ...] = (
    frozen_value,
    refuses_budgets,
    refuses_numbers,
    states_promises,
    costs_its_budget,
    receipts_are_kept,
    price_is_fixed,
    randomness_is_the_rngs,
    fit_to_publish,
    estimate_is_public,
    cells_are_released_once,
    empty_tables_are_tables,
    public_tables_are_refused,
    recipes_are_their_queries,
    saved_is_loaded,
    error_vanishes,
    error_bars_fit,
    neighbours_are_alike,
    reads_what_it_pays_for,
)


@dataclass(frozen=True)
class Outcome:
    """Outcome of the check of one law, which is a rule for all mechanisms. If the mechanism breaks the law,
    `broken` describes the fault. Otherwise, `broken` is empty.
    """

    law: str
    broken: str = ""


def check_laws(cls: Any) -> Iterator[Outcome]:
    """Check whether a class of mechanisms obeys all laws, which are rules for every mechanism. Yield each
    outcome as soon as the check of the law ends.

    Parameters
    ----------
    cls : type
        Class of mechanisms. The mechanisms must accept a table, records, or interactions of users with items.
        The class must have the attributes `takes` and `example`.
    """
    subject = Subject(cls)
    for law in LAWS:
        told = " ".join((law.__doc__ or law.__name__).split())
        sentence = re.split(r"(?<=[.]) ", told)[0]
        try:
            law(subject)
            yield Outcome(sentence)
        except Broken as e:
            yield Outcome(sentence, str(e))
        except Exception as e:  # somebody else's mechanism may raise anything
            yield Outcome(sentence, f"{type(e).__name__}: {e}")
