"""Looks at more and more seeds: when a figure stops, at what level, and that looking fools nobody."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tests.figures.worlds import noisy
from workbench import DP, Sweep
from workbench.datasets import GaussianSparse
from workbench.figures import EFFORT, Figure
from workbench.figures.fields import epsilon, seeds, whole
from workbench.mechanisms import GeometricHistogram, HighPassFilter
from workbench.queries import RandomRanges
from workbench.trials import claims
from workbench.trials.claims import Claim, Finding, Statement, check_lower, paired_ratios
from workbench.trials.claims.intervals import _of_logs
from workbench.trials.metrics import MeanAbsoluteError
from workbench.value import value


def below(rows, level):
    """Whether `ours` is below `other`."""
    return check_lower(paired_ratios(rows, "ours", "other", "x"), level)


def claim(*checks):
    """A claim of one statement a check."""
    statements = [Statement(f"x-1.{i}", "It is.", check) for i, check in enumerate(checks)]
    return (Claim("x-1", "", "It is.", tuple(statements)),)


@value
class Fig1(Figure):
    """A figure of nobody."""

    id = "nobody2020_fig1"
    quick = {"seeds": 3, "people": 10}
    claims = claim(below, below)

    epsilon: float = epsilon(0.1)
    people: int = whole(100, "people", kind=EFFORT)
    seeds: int = seeds(50)

    def rows(self, store):
        """Ratios of 0.999 with an error of 0.3 %, and a column that says how many were run."""
        return rows_at(0.999, self.seeds)


def rows_at(ratio, seeds, spread=0.003):
    """Rows of two series: those of the first seeds are the same however many there are."""
    rng = np.random.default_rng(5)
    ours = ratio * np.exp(spread * rng.normal(size=1000))[:seeds]
    frames = {"ours": ours, "other": np.ones(seeds)}
    rows = [
        pd.DataFrame({"series": s, "value": v, "seed": range(seeds)}) for s, v in frames.items()
    ]
    return pd.concat(rows, ignore_index=True).assign(x=1)


def test_looks_double_up_to_the_cap_and_quick_is_one_of_them():
    assert Fig1.looks() == (3, 5, 10, 20, 40, 50)
    assert Fig1.level() == pytest.approx(1 - 0.05 / (6 * 2))

    @value
    class Short(Figure):
        claims = claim(below)
        seeds: int = seeds(3)

    @value
    class Timed(Figure):
        claims = claim(below)

    assert Short.looks() == (3,) and Timed.looks() == (0,) and Timed.level() == 0.95
    (verdict,) = Timed().judge(rows_at(0.5, 20))
    assert verdict.outcome == claims.HOLDS


def test_a_run_stops_at_the_look_that_decides_the_last_statement(tmp_path):
    rows, verdicts = Fig1().run(tmp_path)
    assert {v.outcome for v in verdicts} == {claims.HOLDS}
    count = rows.seed.nunique()
    assert count in Fig1.looks() and 5 < count < 50
    before = Fig1.looks()[Fig1.looks().index(count) - 1]
    assert {v.outcome for v in Fig1().judge(rows_at(0.999, before))} == {claims.UNDECIDED}
    assert Fig1().judge(rows_at(0.999, 50)) == verdicts, "later seeds change no verdict"


def test_an_undecided_statement_takes_all_seeds_and_says_how_many_more(tmp_path):
    class Even(Fig1):
        def rows(self, store):
            return rows_at(0.9999, self.seeds)

    rows, verdicts = Even().run(tmp_path)
    assert rows.seed.nunique() == 50
    assert all(v.outcome == claims.UNDECIDED and "repetitions would" in v.why for v in verdicts)


def test_quick_is_run_as_it_is_and_agrees_with_paper(tmp_path):
    rows, quick = Fig1.at("quick").run(tmp_path)
    _, paper = Fig1().run(tmp_path)
    assert rows.seed.nunique() == 3
    pairs = zip(quick, paper, strict=True)
    assert all(q.outcome in (p.outcome, claims.UNDECIDED) for q, p in pairs)
    more, _ = Fig1.at("quick", seeds=30).run(tmp_path)
    assert more.seed.nunique() == 30, "who asks for 30 seeds gets them"
    rows, verdicts = Fig1(epsilon=0.5).run(tmp_path)
    assert rows.seed.nunique() == 50 and {v.outcome for v in verdicts} == {claims.NOT_JUDGED}


def test_another_size_decides_nothing(tmp_path):
    class Sized(Fig1):
        sized_by = ("people",)

    rows = rows_at(0.5, 50)
    small = Sized(people=10).judge(rows)
    assert {v.outcome for v in small} == {claims.UNDECIDED}
    assert "people = 10 is not the paper's size" in small[0].why
    assert {v.outcome for v in Sized(people=200).judge(rows)} == {claims.HOLDS}


def test_looking_often_fools_nobody():
    """Worlds in which neither statement is decided: how often some look decides one of them."""
    worlds = 4000
    looks = Fig1.looks()
    rng = np.random.default_rng(6)
    logs = rng.normal(size=(2, worlds, looks[-1]))
    fooled = np.zeros(worlds, bool)
    for statement in logs:
        for look in looks:
            points = _of_logs(pd.RangeIndex(worlds), statement[:, :look]).at(Fig1.level())
            fooled |= (points.low > 1) | (points.high < 1)
    assert fooled.mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / worlds)  # 1 %


@value
class Ranges(Figure):
    """A figure with sweeps, which rows of a store continue."""

    id = "nobody2020_ranges"
    quick = {"seeds": 5}
    series_by = ()

    def check(rows, level):
        """A filter that keeps few cells is worse."""
        own = rows.assign(series=rows.mechanism)
        names = ("GeometricHistogram", "HighPassFilter")
        return check_lower(paired_ratios(own, *names, "query_size"), level)

    claims = claim(check)
    seeds: int = seeds(40)

    def sweeps(self):
        """Two mechanisms on made-up data."""
        data = GaussianSparse(m=500)
        mechanisms = [HighPassFilter(DP(1.0), 100), GeometricHistogram(DP(1.0))]
        return {
            "a": Sweep([data], mechanisms, [MeanAbsoluteError(RandomRanges(1, 50))], self.seeds)
        }


def test_looks_continue_from_the_store(tmp_path):
    figure = Ranges()
    rows, (verdict,) = figure.run(tmp_path)
    assert verdict.outcome == claims.HOLDS and rows.seed.nunique() < 40
    files = set(tmp_path.iterdir())
    assert len(files) == 2 * rows.seed.nunique()
    again, _ = figure.run(tmp_path)
    pd.testing.assert_frame_equal(again, rows)
    quick, _ = Ranges.at("quick").run(tmp_path)
    assert set(tmp_path.iterdir()) == files, "quick's seeds are the first of paper's"
    assert len(quick) <= len(rows)


def test_a_file_is_told_from_its_twin_by_class():
    rows = noisy(
        [{"series": "ours", "x": 1, "value": 0.5}, {"series": "other", "x": 1, "value": 1.0}]
    )
    real = rows.assign(dataset="Ranked(dataset=NetTrace())")
    twin = rows.assign(dataset="Ranked(dataset=NetTraceTwin())")
    needing = replace(Fig1.claims[0].statements[0], needs=("NetTrace",))

    class Needs(Fig1):
        claims = (Claim("x-1", "", "It is.", (needing,)),)

    (judged,) = Needs().judge(real)
    (beside,) = Needs().judge(twin)
    assert judged.outcome == claims.HOLDS and beside.outcome == claims.UNTESTABLE
    assert beside.measured == judged.measured and "NetTrace" in beside.why
    (bare,) = Needs().judge(rows)
    assert bare.outcome == claims.UNTESTABLE
    assert isinstance(needing.check(real, 0.95), Finding)
