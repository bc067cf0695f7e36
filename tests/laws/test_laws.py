"""What every mechanism must obey; the line in mechanisms/__init__ brings a new one here."""

import dataclasses
import pickle
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from tests.agreement import seeded
from workbench import (
    DP,
    ZCDP,
    Bound,
    Domain,
    Dyadic,
    Haar,
    Marginals,
    Ranges,
    SparseTable,
    mechanisms,
)
from workbench.estimates import Histogram, Summary
from workbench.mechanisms import laws
from workbench.mechanisms.laws import LAWS, Broken, Subject, answers, check_laws
from workbench.privacy import ADD_REMOVE
from workbench.value import value

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


@every
def test_a_mechanism_says_what_it_takes_and_how_to_make_it(cls):
    takes = cls.takes.__name__
    budget = DP(1.0, 1e-6 if cls.spends_delta else 0) if cls.accepts_dp else ZCDP(1.0)
    with pytest.raises(
        ValueError, match=rf"takes {takes}, not dict: make them with {takes}\.read or"
    ):
        cls.example(budget)({"a": [1]})


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
    yield In(mechanisms.InfTDA, prefixes=1)
    yield In(mechanisms.InfTDA, prefixes=(1, 4))


in_every_basis = pytest.mark.parametrize(
    "cls",
    [
        *mechanisms.ALL,
        *(pytest.param(cls, marks=pytest.mark.slow) for cls in (*bases(), *options())),
    ],
    ids=lambda c: c.__name__,
)


@in_every_basis
def test_is_a_frozen_value_whose_text_is_its_configuration(cls):
    subject = Subject(cls)
    laws.frozen_value(subject)
    mechanism = cls.example(subject.budget())
    names = {c.__name__: c for c in (*mechanisms.ALL, DP, ZCDP, Marginals, Dyadic, Haar)}
    assert eval(repr(mechanism), names) == mechanism
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism  # for workers


@in_every_basis
def test_the_ledger_costs_the_budget_and_no_more(cls):
    laws.costs_its_budget(Subject(cls))


@in_every_basis
def test_all_randomness_comes_from_rng(cls):
    laws.randomness_is_the_rngs(Subject(cls))


@in_every_basis
def test_without_rng_it_is_fit_to_publish_and_never_repeats(cls):
    laws.fit_to_publish(Subject(cls))


@in_every_basis
def test_the_estimate_is_public_and_on_the_tables_domain(cls):
    subject = Subject(cls)
    laws.estimate_is_public(subject)
    release = subject.release(subject.table([9, 1, 4]), seeded())
    if type(release.estimate) is Summary:
        columns = ["home", "work", "count", "sd", "low", "high"]
        assert list(release.to_frame().columns)[:6] == columns


@in_every_basis
def test_what_is_saved_is_what_is_loaded(cls):
    laws.saved_is_loaded(Subject(cls))


@in_every_basis
def test_empty_tables_are_tables(cls):
    laws.empty_tables_are_tables(Subject(cls))


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
    laws.recipes_are_their_queries(Subject(cls))


@in_every_basis
def test_a_public_table_cannot_be_spent_on(cls):
    laws.public_tables_are_refused(Subject(cls))


@every
def test_budgets_that_cannot_be_spent_are_refused(cls):
    laws.refuses_budgets(Subject(cls))


@every
def test_numbers_out_of_range_name_field_value_and_range(cls):
    laws.refuses_numbers(Subject(cls))


@in_every_basis
def test_the_error_vanishes_as_epsilon_grows(cls):
    if not getattr(cls, "converges", True):
        pytest.skip("declared as not converging in its own file")
    laws.error_vanishes(Subject(cls))


def neighbour_cases():
    """Every mechanism at one bound quickly; two bounds, bases and more runs where there is more time."""
    for bound, name in ((Bound(), "one cell"), (Bound(2, 1), "two cells")):
        for cls in (*mechanisms.ALL, *bases()):
            other = (bound != Bound()) + (cls not in mechanisms.ALL)
            if other < 2:
                marks = [(), pytest.mark.slow][other]
                yield pytest.param(cls, bound, 500, marks=marks, id=f"{name}-{cls.__name__}")
            more = f"{name}, more runs-{cls.__name__}"
            yield pytest.param(cls, bound, 2000, marks=pytest.mark.long, id=more)


@pytest.mark.parametrize("cls, bound, runs", [*neighbour_cases()])
def test_neighbours_are_hard_to_tell_apart(cls, bound, runs):
    """Seeded: never by chance; sees cells whose noise has half of its scale."""
    subject = Subject(cls)
    several = subject.relation == ADD_REMOVE or cls is mechanisms.InfTDA
    if not several and bound.l1 > 1:
        with pytest.raises(ValueError, match="bound"):
            subject.release(subject.table([1], bound))
        return
    laws.neighbours_are_alike(subject, bound, runs)


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
    classes = mechanisms.ALL + mechanisms.COMPOSED
    families = {cls.__module__.rpartition(".")[2] for cls in classes}
    assert families.isdisjoint({"protocol", "laws", "neighbours", "options"})
    assert files == families | {"protocol", "laws", "neighbours", "options"}


@every
def test_the_file_states_what_it_promises(cls):
    laws.states_promises(Subject(cls))
    assert cls.cite


@in_every_basis
def test_without_rng_all_randomness_is_the_systems(cls, monkeypatch):
    monkeypatch.setattr("os.urandom", bytes)  # held fixed, so that nothing may move any more
    subject = Subject(cls)
    table = subject.table([9, 1, 4, 9000, 7])
    one, same = (answers(subject.release(table, epsilon=0.3)) for _ in range(2))
    assert (one == same).all() and one.any()


@every
def test_no_cell_is_released_twice_or_from_outside_the_domain(cls):
    laws.cells_are_released_once(Subject(cls))


@in_every_basis
def test_every_receipt_that_was_written_is_in_the_ledger(cls):
    laws.receipts_are_kept(Subject(cls))
    laws.price_is_fixed(Subject(cls))


@in_every_basis
def test_error_bars_are_as_wide_as_the_errors_or_not_given(cls):
    laws.error_bars_fit(Subject(cls))


accepting = pytest.mark.parametrize(
    "cls", [c for c in mechanisms.ALL if c.accepts_zcdp], ids=lambda c: c.__name__
)


@accepting
@pytest.mark.parametrize(
    "law",
    [
        laws.frozen_value,
        laws.refuses_budgets,
        laws.costs_its_budget,
        laws.receipts_are_kept,
        laws.saved_is_loaded,
        laws.error_vanishes,
        pytest.param(laws.error_bars_fit, marks=pytest.mark.slow),
        pytest.param(laws.neighbours_are_alike, marks=pytest.mark.long),
    ],
)
def test_under_a_rho_the_same_laws_hold(cls, law):
    law(Subject(cls, zcdp=True))


@accepting
def test_of_a_rho_the_noise_is_gaussian_and_of_an_epsilon_never(cls):
    for zcdp in (False, True):
        subject = Subject(cls, zcdp)
        names = {r.name for r in subject.release(subject.table([9, 1, 4]), seeded()).ledger}
        kinds = {type(r.cost) for r in subject.release(subject.table([9]), seeded()).ledger}
        assert subject.zcdp == (ZCDP in kinds), names


@value
class Careless(mechanisms.LaplaceHistogram):
    """It draws an eighth of the noise that its receipt says."""

    def __call__(self, table, rng=None):
        release = super().__call__(table, rng)
        counts = table.dense().ravel().astype(float)
        noisy = counts + (release.estimate.values - counts) / 8
        estimate = Histogram(table.domain, noisy, 1.0)
        return dataclasses.replace(release, estimate=estimate, ledger=tuple(release.ledger))


def test_laws_find_what_is_broken_and_go_on():
    outcomes = [*check_laws(Careless)]
    assert len(outcomes) == len(LAWS)
    broken = [o.broken for o in outcomes if o.broken and "(neighbours) are hard" in o.law]
    assert len(broken) == 1 and "likelier" in broken[0], broken


@value
class Useless(mechanisms.LaplaceHistogram):
    """It releases noise of the same size at every ε, and bars that are ten times too short."""

    fixed_price = True

    def __call__(self, table, rng=None):
        release = super().__call__(table, rng)
        noisy = table.dense().ravel() + rng.normal(scale=10.0, size=table.domain.size)
        return dataclasses.replace(release, estimate=Histogram(table.domain, noisy, 1.0))


@pytest.mark.parametrize("law", [laws.error_vanishes, laws.error_bars_fit, laws.price_is_fixed])
def test_a_broken_law_prints_numbers_as_people_write_them(law, monkeypatch):
    prices = ((Fraction(k, 3), Fraction(0)) for k in range(9))
    monkeypatch.setattr(laws, "exact_rho", lambda ledger: next(prices))
    with pytest.raises(Broken) as caught:
        law(Subject(Useless))
    text = str(caught.value)
    assert ("errors are" in text or "receipts say" in text) and not re.search(
        "64|Frac|\\[", text
    )
    numbers = re.findall(r"\d[\d,]*\.?\d*", text)
    assert numbers and max(len(digits.replace(",", "")) for digits in numbers) <= 8, text
