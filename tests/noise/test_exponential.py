"""The exponential mechanism: its law, its grid, its limits; chances are counted out literally."""

from decimal import Decimal, localcontext
from fractions import Fraction
from math import inf, nan

import numpy as np
import pytest

from tests.agreement import RARE, fits_chances, seeded
from workbench import noise
from workbench.noise import exponential
from workbench.noise.source import word_source


def law(steps, rate, available=None):
    """Chances ∝ exp(rate · steps), term by term; `rate` a Fraction, `steps` integers."""
    there = [True] * len(steps) if available is None else available
    most = max(s for s, a in zip(steps, there, strict=True) if a)
    with localcontext() as context:
        context.prec = 60
        rate = Decimal(rate.numerator) / Decimal(rate.denominator)
        weights = [
            (rate * (int(s) - int(most))).exp() if a else Decimal(0)
            for s, a in zip(steps, there, strict=True)
        ]
        return [w / sum(weights) for w in weights]


def fits(drawn, chances):
    """Whether the draws have these chances; never false but once in 10⁹ times."""
    return fits_chances(np.bincount(drawn, minlength=len(chances)), chances) > RARE


CASES = [
    ([0, 0, 0], 1, 1.0, False),
    ([5, 3, -2, 5, 0, 4], 1, 1.0, False),
    ([5, 3, -2, 5, 0, 4], 1, 1.0, True),
    ([5, 3, -2, 5, 0, 4], 2.5, 0.7, False),
    ([10**15, 10**15 - 3, 10**15 - 10**6, 0], 1, 0.5, True),
    ([10**15, 0, -(10**15), 5 * 10**14], 10**15, 3.0, False),
    ([1, 2, 3, 4], 1, 1e-300, False),
    ([1, 2, 3, 3], 1, 1e300, False),
    (list(range(300)), 1, 0.05, False),
]


@pytest.mark.slow
@pytest.mark.parametrize("scores, sensitivity, epsilon, monotone", CASES)
@pytest.mark.parametrize("rng", [seeded(4), None], ids=["seeded", "system"])
def test_draws_have_the_literal_law(scores, sensitivity, epsilon, monotone, rng):
    n = 60_000
    rate = Fraction(epsilon) / Fraction(sensitivity) / (1 if monotone else 2)
    rate = min(rate, Fraction(2**60))
    table = np.tile(np.array(scores, np.int64), (n, 1))
    told = dict(sensitivity=sensitivity, epsilon=epsilon, monotone=monotone, rng=rng)
    drawn, receipt = noise.exponential_mechanism(table, **told)
    assert fits(drawn, law(scores, rate))
    assert receipt.cost.epsilon == epsilon and receipt.simulated == (rng is not None)


def test_a_row_keeps_its_own_law():
    scores = np.array([[3, 0, 1], [0, 0, 9]])
    drawn, _ = noise.exponential_mechanism(
        np.tile(scores, (40_000, 1)), sensitivity=1, epsilon=1.0, rng=seeded()
    )
    for row in (0, 1):
        assert fits(drawn[row::2], law(scores[row], Fraction(1, 2)))


@pytest.mark.slow
def test_intervals_alone_draw_the_same_candidate_as_floats(monkeypatch):
    """Both read the same uniform numbers, so they must not differ once."""
    rng = seeded(1)
    scores = rng.integers(-40, 1, (500, 30))
    there = rng.random((500, 30)) < 0.7
    there[:, 3] = True
    rate = Fraction(3, 17)
    fast = exponential.sample_candidates(scores, there, rate, word_source(seeded(2)))
    slow = []
    for row, own, drawn in zip(scores, there, word_source(seeded(2))(500), strict=True):
        among = np.flatnonzero(own)
        behind = row[among].max() - row[among]
        slow.append(
            among[exponential._by_intervals(behind, rate, int(drawn), word_source(seeded(3)))]
        )
    assert (fast == slow).all()
    every = (lambda found: lambda *a: (found(*a)[0], np.ones(len(a[0]), bool)))(
        exponential._by_floats
    )
    monkeypatch.setattr(exponential, "_by_floats", every)
    assert (
        exponential.sample_candidates(scores, there, rate, word_source(seeded(2))) == fast
    ).all()


@pytest.mark.parametrize("word", [0, 2**63, 2**63 - 1, 2**64 - 1, 2**64 // 3])
def test_a_number_on_a_boundary_draws_further_bits(word):
    """Of two equal candidates the first has [0, 1/2); of three, bits decide what 64 leave open."""
    one = exponential._by_intervals(np.array([0, 0]), Fraction(1), word, word_source(seeded()))
    assert one == (word >= 2**63)
    more = [
        exponential._by_intervals(
            np.array([0, 0, 0]), Fraction(1), word, word_source(seeded(s))
        )
        for s in range(40)
    ]
    expected = {min(2, 3 * word // 2**64), min(2, (3 * (word + 1) - 1) // 2**64)}
    assert set(more) == expected


def test_candidates_below_all_floats_keep_their_chance():
    """exp(−800) is no float; a uniform number that starts with enough zeros still finds it."""
    behind = np.array([800, 0])
    zeros = iter([np.zeros(1, np.uint64)] * 30)
    drawn = exponential._by_intervals(behind, Fraction(1), 0, lambda n: next(zeros))
    assert drawn == 0
    ones = exponential._by_intervals(behind, Fraction(1), 1, word_source(seeded()))
    assert ones == 1


def test_nothing_unavailable_is_chosen():
    scores = np.tile([inf, 5.0, -inf, 3.0, 1e300], (20_000, 1))
    there = np.ones(scores.shape, bool)
    there[:, [0, 4]] = False
    told = dict(sensitivity=1.0, epsilon=1.0, rows_per_unit=1, rng=seeded())
    drawn, _ = noise.exponential_mechanism(scores, available=there, **told)
    assert fits(drawn, law([0, 5, 0, 3, 0], Fraction(1, 2), there[0] & [1, 1, 0, 1, 1]))
    lone, _ = noise.exponential_mechanism(np.array([[-inf, -1e300, -inf]]), **told)
    assert lone == [1]
    with pytest.raises(ValueError, match="at least one in each"):
        noise.exponential_mechanism(np.array([[1.0], [-inf]]), **told)


def test_scores_are_rounded_down_and_the_sensitivity_up():
    """At grid 1/4 a sensitivity of 0.3 is two steps: 4·0.3 = 1.2, rounded up."""
    scores, n = [0.1, 0.74, 0.76, -0.1], 60_000
    steps = [0, 2, 3, -1]
    told = dict(sensitivity=0.3, epsilon=1.0, grid=0.25, rows_per_unit=1)
    for monotone, rate in ((False, Fraction(1, 4)), (True, Fraction(1, 2))):
        drawn, _ = noise.exponential_mechanism(
            np.tile(scores, (n, 1)), monotone=monotone, rng=seeded(), **told
        )
        assert fits(drawn, law(steps, rate))


@pytest.mark.parametrize("monotone", [False, True])
def test_a_unit_that_touches_several_rows_moves_a_step_in_each(monotone):
    """0.2 in each of three rows, 0.6 in all, is three steps of 0.5: two would promise too little."""
    told = dict(sensitivity=0.6, epsilon=4.0, grid=0.5, monotone=monotone)
    rate = Fraction(4, 4 * (1 if monotone else 2))  # of four steps: ⌈0.6/0.5⌉ + 3 − 1
    before = [0.6] + [0.4] * 19
    after = [0.6] * 20 if monotone else [0.4] + [0.6] * 19
    n, chances = 60_000, []
    for scores in (before, after):
        chances.append(law(np.floor(np.array(scores) / 0.5), rate))
        drawn, _ = noise.exponential_mechanism(
            np.tile(scores, (n, 1)), rows_per_unit=3, rng=seeded(), **told
        )
        assert fits(drawn, chances[-1])
    loss = 3 * max(abs((a / b).ln()) for a, b in zip(*chances, strict=True))
    assert loss <= 4
    three = seeded(1).normal(size=(3, 20))
    unsaid, said = (
        noise.exponential_mechanism(three, rng=seeded(2), **told, **rows)[0]
        for rows in ({}, dict(rows_per_unit=3))
    )
    assert (unsaid == said).all()  # all rows, if it is not said


def test_the_default_grid_is_at_most_a_thousandth_of_the_sensitivity():
    for x in (1.0, 3.7, 1e-9, 1e200, 2.0**-1060, 5e-324):
        grid = exponential._default_grid(Fraction(x))
        assert Fraction(grid) * 1000 <= Fraction(x) < Fraction(grid) * 5000 or x < 1e-300


def test_magnitudes_without_sense_are_chances_all_the_same():
    odd = np.array([[nan, inf, -1e308, 1e308, 0.0]])
    for epsilon in (5e-324, 1.0, 1e308):
        for sensitivity in (5e-324, 1.0, 1e308):
            told = dict(sensitivity=sensitivity, epsilon=epsilon, rng=seeded())
            assert 0 <= noise.exponential_mechanism(odd, **told)[0][0] < 5
    wide = np.array([[2**64 - 1, 0, 2**63]], np.uint64)
    assert noise.exponential_mechanism(wide, sensitivity=1, epsilon=1.0, rng=seeded())[0][
        0
    ] in (0, 2)
    low = np.array([[-(2**63), 2**63 - 1]])
    assert noise.exponential_mechanism(low, sensitivity=1, epsilon=1.0, rng=seeded())[0] == [1]
    assert noise.exponential_mechanism(low, sensitivity=10**40, epsilon=1.0, rng=seeded(1))[0][
        0
    ] in (0, 1)


def test_small_types_and_no_rows():
    for kind in (bool, np.int8, np.uint16, np.float16, np.float32):
        scores = np.tile(np.array([1, 0], kind), (20_000, 1))
        drawn, _ = noise.exponential_mechanism(
            scores, sensitivity=1, epsilon=2.0, rows_per_unit=1, rng=seeded()
        )
        assert fits(drawn, law([1, 0], Fraction(1)))
    drawn, receipt = noise.exponential_mechanism(
        np.empty((0, 3)), sensitivity=1, epsilon=1.0, rng=seeded()
    )
    assert drawn.shape == (0,) and drawn.dtype == np.int64 and receipt.cost.epsilon == 1.0


@pytest.mark.parametrize(
    "changed, name",
    [
        (dict(scores=np.zeros(3)), "scores"),
        (dict(scores=np.zeros((3, 0))), "scores"),
        (dict(scores=np.array([["a"]])), "scores"),
        (dict(sensitivity=0), "sensitivity"),
        (dict(sensitivity=inf), "sensitivity"),
        (dict(epsilon=nan), "epsilon"),
        (dict(epsilon=-1.0), "epsilon"),
        (dict(grid=0.3), "grid"),
        (dict(rows_per_unit=0), "rows_per_unit"),
        (dict(rows_per_unit=1.5), "rows_per_unit"),
        (dict(available=np.ones((2, 3), bool)), "available"),
        (dict(rng=3), "rng"),
    ],
)
def test_bad_input_names_the_field(changed, name):
    told = dict(scores=np.zeros((1, 3)), sensitivity=1, epsilon=1.0) | changed
    with pytest.raises(ValueError, match=f"{name}.*(need|fit)"):
        noise.exponential_mechanism(told.pop("scores"), **told)
