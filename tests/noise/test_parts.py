"""A measurement in parts: the law of one, and the same bytes wherever its parts are drawn."""

import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest

from tests.agreement import RARE, Scripted, fits, runs, same_runs
from tests.reference import geometric as literal
from workbench import DP, noise, randomness
from workbench.compiled import limited_threads
from workbench.noise import laws, measurement, parts, priorities, source
from workbench.noise.measurement import Measurement
from workbench.noise.parts import best

KEY = bytes(range(32))
CELLS = 96
OCCUPIED = np.array([0, 1, 5, 6, 7, 30, 31, 32, 60, 61, 62, 63, 94, 95])
COUNTS = np.array([1, 9, 30, 2, 4, 12, 1, 1, 3, 8, 40, 2, 5, 7])
BLOCKS = [(10, 1, 0.8), (86, 2, 1.0)]
UNEVEN = [[(0, 3), (64, 96)], [(3, 60)], [(60, 64)]]  # one of two runs, and blocks are cut
THRESHOLD = [dict(theta=4), dict(theta=2, tau=9.5, sides=1), dict(theta=0)]
PRIORITY = [dict(theta=2, size=8), dict(theta=0, size=30, sides=1), dict(theta=9, size=60)]


def drawn_apart(measurement, ranges, keys=OCCUPIED, counts=COUNTS, shuffle=None):
    """A function that draws each part from its own cells, as a task of another process would."""

    def draw(function, *arguments):
        results = {}
        order = range(len(ranges)) if shuffle is None else shuffle.permutation(len(ranges))
        for i in [*order, *order[:1]]:  # one is drawn again
            inside = np.zeros(len(keys), bool)
            for low, high in ranges[i]:
                inside |= (low <= keys) & (keys < high)
            task = pickle.loads(pickle.dumps((function, measurement.parts[i])))
            result = task[0](task[1], keys[inside], counts[inside], *arguments)
            if i in results:
                assert pickle.dumps(result) == pickle.dumps(results[i])
            results[i] = result
        return [results[i] for i in range(len(ranges))]

    return draw


def sampled(options, ranges, rng, shuffle=None):
    measurement = Measurement(BLOCKS, ranges, rng=rng, **options)
    sample = measurement.priority_sample if "size" in options else measurement.threshold_sample
    return sample(drawn_apart(measurement, ranges, shuffle=shuffle))


@pytest.mark.parametrize("options", THRESHOLD + PRIORITY)
def test_tasks_release_what_threads_release(options):
    ranges = parts.balanced_ranges(np.zeros(0, int), CELLS, 7)
    apart = sampled(options, ranges, KEY, np.random.default_rng(0))
    measurement = Measurement(BLOCKS, ranges, rng=KEY, **options)
    of = "priority_sample_of" if "size" in options else "threshold_sample_of"
    for threads in (1, 2, 7):
        here = getattr(measurement, of)(OCCUPIED, COUNTS, threads)
        for a, b in zip(here, apart, strict=True):
            assert np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b
    assert [r.cost for r in apart.receipts] == [DP(0.8), DP(1.0)]
    assert all(r.simulated for r in apart.receipts)
    assert not Measurement(BLOCKS, ranges, **options).receipts[0].simulated


@runs(300, 4000)
@pytest.mark.parametrize("options", [*THRESHOLD[:2], *PRIORITY])
def test_uneven_parts_have_the_law_of_one(options, n):
    """Seeded: never by chance; sees distribution functions that are 0.2 apart, 0.06 of all draws."""
    function = noise.priority_sample if "size" in options else noise.threshold_sample
    rng = np.random.default_rng(0)
    together = [function(OCCUPIED, COUNTS, BLOCKS, rng=rng, **options) for _ in range(n)]
    apart = [sampled(options, UNEVEN, i.to_bytes(32)) for i in range(n)]
    same_runs(*([_numbers(r) for r in releases] for releases in (together, apart)))


def _numbers(release):
    occupied = np.isin(OCCUPIED, release.keys).mean()
    tau = release.tau if hasattr(release, "tau") else 0.0
    return release.keys, release.values, len(release.keys), tau, occupied, release.values.sum()


@runs(120, 1500)
@pytest.mark.parametrize("start", [3.0, 60.0])
def test_a_wrong_guess_gives_parts_the_same_law(monkeypatch, start, n):
    """Seeded: never by chance; sees distribution functions that are 0.3 apart."""
    together = []
    for i in range(n):
        rng = np.random.default_rng(i)
        one = noise.priority_sample(OCCUPIED, COUNTS, BLOCKS, rng=rng, **PRIORITY[0])
        together.append(_numbers(one))
    monkeypatch.setattr(priorities, "guess_threshold", lambda *a: start)
    apart = [_numbers(sampled(PRIORITY[0], UNEVEN, i.to_bytes(32))) for i in range(n)]
    same_runs(together, apart)


def test_what_a_lowered_guess_draws_was_left_out_before(monkeypatch):
    monkeypatch.setattr(priorities, "guess_threshold", lambda *a: 80.0)
    seen = []
    original = priorities.largest_priorities
    monkeypatch.setattr(
        priorities,
        "largest_priorities",
        lambda pools, *rest: seen.append(pools) or original(pools, *rest),
    )
    ranges = parts.balanced_ranges(np.zeros(0, int), 2**12, 3)
    measurement = Measurement([(2**12, 1, 0.5)], ranges, theta=1, size=400, rng=KEY)
    measurement.priority_sample(drawn_apart(measurement, ranges))
    _, first, *later = [pool.inverse for pool in seen[0]]
    assert first.max() <= 1 / 80 and len(later) >= 2
    for i, inverse in enumerate(later):  # each guess is half of the one before
        assert 2**i / 80 <= inverse.min() and inverse.max() <= 2 ** (i + 1) / 80


def test_cells_that_floats_cannot_tell_apart_are_all_listed(monkeypatch):
    part = Measurement([(48, 1, 60.0)], [[(0, 48)]], theta=1, size=3, rng=KEY).parts[0]
    original = priorities.Candidates
    monkeypatch.setattr(
        priorities,
        "Candidates",
        lambda v, words, *limits: original(
            v, words, *limits or (0.0, np.inf), np.zeros(len(v), np.uint64)
        ),
    )
    occupied, empty = best(part, OCCUPIED[:8], np.full(8, 50), (1.0,))
    assert len(occupied.keys) == 8  # all have the same first bits
    assert not set(empty.keys) & set(OCCUPIED) and not len(empty.keys)


def test_large_tables_are_drawn_by_several_threads_and_small_or_seeded_ones_are_not(
    monkeypatch,
):
    seen = []
    original = ThreadPoolExecutor.__init__
    monkeypatch.setattr(
        ThreadPoolExecutor, "__init__", lambda self, n: seen.append(n) or original(self, n)
    )
    monkeypatch.setattr(measurement, "CELLS_FOR_THREADS", 2**20)
    keys = np.arange(0, 3 * 2**20, 2)
    counts = np.full(len(keys), 90)
    blocks = [(2**50, 1, 0.5)]
    seeded = np.random.default_rng(0)
    noise.threshold_sample(keys, counts, blocks, theta=95, rng=seeded, threads=3)
    noise.threshold_sample(keys[:9], counts[:9], blocks, theta=95, threads=3)
    noise.threshold_sample(keys, counts, blocks, theta=95, threads=1)
    assert not seen
    release = noise.threshold_sample(keys, counts, blocks, theta=95, threads=3)
    assert set(seen) == {3} and (np.diff(release.keys) > 0).all()
    assert len(release.receipts) == 1
    kept = np.isin(keys, release.keys).mean()
    alpha = np.exp(-0.5)
    assert kept == pytest.approx(alpha**5 / (1 + alpha), rel=0.02)  # 6.2 standard errors: 10⁻⁹


def test_no_cell_is_left_out_or_drawn_twice():
    for bad in ([[(0, 90)]], [[(0, 60)], [(50, 96)]], [[(60, 96), (0, 60)]], [[(0, 97)]]):
        with pytest.raises(ValueError, match="each of 96 cells once"):
            Measurement(BLOCKS, bad, theta=1)
    with pytest.raises(ValueError, match="single part"):
        Measurement(BLOCKS, UNEVEN, theta=1, rng=np.random.default_rng(0))
    with pytest.raises(ValueError, match="32 bytes"):
        Measurement(BLOCKS, UNEVEN, theta=1, rng=b"short")
    for size, n in ((1, 4), (5, 2), (2**62, 7)):
        spread = parts.balanced_ranges(np.array([0, size - 1]), size, n)
        parts.check_ranges(spread, size)


def test_a_part_never_says_its_key():
    part = Measurement(BLOCKS, UNEVEN, theta=1, rng=KEY).parts[0]
    assert repr(part) == "<Part of 35 cells>"
    streams = [part.source.step(i).words(4).tolist() for i in (0, 0, 1)]
    assert streams[0] == streams[1] != streams[2]
    keys = {p.key for p in Measurement(BLOCKS, UNEVEN, theta=1).parts}
    assert len(keys) == 3 and all(len(key) == 32 for key in keys)


def test_refined_boundaries_change_as_one():
    law = laws.TwoSidedGeometric(Fraction(1)).inverse
    before = law.refined
    edge = before.edges[10]
    deep = iter([edge.lo >> 192 - 64 * k & 2**64 - 1 for k in (2, 3)])
    law._place(edge.lo >> 128, lambda n: np.array([next(deep, 2**64 - 1)], np.uint64))
    assert before.bits == 192 and law.refined.bits == 384
    assert law.refined.edges[10].bits == 384 and before.edges[10].bits == 192


def test_streams_of_one_key_never_meet():
    first = randomness.Keystream(KEY, 0)(1000)
    assert not np.isin(randomness.Keystream(KEY, 1)(1000), first).any()
    again = randomness.Keystream(KEY)
    assert np.concatenate([again(10), again(990)]).tolist() == first.tolist()


def test_large_vectors_are_drawn_by_several_threads_with_the_same_law(monkeypatch):
    """By chance at most once in 10⁹ runs; sees a variance that is off by 1.3 %."""
    monkeypatch.setattr(source, "CELLS_FOR_THREADS", 2**20)
    values = np.zeros(2**20 + 5, np.int64)
    seen = []
    original = laws.TwoSidedGeometric.add
    monkeypatch.setattr(
        laws.TwoSidedGeometric,
        "add",
        lambda law, out, words: seen.append(words) or original(law, out, words),
    )
    with limited_threads(3):
        noisy, receipt = noise.geometric(values, l1=1, epsilon=0.5)
    alpha = np.exp(-0.5)
    assert fits(noisy, lambda x: literal.pmf(x, alpha)) > RARE and not receipt.simulated
    assert len({id(words) for words in seen}) == 6
    thirds = np.array_split(noisy, 6)
    assert not any(np.array_equal(a[:100], b[:100]) for a, b in pairwise(thirds))
    seeded = []
    for threads in (1, 3):
        with limited_threads(threads):
            rng = np.random.default_rng(0)
            seeded.append(noise.geometric(values, l1=1, epsilon=0.5, rng=rng)[0])
    assert np.array_equal(*seeded)


def test_a_lowered_guess_is_drawn_by_words_of_its_own():
    """No round of a part repeats a word of 64 bits of another (by chance once in 10¹³)."""
    measurement = Measurement([(2**12, 1, 0.5)], [[(0, 2**12)]], theta=1, size=9, rng=KEY)
    used = []

    class Recorded(source.Source):
        def step(self, number):
            words = source.Source(KEY).step(number).words

            def read(n):
                drawn = words(n)
                used.append(drawn.copy())
                return drawn

            return Scripted(read)

    part = replace(measurement.parts[0], key=Recorded(None))
    _, *rounds = best(part, OCCUPIED, COUNTS, (30.0, 25.0, 22.0))
    assert all(len(pool.keys) > 10 for pool in rounds)
    words = np.concatenate(used)
    assert len(np.unique(words)) == len(words) > 500
