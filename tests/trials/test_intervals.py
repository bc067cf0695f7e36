"""Intervals and checks: what zeros do, and how often chance alone decides."""

import numpy as np
import pandas as pd
import pytest

from workbench.trials import claims
from workbench.trials.claims import OFTEN, SOMEWHERE, MissingPoints
from workbench.trials.claims.intervals import _by_seed, _of_logs


def rows_of(series, points=(0,)):
    """Rows of series by name: an array of values by point and seed, NaN where a seed was not run."""
    frames = []
    for name, values in series.items():
        table = pd.DataFrame(np.atleast_2d(values), index=pd.Index(points, name="x"))
        long = table.rename_axis(columns="seed").stack().rename("value").reset_index()
        frames.append(long.assign(series=name))
    return pd.concat(frames).dropna()


def ratios(ours, other, points=(0,)):
    return claims.paired_ratios(
        rows_of({"ours": ours, "other": other}, points), "ours", "other", "x"
    )


def test_a_ratio_is_taken_seed_by_seed():
    shared = np.exp(np.linspace(0, 5, 8))
    noise = np.tile([1.01, 0.99], 4)
    paired = ratios(shared * 0.9 * noise, shared).at(0.95).loc[0]
    assert 0.88 < paired.low < paired.estimate < paired.high < 0.92 and paired.runs == 8


@pytest.mark.parametrize(
    "ours, other, ratio",
    [(0, 0, 1), (np.inf, np.inf, 1), (0, 2, 0), (3, 0, np.inf), (1, np.inf, 0)],
)
def test_zeros_and_infinities_have_a_ratio(ours, other, ratio):
    point = ratios(np.full(12, ours, float), np.full(12, other, float)).at(0.95).loc[0]
    assert point.estimate == point.low == point.high == ratio


def test_a_zero_makes_the_interval_one_of_order_statistics():
    other = np.exp(np.linspace(-1, 1, 20))
    ours = np.where(np.arange(20) == 0, 0, 1)
    point = ratios(ours, other).at(0.95).loc[0]
    ordered = np.sort(ours / other)
    assert point.low == pytest.approx(ordered[5]) and point.high == pytest.approx(ordered[14])
    few = ratios(ours[:5], other[:5]).at(0.95).loc[0]
    assert few.low == 0 and few.high == np.inf, "five runs decide nothing at 95 %"


def test_equal_runs_say_nothing_of_their_spread():
    point = ratios(np.full(5, 0.5), np.ones(5)).at(0.95).loc[0]
    assert point.estimate == 0.5 and point.high == np.inf
    assert claims.exact(pd.Series({0: 0.5})).at(0.95).loc[0].high == 0.5


def test_what_was_not_run_is_left_out():
    points = ratios([[1, 2, np.nan], [np.nan] * 3], [[2, 2, 2], [1, 1, 1]], (0, 1)).at(0.9)
    assert points.runs.to_dict() == {0: 2}
    with pytest.raises(MissingPoints, match="no point and seed in common"):
        ratios([1, np.nan], [np.nan, 1])
    with pytest.raises(MissingPoints, match="no rows of theirs"):
        claims.paired_ratios(rows_of({"ours": [1.0, 2.0]}), "ours", "theirs", "x")
    mixed = rows_of({"ours": [1.0, 2.0], "other": [1.0, 2.0]}).assign(theta=20)
    mixed = pd.concat([mixed, mixed.assign(theta=30)])
    with pytest.raises(ValueError, match="mix theta"):
        claims.paired_ratios(mixed, "ours", "other", "x")


LEVEL = 0.9
TIMES = 4000
RUNS = 250  # of a simulation of eight points
EIGHT = pd.RangeIndex(8)
LAWS = {  # of a log ratio whose mean, or median, is 0
    "normal": lambda rng, size: rng.normal(size=size),
    "heavy tails": lambda rng, size: rng.standard_t(3, size),
    "often zero": lambda rng, size: np.where(
        rng.random(size) < 0.2, rng.choice([-np.inf, np.inf], size), rng.normal(size=size)
    ),
    "two values": lambda rng, size: rng.choice([-1.0, 1.0], size),
}


@pytest.mark.parametrize(
    "law, runs",
    [
        ("normal", 5),
        ("normal", 20),
        ("heavy tails", 20),
        ("often zero", 20),
        ("two values", 5),
    ],
)
def test_intervals_miss_no_more_often_than_the_level_says(law, runs):
    rng = np.random.default_rng(1)
    with np.errstate(over="ignore"):
        ours = np.exp(LAWS[law](rng, (TIMES, runs)))
    points = ratios(ours, np.ones_like(ours), range(TIMES)).at(LEVEL)
    missed = ((points.low > 1) | (points.high < 1)).mean()
    error = np.sqrt(LEVEL * (1 - LEVEL) / TIMES)
    assert missed <= 1 - LEVEL + 4 * error  # by chance one run in 30,000


@pytest.mark.slow
@pytest.mark.parametrize("share, below", [(1.0, 7), (OFTEN, 5), (SOMEWHERE, 0)])
def test_a_share_of_points_is_found_wrongly_no_more_often_than_the_level_says(share, below):
    """At eight points, of which one too few is lower, however clearly the others are."""
    rng = np.random.default_rng(3)
    logs = rng.normal(size=(RUNS, 8, 10))
    logs[:, :below] -= 9
    found = [claims.check_lower(_of_logs(EIGHT, x), LEVEL, share).holds is True for x in logs]
    assert np.mean(found) <= 1 - LEVEL + 4 * np.sqrt(LEVEL * (1 - LEVEL) / RUNS)


@pytest.mark.slow
@pytest.mark.parametrize("share, below", [(1.0, 8), (OFTEN, 6), (SOMEWHERE, 1)])
def test_nor_is_a_share_that_is_there_denied(share, below):
    rng = np.random.default_rng(4)
    logs = rng.normal(size=(RUNS, 8, 10)) + 9
    logs[:, :below] -= 9.0000001
    denied = [claims.check_lower(_of_logs(EIGHT, x), LEVEL, share).holds is False for x in logs]
    assert np.mean(denied) <= 1 - LEVEL + 4 * np.sqrt(LEVEL * (1 - LEVEL) / RUNS)


def clear(*ratio, runs=10, spread=0.01):
    """Ratios at points 0, 1, …, each as clear as its spread says."""
    noise = np.exp(spread * np.linspace(-1, 1, runs))
    ours = np.outer(ratio, noise)
    return ratios(ours, np.ones_like(ours), range(len(ratio)))


def test_words_are_thresholds():
    lower = clear(0.5, 0.5, 0.5, 2)
    assert claims.check_lower(lower, 0.95).holds is False
    assert claims.check_lower(lower, 0.95, OFTEN).holds
    assert claims.check_lower(clear(2, 2, 2, 0.5), 0.95, SOMEWHERE).holds
    assert claims.check_lower(clear(2, 2), 0.95, SOMEWHERE).holds is False
    assert claims.check_lower(clear(0.05), 0.95, times=claims.ORDERS).holds
    assert claims.check_lower(clear(0.2), 0.95, times=claims.ORDERS).holds is False
    assert claims.check_lower(claims.exact(pd.Series({0: 1.0})), 0.95).holds is False
    assert claims.check_similar(clear(1.2, 0.9, 1, 2), 0.95).holds
    assert claims.check_similar(clear(1.2, 1.3, 1, 2), 0.95).holds is False
    printed = claims.Printed("45–98 %", 0.02, 0.55)
    assert claims.check_printed(clear(0.1, 0.5), 0.95, printed).holds
    assert (
        "as printed at 2 of 2" in claims.check_printed(clear(0.1, 0.5), 0.95, printed).measured
    )


def test_an_undecided_check_says_how_many_runs_it_would_take():
    finding = claims.check_lower(clear(0.99, spread=0.2), 0.95)
    assert finding.holds is None and 10 < finding.runs < 10_000
    enough = claims.check_lower(clear(0.99, runs=int(finding.runs * 1.2), spread=0.2), 0.95)
    assert enough.holds
    even = claims.check_lower(clear(1.0, spread=0.2), 0.95)
    assert even.holds is None and even.runs > 10**6


def test_one_point_is_no_curve():
    with pytest.raises(MissingPoints, match="fewer than two points"):
        claims.steps(rows_of({"a": np.ones((1, 8))}, (1,)), "a", "x")


def test_a_mean_is_compared_with_a_law():
    noise = 1 + 0.01 * np.linspace(-1, 1, 8)
    rows = rows_of({"a": np.outer([2, 4], noise)}, (1, 2))
    numbers = claims.means(rows, "a", "x")
    assert numbers.at(0.95).estimate.tolist() == pytest.approx([2, 4])
    ratio = numbers.over(pd.Series({1: 2.0, 2: 4.0, 3: 6.0}))
    assert claims.check_similar(ratio, 0.95).holds and len(ratio) == 2
    with pytest.raises(MissingPoints, match="none of these points"):
        numbers.over(pd.Series({3: 6.0})).at(0.95)


def test_parts_share_the_level():
    levels = []

    def part(holds):
        def find(level):
            levels.append(level)
            return claims.Finding(holds, "x", runs=50)

        return find

    parts = {"a": part(True), "b": part(None)}
    assert claims.all_of(parts, 0.9).holds is None and claims.all_of(parts, 0.9).runs == 50
    assert claims.any_of(parts, 0.9).holds and set(levels) == {0.95}
    assert claims.all_of({**parts, "c": part(False)}, 0.9).holds is False
    assert claims.any_of({"a": part(False), "b": part(False)}, 0.9).holds is False
    told = claims.all_of({"a": part(True), "b": part(False)}, 0.9)
    assert told.measured == "a: yes (x); b: no (x)"


@pytest.mark.parametrize(
    "holds, outcome, words",
    [
        ((True, True, True), claims.HOLDS, "holds for θ = 20 … 60"),
        ((False, False, False), claims.DIFFERS, "differs for θ = 20 … 60"),
        (
            (False, None, True),
            claims.DEPENDS,
            "holds for θ = 60; differs for θ = 20; undecided for θ = 40",
        ),
        ((True, None, True), claims.UNDECIDED, "holds for θ = 20, 60; undecided for θ = 40"),
    ],
)
def test_what_is_not_printed_is_swept(holds, outcome, words):
    values = dict(zip((20, 40, 60), holds, strict=True))
    finding = claims.over("θ", [*values], lambda x, _: claims.Finding(values[x], "m"), 0.9)
    assert finding.outcome == outcome and finding.strip.in_words() == words


@pytest.mark.parametrize("by", ["x", ["x", "y"]])
def test_a_line_is_a_point_and_a_column_a_seed_as_a_loop_would_place_them(by):
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(
        dict(
            series=rng.choice(["a", "b"], 90),
            seed=rng.integers(0, 5, 90),
            x=rng.choice([0.5, 2.0, np.nan], 90),
            y=rng.choice(["p", "q"], 90),
            value=rng.random(90),
        )
    )
    expected = {}
    for row in rows[(rows.series == "a") & rows.x.notna()].itertuples():
        point = row.x if by == "x" else (row.x, row.y)
        expected.setdefault((point, row.seed), []).append(row.value)
    table = _by_seed(rows.drop(columns="y") if by == "x" else rows, "a", by)
    for (point, seed), values in expected.items():
        assert table.loc[point, seed] == pytest.approx(np.mean(values))
    assert table.notna().to_numpy().sum() == len(expected)
    assert table.index.is_monotonic_increasing and table.columns.is_monotonic_increasing
