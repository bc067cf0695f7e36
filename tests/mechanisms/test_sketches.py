"""Count sketches and unary projections: hashes, closed forms, privacy of the bits, files, refusals."""

from fractions import Fraction
from functools import partial
from itertools import product
from math import ceil, exp, sqrt

import numpy as np
import pytest
from scipy import stats

from tests.agreement import RARE, Scripted, same_law
from tests.reference import alp, count_sketch
from workbench import (
    DP,
    Bound,
    Boxes,
    Domain,
    RandomSubsets,
    Ranges,
    Release,
    SparseTable,
    Subsets,
    noise,
)
from workbench.estimates import Projection, Sketch
from workbench.estimates.describing import cells_from_nothing
from workbench.mechanisms import ALP, CountSketch
from workbench.noise import hashes, response
from workbench.noise.source import Source

B = DP(1.0)
DOMAIN = Domain(("x",), (2**62,))
rng = np.random.default_rng(0)
KEYS = np.unique(np.concatenate([[0, 2**62 - 1], rng.integers(0, 2**62, 198)]))
COUNTS = rng.integers(1, 60, len(KEYS))
TABLE = SparseTable(DOMAIN, KEYS, COUNTS, Bound())
SAME = [CountSketch(B, 300, 3), CountSketch(B, 64, 2, "median"), ALP(B, 70, 6000)]


def seeded(seed=1):
    return np.random.default_rng(seed)


def literally(key, words):
    """The hash of a key, in Python's own integers."""
    a, b, c = map(int, words)
    return ((a + (key >> 32)) * (b + key % 2**32) + c) % 2**64


def buckets(key, words, width):
    """Sign and bucket of a key."""
    for word in words[6:].tolist():
        key = (key ^ key >> 32) * (word | 1) % 2**64
    key ^= key >> 32
    words = words[:6]
    sign = -1 if literally(key, words[3:]) >> 63 else 1
    return sign, (literally(key, words[:3]) >> 32) * width >> 32


def words(functions, seed=None, each=3):
    rng = None if seed is None else seeded(seed)
    return noise.random_words(each * functions, rng=rng).reshape(functions, each).copy()


@pytest.mark.parametrize("width", [1, 2, 37, 2**20])
def test_rows_are_what_the_hash_functions_say(width):
    (function,) = words(1, 2, each=8)
    row, literal = np.zeros(width, np.int64), np.zeros(width, np.int64)
    hashes.add_counts(KEYS, COUNTS, function, row)
    for key, count in zip(KEYS.tolist(), COUNTS.tolist(), strict=True):
        sign, bucket = buckets(key, function, width)
        literal[bucket] += sign * count
    assert row.any() and (row == literal).all()


def test_answers_are_loops_over_cells():
    release = CountSketch(B, 50, 4)(TABLE, seeded())
    spans = [(0, 5), (9, 9), (2**62 - 3, 2**62), (2**40, 2**40 + 1)]
    sets = [[3, 2**61, 77], [], [5]]

    def one(key, e=release.estimate):
        found = (buckets(key, w, 50) for w in e.hash_parameters)
        return [s * row[b] for (s, b), row in zip(found, e.values.tolist(), strict=True)]

    for workload, asked in (
        (Ranges(*np.array(spans).T), [range(a, b) for a, b in spans]),
        (Subsets.of(sets), sets),
    ):
        rows = np.array([np.sum([one(k) for k in s] or [[0] * 4], axis=0) for s in asked])
        assert release.answer(workload) == pytest.approx(rows.mean(axis=1))
        e = release.estimate
        middle = Sketch(DOMAIN, e.hash_parameters, e.values, e.law, "median")
        assert middle.answer(workload) == pytest.approx(np.median(rows, axis=1))


@pytest.mark.parametrize("cells", [1, 30, 1000])
def test_ranges_are_as_far_off_as_their_standard_errors_say(cells):
    """A hash that is only independent for pairs is four times as far off over 1000 cells."""
    # Seeded: never by chance; sees a squared error bar that is off by 15 %.
    rng, m = seeded(8), 20_000
    keys = np.sort(rng.choice(m, 2000, replace=False))
    counts = np.maximum(1, np.rint(rng.normal(100, 20, 2000))).astype(int)
    data = SparseTable.from_keys(Domain(("x",), (m,)), keys, counts, Bound())
    lo = rng.integers(0, m - cells, 100)
    asked = Ranges(lo, lo + cells)
    drawn = [
        CountSketch(DP(0.1), 2000)(data, rng).answer(asked, error=True) for _ in range(120)
    ]
    off, bars = (np.array(x) for x in zip(*drawn, strict=True))
    off = off - data.answer(asked)
    assert (off**2).mean() == pytest.approx((bars**2).mean(), rel=0.15)


def test_standard_errors_are_those_of_means():
    asked = Ranges([3, 3, 3], [4, 5, 3])
    bars = CountSketch(B, 300, 3)(TABLE).answer(asked, error=True)[1]
    assert bars[1] > bars[0] > 0 == bars[2]
    for release in (CountSketch(B, 300, 3, "median")(TABLE), ALP(B, 70, 6000)(TABLE)):
        assert np.isnan(release.answer(asked, error=True)[1]).all()
    quiet = CountSketch(DP(0.01), 2, 1)(
        TABLE, seeded()
    )  # noise drowns F₂, which may be below 0
    assert (quiet.answer(asked, error=True)[1][0]) > 0


def test_noise_on_a_sketch_has_the_depths_share():
    """Seeded: never by chance; sees a variance that is off by 3 %."""
    bound, depth = Bound(2, 3, 5), 4
    data = SparseTable.from_keys(Domain(("x",), (9,)), [], [], bound)
    e = CountSketch(B, 50_000, depth)(data, seeded()).estimate
    a = exp(-1 / (depth * 5))
    assert e.values.var() == pytest.approx(2 * a / (1 - a) ** 2, rel=0.03)
    assert e.law.rate == pytest.approx(1 / 20)


# unary projections


@pytest.mark.parametrize("rate", [Fraction(1, 3), Fraction(7, 2), Fraction(2**53 - 1, 2**70)])
def test_rounding_keeps_the_mean_and_goes_to_a_neighbour(rate):
    """By chance at most once in 10⁹ runs; sees a mean that is off by 0.016."""
    counts = np.repeat([0, 1, 2, 3, 2**50 + 1], 40_000)
    got = response.randomised_rounding(counts, rate, Source(None))
    for count in np.unique(counts).tolist():
        mine, exact = got[counts == count], count * rate
        assert set(mine.tolist()) <= {exact.__floor__(), exact.__ceil__()}
        off = (mine - exact.__floor__()).mean() - float(exact - exact.__floor__())
        assert abs(off) < stats.norm.isf(RARE / 10) * 0.5 / sqrt(len(mine))


def test_rounding_is_exact_where_floats_are_not():
    rate = Fraction(1, 3)
    assert response.randomised_rounding(np.array([3 * 2**50]), rate, Source(None))[0] == 2**50
    for high, up in ((0, 1), (2**64 - 1, 0)):  # the smallest and the largest uniform number
        fixed = lambda n, high=high: np.full(n, high, np.uint64)
        assert response.randomised_rounding(np.array([1]), rate, Scripted(fixed))[0] == up
    edge = 2**64 // 3  # its cell holds 1/3: the next words decide
    for low, up in ((0, 1), (2**64 - 1, 0)):
        drawn = iter([edge])
        fixed = lambda n: np.array([next(drawn, low) for _ in range(n)], np.uint64)  # noqa: B023
        assert response.randomised_rounding(np.array([1]), rate, Scripted(fixed))[0] == up


@pytest.mark.parametrize("alpha", [0.5, 3.0, 40.0])
def test_bits_flip_as_often_as_they_should_and_independently(alpha):
    """By chance at most once in 10⁹ runs; sees a chance that is off by 0.003."""
    empty = np.empty(0, np.int64)
    bits, _ = noise.alp_projection(empty, empty, words(3), 2**20, l1=1, epsilon=1, alpha=alpha)
    flat = np.unpackbits(bits.view(np.uint8), bitorder="little").astype(float)
    p = 1 / (alpha + 2)
    far = stats.norm.isf(RARE / 8)  # both sides of four checks
    n = len(flat)
    assert n == 2**20 and abs(flat.mean() - p) < far * sqrt(p * (1 - p) / n)
    for lag in (1, 8, 64):
        both = (flat[lag:] * flat[:-lag]).mean()
        assert abs(both - p * p) < 2 * far * sqrt(p * p / n)


def law(filled, functions, size, rate, alpha):
    """The exact law of the bits that show, over every rounding; as a dict from set bits to chance."""
    out = {}
    for ups in product((0, 1), repeat=len(filled)):
        chance, marked = 1.0, set()
        for (key, count), up in zip(filled, ups, strict=True):
            worth = min(count * rate, 10**9)
            part = worth - int(worth)
            chance *= part if up else 1 - part
            high = min(int(worth) + up, len(functions))
            marked |= {
                literally(key, w) >> (64 - size.bit_length() + 1) for w in functions[:high]
            }
        out[frozenset(marked)] = out.get(frozenset(marked), 0) + chance
    return out


@pytest.mark.parametrize("epsilon, alpha", [(1.0, 3.0), (5.0, 1.5), (9.0, 4.0)])
def test_one_unit_changes_no_outcome_by_more_than_its_epsilon(epsilon, alpha):
    """Exactly, for every output of the few bits that matter; colliding hashes included."""
    functions, size, p = words(6, 5), 64, 1 / (alpha + 2)
    functions[4] = functions[1]  # a collision of a cell with itself
    near = [(0, 2), (3, 1)], [(0, 3), (3, 1)], [(0, 2)], [(0, 2), (3, 1), (9, 1)]
    rate = epsilon / alpha
    laws = [law(data, functions, size, rate, alpha) for data in near]
    used = sorted(set().union(*(bits for one in laws for bits in one)))
    outputs = [frozenset(b for b, x in zip(used, o, strict=True) if x)
               for o in product((0, 1), repeat=len(used))]  # fmt: skip

    def chances(one):
        return np.array([
            sum(c * p ** len(o ^ bits) * (1 - p) ** (len(used) - len(o ^ bits))
                for bits, c in one.items())
            for o in outputs
        ])  # fmt: skip

    got = [chances(one) for one in laws]
    losses = [np.abs(np.log(got[0] / other)).max() for other in got[1:]]
    assert max(losses) <= epsilon * (1 + 1e-12)
    assert max(losses) > 0.5 * np.log(1 + epsilon)  # the check sees something


def test_the_released_bits_have_that_law():
    """By chance at most once in 10⁹ runs; sees a chance that is off by 0.055."""
    functions, alpha, n = words(4, 6), 3.0, 4000
    keys, counts = np.array([0, 3]), np.array([2, 1])
    expected = law(
        list(zip(keys.tolist(), counts.tolist(), strict=True)), functions, 64, 1 / 2, alpha
    )
    assert sum(expected.values()) == pytest.approx(1)
    drawn = np.array([
        noise.alp_projection(keys, counts, functions, 64, l1=2, epsilon=3.0, alpha=alpha)[0][0]
        for _ in range(n)
    ])  # fmt: skip
    for at in range(64):
        marked = sum(c for bits, c in expected.items() if at in bits)
        chance = (marked * (alpha + 1) + 1 - marked) / (alpha + 2)
        got = (drawn >> np.uint64(at) & np.uint64(1)).mean()
        assert abs(got - chance) < stats.norm.isf(RARE / 128) * 0.5 / sqrt(n)


def test_walks_are_loops_over_levels():
    release = ALP(DP(0.7), 60, 5000, alpha=2.5)(TABLE, seeded())
    e = release.estimate
    flat = np.unpackbits(e.bits.view(np.uint8), bitorder="little")

    def one(key):
        heights = [0]
        for w in e.hash_parameters:
            at = literally(key, w) >> (64 - (len(flat)).bit_length() + 1)
            heights.append(heights[-1] + (1 if flat[at] else -1))
        return e.step * np.mean(np.flatnonzero(np.array(heights) == max(heights)))

    keys = [0, *KEYS[:30].tolist(), 2**62 - 1, 12345]
    assert release.answer(Ranges(keys, np.array(keys) + 1)) == pytest.approx([*map(one, keys)])
    assert release.answer(Subsets.of([keys])) == pytest.approx([sum(map(one, set(keys)))])
    assert e.step == pytest.approx(2.5 / 0.7) and len(e.hash_parameters) == ceil(60 * 0.7 / 2.5)


def test_counts_above_the_largest_are_cut():
    data = SparseTable.from_keys(DOMAIN, [5], [10**9], Bound())
    release = ALP(DP(3.0), 30, 100)(data)
    assert 0 <= release.answer(Ranges([5], [6]))[0] <= 30 + 1e-9


def test_sizes_come_from_public_numbers_alone():
    mechanism = ALP(B, 70, 6000)
    told = set()
    for n in (0, 1, 200):
        data = SparseTable.from_keys(DOMAIN, KEYS[:n], COUNTS[:n], Bound(2, 1))
        e = mechanism(data).estimate
        told.add((len(e.bits) * 64, len(e.hash_parameters), e.step))
    assert told == {(mechanism.bits(2), mechanism.levels(2), 6.0)}
    assert mechanism.bits(2) == 2**16 and mechanism.levels(2) == 12
    assert ALP(B, 1, 1).bits(1) == 64 and ALP(B, 1, 1).levels(1) == 1


# beside the literal procedures, written by someone else

SMALL = SparseTable.from_dense(
    Domain(("x",), (30,)), [0, 7, 0, 25, 3] * 5 + [0, 0, 60, 1, 1], Bound(2, 1)
)
DENSE = SMALL.dense().tolist()


@pytest.mark.slow
@pytest.mark.parametrize("how", ["mean", "median"])
def test_the_sketch_has_the_literal_sketchs_law(how):
    mechanism, rng = CountSketch(DP(0.8), 11, 4, how), seeded(8)
    others = sum(c * c for c in DENSE) - 25**2
    formula = count_sketch.variance(DENSE, 3, 11, 4, 0.8, 2)
    assert mechanism.variance(others, 2) == pytest.approx(formula)
    ours = [mechanism(SMALL, rng).answer(Ranges([3], [4]))[0] for _ in range(600)]
    theirs = []
    for _ in range(600):
        drawn = count_sketch.draw_hashes(4, 11, 30, rng)
        rows = count_sketch.noisy(count_sketch.sketch(DENSE, *drawn, 11), 0.8, 2, 4, rng)
        theirs.append(count_sketch.estimate(rows, *drawn, 3, how))
    assert same_law(ours, theirs) > 1e-5


def test_the_projection_has_the_literal_projections_law():
    mechanism, rng = ALP(DP(2.4), 40, 250, alpha=2.0, size_factor=3), seeded(9)
    told, size, levels_ = (40, 2.4, 2.0, 2), mechanism.bits(2), mechanism.levels(2)
    assert size == alp.size(250, 2.4, 2.0, 2, 3) and levels_ == alp.levels(*told)
    ours, theirs, cells = [], [], [0, 3, 27]
    for _ in range(400):
        release = mechanism(SMALL, rng)
        e = release.estimate
        shift = 64 - size.bit_length() + 1
        h = [None, *([literally(k, w) >> shift for k in range(30)] for w in e.hash_parameters)]
        flat = np.unpackbits(e.bits.view(np.uint8), bitorder="little").tolist()
        answers = release.answer(Ranges(cells, np.array(cells) + 1))
        assert answers == pytest.approx([alp.estimate(flat, h, k, *told) for k in cells])
        bits = alp.encode(DENSE, h, size, *told, rng)
        ours.append([*answers, sum(flat)])
        theirs.append([*(alp.estimate(bits, h, k, *told) for k in cells), sum(bits)])
    for a, b in zip(np.transpose(ours), np.transpose(theirs), strict=True):
        assert same_law(a, b) > 1e-5


# what holds for both


@pytest.mark.parametrize("mechanism", SAME, ids=repr)
def test_a_loaded_sketch_is_read_only_and_shown(mechanism, tmp_path):
    back = Release.load(mechanism(TABLE).save(tmp_path / "x.parquet"))
    with pytest.raises(ValueError, match="read-only"):
        back.estimate.hash_parameters[0, 0] = 0
    assert cells_from_nothing(back) == ""


@pytest.mark.parametrize("size", [1, 2, 2**62, 2**63 - 1])
def test_domains_of_any_size_and_empty_tables(size):
    domain = Domain(("x",), (size,))
    for data in (
        SparseTable.from_keys(domain, [], [], Bound()),
        SparseTable.from_keys(domain, [size - 1], [9], Bound()),
    ):
        for mechanism in SAME:
            release = mechanism(data, seeded())
            for asked in (Ranges([size - 1], [size]), Ranges([], []), Subsets.of([[], [0]])):
                answers, bars = release.answer(asked, error=True)
                assert np.isfinite(answers).all() and len(bars) == len(asked)


@pytest.mark.parametrize("mechanism", SAME, ids=repr)
def test_what_cannot_be_answered_is_said(mechanism):
    release = mechanism(TABLE, seeded())
    for asked, word in (
        (RandomSubsets(10, 5), "Ranges, Subsets"),
        (Boxes([[0]], [[5]]), "Ranges, Subsets"),
        (Ranges([0], [2**28 + 1]), "visited"),
        (Ranges([0, 0], [2**28, 1]), "visited"),
        (Ranges([0], [2**62 + 1]), "outside"),
    ):
        with pytest.raises(ValueError, match=word):
            release.answer(asked)
    with pytest.raises(ValueError, match="weights"):
        release.answer(Ranges([0], [1]), weights="adjusted")


def test_hash_functions_are_drawn_anew_and_told():
    """By chance at most once in 10⁹ runs; sees any number that is drawn twice."""
    for mechanism in SAME:
        one, other = (mechanism(TABLE).estimate.hash_parameters for _ in range(2))
        assert (one != other).all()
    assert isinstance(SAME[2](TABLE).estimate, Projection)
    same = [
        mechanism(TABLE, seeded()).estimate.hash_parameters
        for mechanism in SAME[:2]
        for _ in "ab"
    ]
    assert (same[0] == same[1]).all()


def projected(size):
    return noise.alp_projection(KEYS, COUNTS, words(1), size, l1=1, epsilon=1, alpha=3)


@pytest.mark.parametrize(
    "make, word",
    [
        (lambda: CountSketch(B, 0), "width"),
        (lambda: CountSketch(B, 2.5), "width"),
        (lambda: CountSketch(B, 9, 0), "depth"),
        (lambda: CountSketch(B, 2**28, 2), "width"),
        (lambda: CountSketch(B, 9, 2, "mode"), "estimate"),
        (lambda: CountSketch(DP(1.0, 1e-6), 9), "delta"),
        (lambda: ALP(B, 0, 9), "largest"),
        (lambda: ALP(B, 9, 0), "total"),
        (lambda: ALP(B, 9, 9, alpha=0), "alpha"),
        (lambda: ALP(B, 9, 9, size_factor=0), "size_factor"),
        (lambda: ALP(DP(1.0, 1e-6), 9, 9), "delta"),
        (lambda: ALP(B, 2**40, 9)(TABLE), "levels.*largest"),
        (lambda: ALP(B, 9, 2**50)(TABLE), "bits.*total"),
        (lambda: ALP(DP(1e8), 50, 100)(TABLE), "levels.*epsilon"),
        *((partial(projected, size), "size") for size in (0, 32, 100)),
    ],
)
def test_bad_parameters_are_named(make, word):
    with pytest.raises(ValueError, match=word):
        make()


@pytest.mark.parametrize("depth", [1, 3])
def test_a_sketch_costs_the_rho_of_all_cells_of_a_unit_in_one_bucket(depth):
    """Three cells of a unit may share a bucket of each row, and move it by 3: the law, summed here."""
    table = SparseTable.from_keys(DOMAIN, [0], [1], Bound(3, 1))
    (receipt,) = CountSketch(DP(1.0), 16, depth)(table, seeded()).ledger
    x = np.arange(-400, 401)
    log_p = -np.abs(x) / (3 * depth)
    p = np.exp(log_p) / np.exp(log_p).sum()
    divergence = depth * (p * (log_p - -np.abs(x - 3) / (3 * depth))).sum()
    assert receipt.rho >= divergence * (1 - 1e-9)
