"""ρ and (ε, δ): both conversions against sixty digits and other people's, and what mixed ledgers cost."""

from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import combinations
from math import inf, nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workbench import DP, ZCDP, Receipt, compose, guarantee
from workbench.data import Bound
from workbench.privacy import REPLACE, epsilon_above, exact_rho, rho_above
from workbench.privacy.budgets import price_of_order
from workbench.privacy.enclosures import ln, round_up

# OpenDP 0.16's `make_zCDP_to_approxDP`, to the digits shown: ρ, δ, ε
PUBLISHED = [
    (0.01, 1e-6, 0.621692655),
    (0.01, 1e-9, 0.810174468),
    (0.1, 1e-6, 2.141938928),
    (0.1, 1e-9, 2.715481887),
    (0.5, 1e-6, 5.221534445),
    (0.5, 1e-9, 6.474070021),
    (1, 1e-6, 7.766216625),
    (1, 1e-9, 9.521463672),
]
RHO = st.floats(1e-12, 1e6)
DELTA = st.floats(1e-30, 0.999)


@pytest.fixture(autouse=True)
def sixty_digits():
    with localcontext() as context:
        context.prec = 60
        yield


def decimal(x):
    x = Fraction(x)
    return Decimal(x.numerator) / Decimal(x.denominator)


def tight(rho, delta):
    """ε of ρ-zCDP at δ: the least over all orders, by the sign of its slope."""
    rho = decimal(rho)
    delta = decimal(delta)
    low = Decimal("1e-40")
    high = Decimal("1e40")
    for _ in range(150):
        shift = (low * high).sqrt()
        if rho * shift**2 + (1 + shift).ln() + delta.ln() < 0:
            low = shift
        else:
            high = shift
    order = 1 + shift
    price = -delta.ln() + order * (shift / order).ln() - shift.ln()
    return max(Decimal(0), order * rho + price / shift)


@pytest.mark.parametrize(("rho", "delta", "epsilon"), PUBLISHED)
def test_conversion_agrees_with_published_numbers(rho, delta, epsilon):
    assert round(ZCDP(rho).at(delta).epsilon, 9) == epsilon


@settings(deadline=None, max_examples=30)
@given(RHO, DELTA)
def test_epsilon_is_never_below_the_best_order_and_hardly_above(rho, delta):
    best = tight(rho, delta)
    ours = decimal(ZCDP(rho).at(delta).epsilon)
    assert best <= ours <= best * (1 + Decimal(2) ** -45) + Decimal("1e-25")


@settings(deadline=None, max_examples=30)
@given(st.floats(1e-9, 1e6), DELTA)
def test_what_is_within_a_budget_never_costs_more_and_no_more_would_fit(epsilon, delta):
    budget = DP(epsilon, delta)
    rho = ZCDP.within(budget).rho
    assert ZCDP(rho).at(delta).epsilon <= epsilon
    assert ZCDP(rho * (1 + 1e-9)).at(delta).epsilon > epsilon


@settings(deadline=None, max_examples=30)
@given(st.fractions(0, 2, max_denominator=1000), st.integers(2, 40))
def test_delta_at_the_epsilon_of_an_order_is_the_corollary_s(rho, order):
    epsilon = order * rho + price_of_order(Fraction(order - 1), Fraction(1, 10**6))
    exponent = (order - 1) * (order * rho - epsilon)
    delta = decimal(exponent).exp() * (1 - 1 / Decimal(order)) ** order / (order - 1)
    assert abs(delta / Decimal("1e-6") - 1) < Decimal("1e-50")


@settings(deadline=None, max_examples=30)
@given(st.floats(1e-6, 20))
def test_pure_epsilon_costs_the_rho_of_randomised_response(epsilon):
    decayed = decimal(-Fraction(epsilon)).exp()
    exact = decimal(epsilon) * (1 - decayed) / (1 + decayed)
    assert exact <= decimal(rho_above(epsilon)) <= exact * (1 + Decimal(2) ** -52)


@pytest.mark.parametrize("epsilon", [0.01, 0.7, 3.0, 9.0])
def test_randomised_response_has_at_most_that_divergence_at_every_order(epsilon):
    """The divergence of randomised response is at most α·ρ with ρ = ε·tanh(ε/2), for every order α > 1.

    So ε-DP implies ρ-zCDP: every other pair of distributions that satisfies ε-DP can be computed from the
    reports of randomised response, and this increases no divergence.

    Proof: let x = ε/2 and s = 2α − 1. The divergence is D = ln(cosh(s·x)/cosh(x))/(α − 1). The function
    u ↦ ln cosh(x·√u) is concave, because its slope falls. So ln cosh(s·x) − ln cosh(x) is at most the slope
    at u = 1 times s² − 1, which is (s² − 1)·x·tanh(x)/2. With s² − 1 = 4α(α − 1), this is D ≤ α·ε·tanh(ε/2).
    As α approaches 1, both sides become equal, so no smaller ρ is possible.
    """
    rho = decimal(rho_above(epsilon))
    truth = 1 / (1 + (-decimal(epsilon)).exp())
    lie = 1 - truth
    for order in map(Decimal, ("1.000001", "1.5", "2", "7", "50", "1000")):
        moment = truth**order * lie ** (1 - order) + lie**order * truth ** (1 - order)
        assert moment.ln() / (order - 1) <= order * rho
    assert (truth - lie) * (truth / lie).ln() >= rho * (1 - Decimal("1e-15"))


@settings(deadline=None, max_examples=30)
@given(st.fractions(1, 10**12), st.integers(64, 160))
def test_logarithms_are_enclosed(x, bits):
    enclosed = ln(x, bits)
    exact = decimal(x).ln() * 2**bits
    assert enclosed.lo <= exact <= enclosed.hi
    assert enclosed.hi - enclosed.lo <= 3


def test_a_dyadic_tree_costs_the_rho_of_its_structure():
    generic = Receipt("tree", DP(0.5))
    structured = Receipt("tree", DP(0.5), rho=0.005)
    assert compose([structured]) == DP(0.5)  # pure as before
    assert guarantee([structured] * 10, 1e-9).epsilon < guarantee([generic] * 10, 1e-9).epsilon
    assert compose([structured, Receipt("counts", ZCDP(0.02))]) == ZCDP(0.025)


def test_rho_adds_up_exactly_and_is_rounded_up_once():
    receipts = [Receipt("counts", ZCDP(0.1))] * 10
    exact = 10 * Fraction(0.1)
    assert exact_rho(receipts) == (exact, 0)
    assert compose(receipts).rho == round_up(exact) > 1
    assert not ZCDP(1.0).covers(compose(receipts))


def test_parts_of_a_partition_cost_the_dearest_and_replacing_all_of_them():
    parts = [
        Receipt("counts", ZCDP(rho), part=("by canton", name))
        for rho, name in ((0.25, "Bern"), (0.5, "Genf"))
    ]
    assert compose(parts) == ZCDP(0.5)
    replaced = [Receipt(r.name, r.cost, REPLACE, part=r.part) for r in parts]
    assert compose(replaced) == ZCDP(0.75)


def ledgers():
    epsilons = st.floats(0.01, 3)
    pure = st.builds(
        lambda e, share: Receipt("pure", DP(e), rho=share * e**2),
        epsilons,
        st.floats(0.01, 0.4),
    )
    plain = st.builds(lambda e: Receipt("pure", DP(e)), epsilons)
    approximate = st.builds(lambda e: Receipt("stability", DP(e, 1e-10)), epsilons)
    gaussian = st.builds(lambda rho: Receipt("gaussian", ZCDP(rho)), st.floats(0.001, 1))
    return st.lists(st.one_of(pure, plain, approximate, gaussian), min_size=1, max_size=6)


@settings(deadline=None, max_examples=30)
@given(ledgers())
def test_the_best_of_all_subsets_is_reported(receipts):
    delta = 1e-8
    spent = sum(Fraction(r.cost.delta) for r in receipts)
    pure = [r for r in receipts if isinstance(r.cost, DP)]
    candidates = []
    for size in range(len(pure) + 1):
        for alone in combinations(pure, size):
            ids = {id(r) for r in alone}
            others = [r for r in receipts if id(r) not in ids]
            rho = exact_rho(others)[0]
            candidates.append(
                sum(Fraction(r.cost.epsilon) for r in alone)
                + epsilon_above(rho, Fraction(delta) - spent)
            )
    best = min(candidates)
    reported = guarantee(receipts, delta)
    assert reported.delta == delta
    assert best <= Fraction(reported.epsilon) * (1 + Fraction(1, 2**40))
    assert reported.epsilon <= float(best) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("ledger", "epsilon"),
    [
        ([DP(0.1)] * 10, 1.0),
        ([DP(0.1)] * 100, 6.471),
        ([DP(0.01)] * 1000, 1.882),
        ([DP(2.0)] + [DP(0.1)] * 60, 6.895),
        ([DP(0.5), ZCDP(0.02), DP(0.1, 1e-10)], 1.767),
    ],
)
def test_ledgers_of_the_notes(ledger, epsilon):
    receipts = [Receipt("some", cost) for cost in ledger]
    assert round(guarantee(receipts, 1e-9).epsilon, 3) == epsilon


def test_a_pure_ledger_needs_no_delta_and_a_zcdp_ledger_does():
    assert guarantee([Receipt("a", DP(0.25)), Receipt("b", DP(0.5))], 0) == DP(0.75, 0)
    with pytest.raises(ValueError, match="a rho implies no epsilon at 0"):
        guarantee([Receipt("a", ZCDP(0.25))], 0)
    with pytest.raises(ValueError, match="need more than 1e-06, which the measurements spend"):
        guarantee([Receipt("a", ZCDP(0.25, delta=1e-6))], 1e-6)
    with pytest.raises(ValueError, match="need more than 1e-06"):
        guarantee([Receipt("a", DP(0.25, delta=1e-6))], 1e-7)
    for delta in (-1e-9, 1.0, nan, "1e-9", True):
        with pytest.raises(ValueError, match="delta ="):
            guarantee([Receipt("a", ZCDP(0.25))], delta)


def test_what_promises_nothing_promises_nothing_at_any_delta():
    receipts = [Receipt("a", DP(inf)), Receipt("b", ZCDP(0.5))]
    assert guarantee(receipts, 1e-9) == DP(inf, 1e-9)
    assert compose(receipts).epsilon == inf


def test_replacing_and_adding_or_removing_never_add_up():
    receipts = [Receipt("a", ZCDP(0.5)), Receipt("b", ZCDP(0.5), REPLACE)]
    for add_up in (compose, exact_rho, lambda r: guarantee(r, 1e-9)):
        with pytest.raises(ValueError, match="different neighbouring relations"):
            add_up(receipts)


@pytest.mark.parametrize("rho", [0, -1, inf, -inf, nan, "1", None, True])
def test_a_rho_is_a_finite_number_above_0(rho):
    with pytest.raises(ValueError, match=r"ZCDP\.rho"):
        ZCDP(rho)
    if rho is not None:
        with pytest.raises(ValueError, match=r"Receipt\.rho"):
            Receipt("a", DP(1.0), rho=rho)


@pytest.mark.parametrize(
    "budget", [DP(1.0), DP(0.0, 1e-9), DP(inf, 1e-9), DP(1.0, 1.0), 1.0, ZCDP(1.0), None]
)
def test_nothing_is_within_a_budget_without_epsilon_or_delta(budget):
    with pytest.raises(ValueError, match="need a finite epsilon"):
        ZCDP.within(budget)


def test_an_epsilon_pays_for_a_rho_where_its_delta_does():
    assert ZCDP(0.1).at(1e-6).epsilon < 2.2
    assert DP(2.2, 1e-6).covers(ZCDP(0.1)) and not DP(2.1, 1e-6).covers(ZCDP(0.1))
    assert not DP(1e3).covers(ZCDP(0.1)) and not DP(1e3, 1e-6).covers(ZCDP(0.1, 1e-6))


def test_extremes_are_computed_or_refused():
    assert ZCDP(5e-324).at(0.5).epsilon == 0
    assert ZCDP(1.7976931348623157e308).at(5e-324).epsilon >= 1.7976931348623157e308
    assert ZCDP(1e-300).at(1e-300).epsilon > 0
    assert 0 < ZCDP(5e-324).at(5e-324).epsilon < 1e-150
    assert ZCDP(1.7e308).at(1 - 2**-53).epsilon >= 1.7e308
    assert ZCDP.within(DP(1e-100, 1e-300)).at(1e-300).epsilon <= 1e-100
    assert ZCDP.within(DP(1e300, 1e-3)).rho <= 1e300
    assert ZCDP.within(DP(1e-300, 1e-3)).at(1e-3).epsilon <= 1e-300
    assert guarantee([Receipt("a", DP(1e308), rho=1e-300)] * 2, 1e-9).epsilon < 1
    beyond = [Receipt("a", ZCDP(1.7e308))] * 2
    assert guarantee(beyond, 1e-9) == DP(inf, 1e-9)
    for add_up in (lambda: compose(beyond), lambda: ZCDP(1.7e308) + ZCDP(1.7e308)):
        with pytest.raises(ValueError, match="promise nothing"):
            add_up()


@pytest.mark.parametrize(
    ("bound", "squared"),
    [
        (Bound(), 1),
        (Bound(3, 2, 5), 9),
        (Bound(3, 3, 7), 19),
        (Bound(4, 2), 16),
        (Bound(10, 1), 10),
        (Bound(10, 10, 10), 100),
    ],
)
def test_l2_of_a_bound_is_the_longest_move(bound, squared):
    assert bound.l2_squared == squared
    moves = _moves(bound.l0, bound.linf, bound.l1) if bound.l0 <= 4 else []
    assert max((sum(k * k for k in move) for move in moves), default=squared) == squared
    assert bound.l2_squared <= Fraction(bound.l2) ** 2 * (1 + Fraction(1, 10**12))


def _moves(cells, most, total):
    """All whole moves of so many cells."""
    if not cells:
        return [()]
    return [
        (first, *rest)
        for first in range(min(most, total) + 1)
        for rest in _moves(cells - 1, most, total - first)
    ]
