"""What every mechanism must obey; the line in mechanisms/__init__ brings a new one here."""

import dataclasses
import pickle
import re
from math import inf, nan
from pathlib import Path

import numpy as np
import pytest

import workbench
from tests.agreement import indistinguishable, seeded
from workbench import (
    DP,
    PUBLIC,
    Bound,
    Domain,
    Dyadic,
    Haar,
    Marginals,
    RandomRanges,
    Ranges,
    Release,
    SparseTable,
    mechanisms,
)
from workbench.estimates import Leaves, Summary
from workbench.hierarchy import Quadtree
from workbench.interactions import Interactions
from workbench.noise.source import Source
from workbench.privacy import ADD_REMOVE, REPLACE
from workbench.records import Records

DOMAIN = Domain(("home", "work"), (6, 8), (tuple("abcdef"), range(2000, 2008)))
every = pytest.mark.parametrize("cls", mechanisms.ALL, ids=lambda c: c.__name__)


class In:
    """A mechanism with some fields of its example replaced: the same laws hold."""

    def __init__(self, cls, **fields):
        self._cls, self._fields = cls, fields
        self.__name__ = f"{cls.__name__} {fields}"

    def __getattr__(self, name):
        return getattr(self._cls, name)

    def example(self, budget):
        return dataclasses.replace(self._cls.example(budget), **self._fields)


def bases():
    """Each mechanism in other bases; a sample holds all nodes that there are."""
    for cls in mechanisms.ALL:
        names = {f.name for f in dataclasses.fields(cls)}
        if "transform" not in names:
            continue
        for transform, size in ((Dyadic(), 96), (Haar(), 48), (Dyadic(2), 180)):
            sized = {"size": size} if cls is mechanisms.PrioritySampling else {}
            yield In(cls, transform=transform, **sized)
            if "consistent" in names and transform == Dyadic():
                yield In(cls, theta=1, transform=transform, consistent=True, **sized)
    for strategy in ("uniform", "proportional", "fractional"):
        yield In(mechanisms.ImprovedAdaptiveHistogram, strategy=strategy)
    yield In(mechanisms.DirectSynthesis, stop="count")
    yield In(mechanisms.HighPassFilter, transform=Dyadic(split="geometric"))
    yield In(mechanisms.PrioritySampling, transform=Dyadic(split="geometric"), size=96)


def options():
    """Mechanisms with other fields, which do more or less than the example."""
    yield In(mechanisms.FPA, k=5)
    yield In(mechanisms.FPA, k=5, once=True, split=(0.3, 0.7))
    yield In(mechanisms.FPA, k=99)
    for width in (None, 1, 10**9):
        yield In(mechanisms.GS, width=width)
    yield In(mechanisms.GS, grouping="rowsample")
    yield In(mechanisms.GS, grouping="rowsample", beta=1.0)
    yield In(mechanisms.GS, grouping="noisysort", width=None, split=(0.1, 0.9))
    yield In(mechanisms.GS, grouping="random", once=True)
    yield In(mechanisms.SRA, consistent=True, total=9.0)
    yield In(mechanisms.CountSketch, estimate="median")
    yield In(mechanisms.HierarchicalHistogram, branching=3)
    yield In(mechanisms.HierarchicalHistogram, consistent=False)


in_every_basis = pytest.mark.parametrize(
    "cls",
    [
        *mechanisms.ALL,
        *(pytest.param(cls, marks=pytest.mark.slow) for cls in (*bases(), *options())),
    ],
    ids=lambda c: c.__name__,
)
CELLS = Ranges(np.arange(48), np.arange(1, 49))


def table(counts, bound=None, domain=DOMAIN):
    keys = np.arange(0, 5 * len(counts), 5)
    return SparseTable.from_keys(domain, keys, counts, bound or Bound())


def budget(cls, epsilon=1.0):
    return DP(epsilon, 1e-6 if getattr(cls, "spends_delta", False) else 0.0)


def relation(cls):
    return getattr(cls, "relation", ADD_REMOVE)


def given(cls, data):
    """The table as what the mechanism takes."""
    if cls.takes is Records:
        return Records(Quadtree(2, 3), data.keys.astype(np.uint64), data.counts, data.bound)
    if (
        cls.takes is Interactions
    ):  # a user each; the last two cells are one user's, if there may be
        places = np.repeat(data.keys, data.counts)
        users = np.arange(len(places))
        users[-1:] -= data.bound is not PUBLIC and data.bound.l0 == 2 and len(data) == 3
        codes = data.domain.codes(places).T
        return Interactions.from_codes(data.domain, users, *codes, data.bound)
    return data


def truth(cls, data):
    return data.ranked() if getattr(cls, "ranked", False) else given(cls, data)


def answers(release):
    """The answers of every cell, and the items' counts where they are released beside them."""
    items = getattr(release.estimate, "items", None)
    return np.append(release.answer(CELLS), [] if items is None else items.values)


class Fitted:
    """A mechanism that is called with a table, and gets it as what it takes."""

    def __init__(self, mechanism):
        self.mechanism, self.budget = mechanism, mechanism.budget

    def __call__(self, data, rng=None):
        return self.mechanism(given(type(self.mechanism), data), rng)


def fitted(cls, data, epsilon=1.0):
    """The example; about as many units as the data has, where that is public."""
    example = cls.example(budget(cls, epsilon))
    if relation(cls) == REPLACE:
        example = dataclasses.replace(example, total=data.total)
    return Fitted(example)


@in_every_basis
def test_is_a_frozen_value_whose_text_is_its_configuration(cls):
    mechanism, same = (cls.example(budget(cls)) for _ in range(2))
    assert mechanism == same and hash(mechanism) == hash(same)
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(mechanism, dataclasses.fields(mechanism)[0].name, None)
    names = {c.__name__: c for c in (*mechanisms.ALL, DP, Marginals, Dyadic, Haar)}
    assert eval(repr(mechanism), names) == mechanism
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism  # for workers
    assert mechanism.budget == budget(cls)


@in_every_basis
def test_the_ledger_costs_the_budget_and_no_more(cls):
    data = table([9, 1, 4])
    release = fitted(cls, data)(data, seeded())
    assert budget(cls).covers(release.privacy) and release.ledger
    assert 1 - 1e-12 < release.privacy.epsilon <= 1.0 and release.simulated
    assert release.relation == relation(cls)


@in_every_basis
def test_all_randomness_comes_from_rng(cls):
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    data = table([90, 10, 40, 400, 70])
    one, same, other = (fitted(cls, data)(data, seeded(s)) for s in (0, 0, 1))
    assert (answers(one) == answers(same)).all()
    assert (answers(one) != answers(other)).any()
    np.testing.assert_array_equal(before, np.random.get_state()[1])  # noqa: NPY002


@in_every_basis
def test_without_rng_it_is_fit_to_publish_and_never_repeats(cls):
    """By chance at most once in 10⁹ runs; sees noise that repeats in every cell."""
    data = table(
        [900, 800, 700, 600, 500]
    )  # all far above any cut: equal by chance once in 10⁹
    one, other = (fitted(cls, data, 0.05)(data) for _ in range(2))
    assert not one.simulated
    assert (one.answer(CELLS) != other.answer(CELLS)).any()


@in_every_basis
def test_the_estimate_is_public_and_on_the_tables_domain(cls):
    data = table([9, 1, 4])
    release = fitted(cls, data)(data, seeded())
    estimate = release.estimate
    assert estimate.domain == truth(cls, data).domain and not hasattr(estimate, "bound")
    assert np.isfinite(release.answer(CELLS)).all()
    if type(estimate) is Leaves:  # whose frame is of synthetic records
        assert len(estimate.to_frame()) == estimate.total == estimate.synthetic().total
        assert list(estimate.nodes().columns)[-1] == "noisy" and len(estimate.nodes())
        return
    assert len(release.to_frame()) == len(estimate)
    assert list(release.to_frame().columns)[-1] == "noisy"
    if type(estimate) is Summary:
        assert (np.diff(estimate.keys) > 0).all()
        assert list(release.to_frame().columns) == ["home", "work", "count", "noisy"]


@in_every_basis
def test_what_is_saved_is_what_is_loaded(cls, tmp_path):
    data = table([9, 1, 4, 400, 7])
    release = fitted(cls, data)(data)
    path = tmp_path / "x.parquet"
    if any(receipt.idealised for receipt in release.ledger):
        with pytest.raises(ValueError, match="idealised"):
            release.save(path)
        return
    back = Release.load(release.save(path))
    for same in (
        lambda r: (type(r.estimate), repr(r.estimate), r.estimate.metadata()),
        lambda r: (r.ledger, r.privacy, r.relation, r.bound, str(r.mechanism), r.simulated),
        lambda r: r.to_frame().to_csv(),
        lambda r: r.answer(CELLS, error=True)[1].tobytes(),
        lambda r: answers(r).tobytes(),
    ):
        assert same(back) == same(release)


@in_every_basis
@pytest.mark.parametrize("counts", [[], [3]], ids=["empty table", "one cell filled"])
def test_empty_tables_are_tables(cls, counts):
    release = fitted(cls, table(counts))(table(counts), seeded())
    assert np.isfinite(answers(release)).all()


@pytest.mark.parametrize("count", [0, 5])
def test_a_domain_of_one_cell_is_a_domain(count):
    one = SparseTable.from_keys(Domain(("x",), (1,)), [0], [count], Bound())
    b = DP(1.0)
    for mechanism in (
        mechanisms.GeometricHistogram(b),
        mechanisms.HighPassFilter(b, 1),
        mechanisms.HighPassFilter(b, size=1),
        mechanisms.ThresholdSampling(b, 3),
        mechanisms.ThresholdSampling(b, size=1),
        mechanisms.PrioritySampling(b, 1),
        mechanisms.UniformSampling(b, 1),
    ):
        assert np.isfinite(mechanism(one, seeded()).answer(Ranges([0], [1]))).all()


@in_every_basis
def test_recipes_are_answered_as_what_they_draw(cls):
    release, recipe = (
        fitted(cls, table([9, 1, 4]))(table([9, 1, 4]), seeded()),
        RandomRanges(4, 5),
    )
    assert (release.answer(recipe) == release.answer(recipe.on(release.estimate.domain))).all()


@in_every_basis
def test_a_public_table_cannot_be_spent_on(cls):
    with pytest.raises(ValueError, match="PUBLIC"):
        fitted(cls, table([1]))(table([1], PUBLIC))


@every
@pytest.mark.parametrize("epsilon", [0.0, inf])
def test_budgets_that_cannot_be_spent_are_refused(cls, epsilon):
    wrong_delta = DP(1.0, 1.0) if budget(cls).delta else DP(1.0, 1e-6)
    for bad in (budget(cls, epsilon), wrong_delta, 1.0, None):
        with pytest.raises(ValueError, match="budget|epsilon|delta"):
            rebuilt(cls, budget=bad)


def rebuilt(cls, **changed):
    """The example with some fields replaced; of what it wraps, where it wraps another."""
    example = cls.example(budget(cls))
    if "budget" not in {f.name for f in dataclasses.fields(cls)}:
        return cls(dataclasses.replace(example.mechanism, **changed))
    return dataclasses.replace(example, **changed)


@every
def test_numbers_out_of_range_name_field_value_and_range(cls):
    for f in dataclasses.fields(cls):
        if "low" not in f.metadata or f.metadata["check"]:
            continue
        for bad in (nan, -1, "x", inf):
            with pytest.raises(ValueError, match=rf"{f.name} = .*need"):
                rebuilt(cls, **{f.name: bad})


@in_every_basis
def test_the_error_vanishes_as_epsilon_grows(cls):
    if not getattr(cls, "converges", True):
        pytest.skip("declared as not converging in its own file")
    data = table([2, 3, 5, 8, 13, 21, 34, 55, 89])
    errors = [
        np.abs(
            fitted(cls, data, e)(data, seeded()).answer(CELLS, weights="raw")
            - truth(cls, data).answer(CELLS)
        ).sum()
        for e in (0.1, 1e8)
    ]
    assert errors[1] < 1e-6 < errors[0]


def neighbour_cases():
    """Every mechanism at one bound quickly; all bounds and bases where there is more time."""
    for bound, name in ((Bound(), "one cell"), (Bound(2, 1), "two cells")):
        for cls in (*mechanisms.ALL, *bases()):
            quick = bound == Bound() and cls in mechanisms.ALL
            marks = () if quick else pytest.mark.slow
            yield pytest.param(cls, bound, marks=marks, id=f"{name}-{cls.__name__}")


@pytest.mark.parametrize("cls, bound", [*neighbour_cases()])
def test_neighbours_are_hard_to_tell_apart(cls, bound):
    """Events about the cells that one unit moves: Pr[A | D] <= e^ε Pr[A | D'], within 5σ."""
    epsilon, n = 1.0, 2000
    whole = SparseTable.from_keys(DOMAIN, [0, 3, 5], [4, 1, bound.l0 - 1], bound)
    replaced = relation(cls) != ADD_REMOVE  # the same number of units
    without = SparseTable.from_keys(DOMAIN, [0], [4 + replaced], bound)
    mechanism = fitted(cls, whole, epsilon)
    if replaced and bound.l1 > 1:
        with pytest.raises(ValueError, match="bound"):
            mechanism(whole, seeded())
        return
    asked = Ranges([3, 5, 0], [4, 6, 48])

    def seen(data, seed):
        rng = seeded(seed)
        drawn = np.array([mechanism(data, rng).answer(asked, weights="raw") for _ in range(n)])
        moved, whole = drawn[:, :2].sum(axis=1), drawn[:, 2]
        events = [(moved >= x).mean() for x in (-3, -1, 1, 2, 3, 5)]
        return np.array(events + [(whole >= x).mean() for x in (0, 4.5, 5.5, 9)])

    p, q = seen(whole, 1), seen(without, 2)
    assert indistinguishable(p, q, n, epsilon, mechanism.budget.delta)


def test_a_wider_bound_buys_wider_noise():
    """Seeded: never by chance; sees a scale that is off by 10 %."""
    wide, narrow = (
        np.std(mechanisms.GeometricHistogram(DP(1.0))(
            SparseTable.from_keys(Domain(("x",), (40_000,)), [], [], Bound(b)), seeded()
        ).estimate.values)
        for b in (4, 1)
    )  # fmt: skip
    assert wide / narrow == pytest.approx(4 * 1.04, rel=0.1)  # sd 2/ε·… of the discrete law


def test_no_mechanism_file_is_forgotten():
    files = {p.stem for p in Path(mechanisms.__file__).parent.glob("[!_]*.py")}
    assert files == {cls.__module__.rpartition(".")[2] for cls in mechanisms.ALL}


@every
def test_the_file_states_what_it_promises(cls):
    text = (
        Path(workbench.__file__).parent
        / "mechanisms"
        / f"{cls.__module__.rpartition('.')[2]}.py"
    )
    doc = re.match(r'"""(.*?)"""', text.read_text(), re.S)[1]
    for word in ("Guarantee", "Assumes", "Source", "Differs", "Cost"):
        assert re.search(rf"^{word}\s+\S", doc, re.M), f"{cls.__name__} states no {word}"
    assert cls.cite and cls.takes and cls.__doc__


@in_every_basis
def test_without_rng_all_randomness_is_the_systems(cls, monkeypatch):
    monkeypatch.setattr("os.urandom", bytes)  # held fixed, so that nothing may move any more
    data = table([9, 1, 4, 400, 7])
    one, same = (answers(fitted(cls, data, 0.3)(data)) for _ in range(2))
    assert (one == same).all() and one.any()


@every
def test_no_cell_is_released_twice_or_from_outside_the_domain(cls):
    full = SparseTable.from_keys(DOMAIN, range(48), [9] * 48, Bound())
    for data in (full, table([9] * 10), table([])):
        estimate = fitted(cls, data, 0.5)(data, seeded()).estimate
        if type(estimate) is Summary:
            keys = np.concatenate([[-1], estimate.keys, [DOMAIN.size]])
            assert (np.diff(keys) > 0).all()


@in_every_basis
def test_every_receipt_that_was_written_is_in_the_ledger(cls, monkeypatch):
    written, write = [], Source.receipt
    monkeypatch.setattr(
        Source, "receipt", lambda *a, **k: written.append(write(*a, **k)) or written[-1]
    )
    release = fitted(cls, table([9, 1, 4]))(table([9, 1, 4]), seeded())
    priced = [r for r in release.ledger if r.theorem]
    assert priced or list(release.ledger) == written


@in_every_basis
def test_error_bars_are_as_wide_as_the_errors_or_not_given(cls):
    """Seeded: never by chance; sees a squared error bar that is off by 30 %."""
    data, asked = table([9, 1, 4, 40, 7]), Ranges([0, 10], [48, 40])
    made = fitted(cls, data)
    drawn = [made(data, seeded(s)).answer(asked, error=True) for s in range(700)]
    got, bars = (np.array(x) for x in zip(*drawn, strict=True))
    off = (got - truth(cls, data).answer(asked)) ** 2
    for own, bar in zip(off.T, bars.T, strict=True):
        known = ~np.isnan(bar)  # a node that a query cuts has no bar
        if known.sum() > 200:
            assert (bar[known] ** 2).mean() == pytest.approx(own[known].mean(), rel=0.3)
