"""Each shortcut has the law of the laborious process, and of the literal one; answers and formulas."""

from math import exp, sqrt

import numpy as np
import pytest

from tests.agreement import same_runs, seeded
from tests.reference import (
    answers,
    high_pass_filter,
    priority_sampling,
    threshold_sampling,
)
from workbench import (
    DP,
    Bound,
    Boxes,
    Domain,
    Products,
    RandomSubsets,
    Ranges,
    SparseTable,
    Subsets,
    TableQueries,
    noise,
)
from workbench.mechanisms import (
    GeometricHistogram,
    HighPassFilter,
    Laborious,
    LaplaceQueries,
    PrioritySampling,
    ThresholdSampling,
    UniformSampling,
)
from workbench.queries import Marginals, Together

EPSILON, M = 0.2, 600
DOMAIN = Domain(("x",), (M,))
rng = np.random.default_rng(0)
KEYS = np.sort(rng.choice(M, 70, replace=False))
COUNTS = np.maximum(1, np.rint(rng.normal(25, 12, 70))).astype(int)
TABLE = SparseTable(DOMAIN, KEYS, COUNTS, Bound(), truth_public=True)
DENSE = TABLE.dense().tolist()
B = DP(EPSILON)

SHORTCUTS = [
    HighPassFilter(B, 12),
    HighPassFilter(B, 7.3),
    HighPassFilter(B, 12, sides=1),
    HighPassFilter(B, 0, sides=1),
    HighPassFilter(B, size=40),
    ThresholdSampling(B, 40.5),
    ThresholdSampling(B, 30, theta=9),
    ThresholdSampling(B, 55, theta=4, sides=1),
    ThresholdSampling(B, size=60),
    PrioritySampling(B, 60),
    PrioritySampling(B, 60, theta=10.5),
    PrioritySampling(B, 50, theta=6, sides=1),
    PrioritySampling(B, 400, theta=20),
]


def described(release):
    e = release.estimate
    occupied = np.isin(e.keys, KEYS)
    return e.keys, e.values, e.tau, len(e), occupied.mean() if len(e) else 0, e.weights().sum()


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", SHORTCUTS, ids=repr)
def test_the_shortcut_has_the_law_of_the_laborious_process(mechanism):
    rng = np.random.default_rng(1)
    runs = [
        [described(m(TABLE, rng)) for _ in range(500)]
        for m in (mechanism, Laborious(mechanism))
    ]
    same_runs(*runs)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mechanism", [SHORTCUTS[i] for i in (0, 1, 2, 5, 6, 7, 9, 10, 11)], ids=repr
)
def test_and_of_the_literal_process_written_by_someone_else(mechanism):
    rng, m = np.random.default_rng(2), mechanism

    def literally():
        if isinstance(m, HighPassFilter):
            out, tau = high_pass_filter.release(DENSE, EPSILON, 1, m.theta, m.sides, rng), 0.0
            out = {k: (v, v) for k, v in out.items()}
        elif isinstance(m, ThresholdSampling):
            out = threshold_sampling.release(DENSE, EPSILON, 1, m.tau, m.theta, m.sides, rng)
            tau = m.tau
        else:
            out, tau = priority_sampling.release(
                DENSE, EPSILON, 1, m.size, m.theta, m.sides, rng
            )
        keys = np.array(sorted(out), int)
        held = np.isin(keys, KEYS).mean() if len(keys) else 0
        values = np.array([out[k][0] for k in keys.tolist()], int)
        return keys, values, tau, len(keys), held, sum(w for _, w in out.values())

    same_runs([described(m(TABLE, rng)) for _ in range(250)], [literally() for _ in range(250)])


@pytest.mark.parametrize(
    "theta, tau, sides", [(0, 10, 2), (4.3, 7.3, 2), (5, 30.5, 1), (9, 3, 2)]
)
def test_survival_formula_of_threshold_sampling(theta, tau, sides):
    ours = ThresholdSampling(B, tau, theta, sides).survival(EPSILON)
    literal = threshold_sampling.survival(exp(-EPSILON), theta, tau, sides)
    assert ours == pytest.approx(literal, rel=1e-12)


@pytest.mark.parametrize(
    "m, size", [(600, 40), (10**6, 10**5), (10**12, 10**6), (50, 50), (7, 1)]
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_size_chooses_theta_and_tau_from_public_numbers_alone(m, size, epsilon):
    for sides in (1, 2):
        ours = HighPassFilter(DP(epsilon), sides=sides, size=size).threshold(
            Domain(("x",), (m,)), 1
        )
        assert ours == high_pass_filter.theta_for(m, size, epsilon, 1.0, sides)
    ours = ThresholdSampling(DP(epsilon), size=size).threshold(Domain(("x",), (m,)), 1)
    literal = threshold_sampling.tau_for(m, size, epsilon, 1.0, 0, 2)
    assert max(ours, 1) == pytest.approx(max(literal, 1), rel=1e-6)


@pytest.mark.parametrize(
    "mechanism", SHORTCUTS[:1] + SHORTCUTS[5:6] + SHORTCUTS[10:11], ids=repr
)
def test_answers_agree_with_loops_over_the_release(mechanism):
    release = mechanism(TABLE, np.random.default_rng(6))
    held = dict(
        zip(release.estimate.keys.tolist(), release.estimate.weights().tolist(), strict=True)
    )
    spans = [(0, M), (5, 5), (100, 340), (17, 18), (M - 1, M)]
    asked = {
        "ranges": (Ranges(*np.array(spans).T), [range(a, b) for a, b in spans]),
        "subsets": (sets := Subsets.of([[3, 500, 77], [], range(0, M, 3)]), None),
    }
    asked["subsets"] = (sets, [[3, 77, 500], [], range(0, M, 3)])
    for workload, cells in asked.values():
        for absent in (0.0, 6.0):
            loops = [answers.estimate(held, c, absent) for c in cells]
            assert release.answer(workload, absent=absent) == pytest.approx(loops)
        assert TABLE.answer(workload) == pytest.approx([answers.truth(DENSE, c) for c in cells])


def test_boxes_are_products_of_intervals():
    domain = Domain(("a", "b", "c"), (5, 7, 4))
    array = np.random.default_rng(7).poisson(0.6, domain.shape)
    data = SparseTable.from_dense(domain, array, Bound())
    lo, hi = (
        np.array([[0, 0, 0], [1, 2, 3], [4, 6, 0], [2, 2, 2]]),
        np.array([[5, 7, 4], [4, 5, 4], [5, 7, 4], [3, 5, 4]]),
    )
    brute = [
        array[tuple(slice(a, b) for a, b in zip(x, y, strict=True))].sum()
        for x, y in zip(lo, hi, strict=True)
    ]
    assert data.answer(Boxes(lo, hi)).tolist() == brute
    assert Boxes(lo, hi).cells(domain).tolist() == [140, 9, 4, 6]
    full = GeometricHistogram(DP(1e6))(data, np.random.default_rng(0))
    assert full.answer(Boxes(lo, hi)).tolist() == brute


def test_error_bars_against_the_literal_formula():
    release = ThresholdSampling(B, 40)(TABLE, np.random.default_rng(9))
    e = release.estimate
    inside = [
        v for k, v in zip(e.keys.tolist(), e.values.tolist(), strict=True) if 50 <= k < 300
    ]
    literal = answers.threshold_standard_error(250, exp(-EPSILON), inside, 40)
    assert release.answer(Ranges([50], [300]), error=True)[1] == pytest.approx(literal)


def test_error_bars_are_nan_where_no_closed_form_exists():
    for mechanism in (
        HighPassFilter(B, 12),
        PrioritySampling(B, 60, 10),
        UniformSampling(B, 9),
    ):
        release = mechanism(TABLE, np.random.default_rng(0))
        assert np.isnan(release.answer(Ranges([0], [9]), error=True)[1]).all()
    full = GeometricHistogram(B)(TABLE, np.random.default_rng(0))
    a = exp(-EPSILON)
    assert full.answer(Ranges([0], [9]), error=True)[1] == pytest.approx(
        sqrt(9 * 2 * a / (1 - a) ** 2)
    )


def test_raw_weights_are_the_noisy_values():
    e = PrioritySampling(B, 60)(TABLE, np.random.default_rng(0)).estimate
    assert (e.weights("raw") == e.values).all() and (np.abs(e.weights()) >= e.tau).all()
    assert (np.sign(e.weights()) == np.sign(e.values)).all()
    with pytest.raises(ValueError, match="weights"):
        e.weights("adjusted")


def test_priority_sampling_releases_exactly_its_size():
    for size in (1, 7, 300):
        assert len(PrioritySampling(B, size)(TABLE).estimate) == size
    few = PrioritySampling(B, 400, theta=60)(TABLE)
    assert len(few.estimate) < 400 and few.estimate.tau == 0


@pytest.mark.parametrize(
    "make, word",
    [
        (lambda: HighPassFilter(B), "theta or size"),
        (lambda: HighPassFilter(B, 3, size=4), "not both"),
        (lambda: HighPassFilter(B, -1), "theta"),
        (lambda: HighPassFilter(B, 3, sides=3), "sides"),
        (lambda: ThresholdSampling(B), "tau or size"),
        (lambda: ThresholdSampling(B, -0.1), "tau"),
        (lambda: ThresholdSampling(B, size=0), "size"),
        (lambda: PrioritySampling(B, 0), "size"),
        (lambda: PrioritySampling(B, 2.5), "size"),
        (lambda: PrioritySampling(B, M + 1)(TABLE), "size"),
        (lambda: HighPassFilter(B, size=M + 1)(TABLE), "size"),
        (lambda: ThresholdSampling(B, size=M + 1)(TABLE), "size"),
        (lambda: UniformSampling(B, M + 1)(TABLE), "size"),
        (lambda: GeometricHistogram(B, memory=100)(TABLE), "memory"),
        (lambda: Laborious(UniformSampling(B, 3)), "mechanism"),
    ],
)
def test_bad_parameters_are_named(make, word):
    with pytest.raises(ValueError, match=word):
        make()


def test_huge_domains_cost_nothing():
    domain = Domain(("a", "b", "c"), (2**21, 2**21, 2**21 - 1))
    data = SparseTable.from_keys(domain, [0, domain.size - 1], [500, 700], Bound())
    release = PrioritySampling(DP(0.5), 50, theta=100)(data)
    assert {0, domain.size - 1} <= set(release.estimate.keys.tolist())
    release = HighPassFilter(DP(0.5), size=1000)(data)
    spread = release.estimate.keys / domain.size
    assert 500 < len(release.estimate) < 1500 and spread.max() > 0.9 > 0.1 > spread.min()
    subset = RandomSubsets(10**15, 5).on(domain)
    assert np.isfinite(release.answer(subset)).all()


@pytest.mark.parametrize("mechanism", SHORTCUTS, ids=repr)
def test_what_is_released_reaches_the_cut_and_tells_nothing_of_how_many_cells_are_filled(
    mechanism,
):
    told = set()
    for n in (0, 1, 70, 500):
        data = SparseTable.from_keys(DOMAIN, range(n), [9] * n, Bound())
        e = mechanism(data, np.random.default_rng(0)).estimate
        told.add((e.theta, e.sides, e.tau if isinstance(mechanism, ThresholdSampling) else 0))
        assert ((e.values if e.sides == 1 else np.abs(e.values)) >= e.theta).all()
    assert len(told) == 1


SMALL = Domain(("x",), (3,))
UNEVEN = 1 + 2.0**-26 + 2.0**-27  # half a step above an odd number of steps of 2^-26: rounds up
ONE_TERM = Products.of(SMALL, [(UNEVEN, {"x": (0, 2)})] * 4)
TWO_TERMS = Products.of(SMALL, [[(UNEVEN, {"x": (0, 2)}), (UNEVEN, {"x": {0}})]] * 3)
TABLES = TableQueries.of(SMALL, [(("x",), [-UNEVEN, 0.0, UNEVEN])] * 5)


@pytest.mark.parametrize(
    "workload",
    [ONE_TERM, TWO_TERMS, TABLES, Together((TWO_TERMS, TABLES))],
    ids=["one term", "two terms", "tables", "together"],
)
@pytest.mark.parametrize("tuples", [1, 3])
def test_the_rounding_of_every_query_term_is_paid_for(workload, tuples, monkeypatch):
    """Every term rounds away from 0 by half a step, the worst there is, and the price is that.

    Nothing random is compared: a sensitivity below what these tuples move shows, however little.
    """
    measured = []
    laplace = noise.laplace

    def watched(steps, *, l1, **rest):
        measured.append((steps, l1))
        return laplace(steps, l1=l1, **rest)

    monkeypatch.setattr(noise, "laplace", watched)
    for count in (0, tuples):
        data = SparseTable.from_keys(SMALL, [0, 1], [count, 7], Bound(1, tuples))
        LaplaceQueries(DP(5.0), workload)(data, np.random.default_rng(0))
    (without, l1), (whole, same_l1) = measured
    moved = int(np.abs(whole - without).sum())
    assert moved <= l1 < moved + 0.5 and l1 == same_l1


def test_answers_have_noise_for_all_tuples_of_a_unit():
    def variance(bound):
        table = SparseTable.from_keys(Domain(("a",), (8,)), [1, 3], [4, 2], bound)
        return LaplaceQueries(DP(1.0), Marginals(1))(table, seeded()).estimate.variances[0]

    assert variance(Bound(4)) == pytest.approx(16 * variance(Bound(1)), rel=0.05)
