"""Specs: what each exposes, and that a claim's check tells a world where it is true from others."""

import csv
import pickle
import re
from dataclasses import replace
from importlib import import_module
from math import exp
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from experiments import verdicts
from experiments.cormode2012 import c6 as cormode2012_c6
from experiments.cormode2012 import data, shared
from experiments.cormode2012 import fig5 as cormode2012_fig5
from experiments.cormode2012 import fig6a as cormode2012_fig6a
from experiments.cormode2012 import fig6b as cormode2012_fig6b
from experiments.cormode2012 import fig6c as cormode2012_fig6c
from experiments.cormode2012 import modern as cormode2012_modern
from experiments.cormode2012 import sec45 as cormode2012_sec45
from experiments.cormode2012 import table1 as cormode2012_table1
from experiments.cormode2012 import trips as cormode2012_trips
from tests.figures.worlds import claims_of, figure_of
from workbench import DP, ZCDP, Domain, Ranges, SparseTable, figures
from workbench.data import Bound
from workbench.datasets import GaussianSparse
from workbench.figures.recorded import recorded_folder
from workbench.mechanisms import InfTDA
from workbench.trials import claims
from workbench.trials.claims import DIFFERS, HOLDS, NOT_JUDGED, OUTCOMES

HERE = Path(__file__).parents[2] / "experiments"
FILES = [
    import_module(".".join(path.relative_to(HERE.parent).with_suffix("").parts))
    for path in [*sorted(HERE.glob("[!_]*.py")), *sorted(HERE.glob("*20??/[!_]*.py"))]
]
SPECS = [file for file in FILES if figure_of(file)]
FIGURES = [figure_of(spec) for spec in SPECS]


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f.id)
def test_a_figure_says_what_its_parameters_are(figure):
    assert figure.title and figure.page and figure.__doc__
    for claim in figure.claims:
        assert all(each.says.endswith(".") for each in claim.statements)
    fields = figure.parameters()
    assert all(
        f.metadata["doc"] and f.metadata["kind"] in figures.KINDS for f in fields.values()
    )
    assert all(fields[name].metadata["kind"] == figures.EFFORT for name in figure.quick)
    assert figure.at("quick").name("quick") == figure.at("paper").name("paper") == figure.id
    assert not figure.at("quick").off_paper()


def test_every_claim_is_judged_once():
    ids = [claim.id for spec in SPECS for claim in claims_of(spec)]
    assert len(set(ids)) == len(ids) > 60


@pytest.fixture
def small_tables(no_files, monkeypatch):
    """The twin of OnTheMap is a small table."""
    small = GaussianSparse(m=2000)
    monkeypatch.setitem(data.DATASETS, data.JUDGED, small)
    monkeypatch.setitem(data.TOTALS, data.JUDGED, int(small.load().total))
    return no_files


@pytest.mark.slow
@pytest.mark.parametrize(
    "figure, of_it",
    [
        (cormode2012_table1.Table1, {}),
        (cormode2012_fig6a.Fig6a, {"size": 300, "theta": 9}),
        (cormode2012_fig6b.Fig6b, {"size": 300, "epsilon": 0.5}),
        (cormode2012_fig6c.Fig6c, {"size": 300, "shares": (0.01, 0.1)}),
        (cormode2012_sec45.Sec45, {"size": 300, "delta": 1e-3}),
    ],
)
def test_published_tables_are_left_out_where_no_file_is_at_hand(small_tables, figure, of_it):
    effort = {name: 2 for name in ("seeds", "queries") if name in figure.parameters()}
    usual = figure.at("quick", **effort, data=(data.JUDGED, data.TRACTS))
    changed = replace(usual, **of_it)
    assert changed.missing_datasets() == ["Rhode Island by tract: not at hand"]
    found = changed.rows(small_tables)
    assert changed.draw(found) and {v.outcome for v in changed.judge(found)} == {NOT_JUDGED}
    assert "data" in changed.compare_with_paper(found)["not the paper's setting"].tolist()
    with pytest.raises(ValueError, match="data = Rhode Island by tract: no file"):
        replace(usual, data=(data.TRACTS,)).rows(small_tables)
    plt.close("all")


ABSOLUTE = "MeanAbsoluteError"
CUT = "ErrorCut"


def test_what_consistency_cuts_is_a_ratio_of_means_with_its_interval():
    rng = np.random.default_rng(0)
    a, b = rng.normal(60, 6, (2000, 40)), rng.normal(100, 10, (2000, 40))
    made = [
        {"panel": "c", "series": series, "consistent": kept, "query_size": x, "seed": seed}
        | {"metric": ABSOLUTE, "value": values[x, seed]}
        for series, kept, values in (("filter, dyadic", False, b),)
        + (("filter, dyadic, consistent", True, a),)
        for x in range(2000)
        for seed in rng.permutation(40)
    ]
    found = shared.error_cut(pd.DataFrame(made), "query_size")
    assert set(found.metric) == {CUT} and set(found.series) == {"filter, dyadic"}
    told = claims.confidence_intervals(found, "query_size")
    np.testing.assert_allclose(told["mean"], 1 - a.mean(axis=1) / b.mean(axis=1))
    covered = ((told.low < 0.4) & (0.4 < told.high)).mean()
    assert 0.93 < covered < 0.97


def test_the_plain_way_sums_the_same_tree():
    table = GaussianSparse(m=1000).load()
    nodes, sums = shared.DYADIC.on(table.domain).forward(table.keys, table.counts)
    dense = cormode2012_fig5.dense_sums(table)
    assert len(dense) == 2 * 1024 - 1
    assert sorted(dense[dense > 0]) == sorted(sums)


def test_dyadic_summaries_get_their_thresholds_from_public_numbers():
    figure = cormode2012_fig5.Fig5()
    domain = figure.data.domain
    filtered, both = shared.Summaries(domain, figure.size, figure.epsilon).filters()
    assert (filtered.theta, filtered.threshold(domain, 1), both.theta) == (None, 630, 504)
    twin = data.DATASETS[data.JUDGED].domain
    filtered, both = shared.Summaries(twin, cormode2012_fig6b.Fig6b().size, 0.1).filters()
    assert (filtered.threshold(twin, 1), both.theta) == (1041, 833)


def test_commuting_data_is_in_the_order_of_work_places():
    for name in data.COMMUTING:
        try:
            assert data.DATASETS[name].domain.attributes == ("work", "home")
        except FileNotFoundError:
            continue


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
@pytest.mark.parametrize("size", [100_000, 1_000_000])
def test_the_line_of_theory_is_the_variance_of_every_sketch(size, epsilon):
    figure = cormode2012_c6.C6(epsilon=epsilon)
    squares = cormode2012_c6.squares(figure.data)
    for what in cormode2012_c6.HELD:
        sketches = [x for x in figure.by_rows(what, size) if x.estimate == "mean"]
        drawn = cormode2012_c6.variance(figure.data, epsilon, what, size)(
            np.array([x.depth for x in sketches])
        )
        np.testing.assert_allclose(drawn, [x.variance(squares, 1) for x in sketches])


@pytest.mark.slow
def test_totals_of_published_tables_are_as_stated():
    for name, total in data.TOTALS.items():
        try:
            assert data.DATASETS[name].load().total == total
        except FileNotFoundError:
            continue
    modern = cormode2012_modern.Modern()
    assert modern.data.load().counts.max() <= modern.largest


def test_a_ratio_of_errors_is_one_of_means_with_its_interval():
    rng = np.random.default_rng(0)
    a, b = rng.normal(300, 30, (2000, 40)), rng.normal(100, 10, (2000, 40))
    made = [
        {"series": series, "epsilon": 1.0, "share": x, "seed": seed, "value": values[x, seed]}
        for series, values in ((cormode2012_sec45.SYNTHESIS, a), ("geometric", b))
        for x in range(2000)
        for seed in rng.permutation(40)
    ]
    found = cormode2012_sec45.error_ratio(pd.DataFrame(made), "geometric")
    assert set(found.metric) == {"ErrorRatio"} and len(found) == a.size
    told = claims.confidence_intervals(found, "share")
    np.testing.assert_allclose(told["mean"], a.mean(axis=1) / b.mean(axis=1))
    assert 0.93 < ((told.low < 3) & (told.high > 3)).mean() < 0.97


def test_synthesis_by_work_place_keeps_every_place_in_its_total():
    table = SparseTable(
        Domain(("work", "home"), (3, 4)),
        np.array([0, 3, 9, 10]),
        np.array([5, 1, 7, 2]),
        Bound(1, 1),
        truth_public=True,
    )
    parts = dict(cormode2012_sec45.work_places(table))
    assert [(start, part.total) for start, part in parts.items()] == [(0, 6), (8, 9)]
    assert list(parts[8].keys) == [1, 2] and parts[8].domain.shape == (4,)
    mechanism = cormode2012_sec45.SynthesisByWorkPlace(DP(1.0, 1e-4))
    made = [mechanism(table, np.random.default_rng(seed)).estimate for seed in range(5)]
    assert all(list(e.answer(Ranges([0, 8], [4, 12]))) == [6, 9] for e in made)
    assert len({e.answer(Ranges([0], [1]))[0] for e in made}) > 1


def test_on_the_page_of_all_releases_every_line_of_the_legend_looks_its_own():
    figure = cormode2012_modern.Modern.at("quick")
    made = pd.read_csv(recorded_folder() / f"{figure.id}.csv.xz", low_memory=False)
    hollow = set()
    for fig in (figure.draw(made), figure.supplement(made)):
        drawn = [line for ax in fig.axes for line in ax.lines]
        lines = [line for line in drawn if line.get_label()[0] != "_"]  # no dots of seeds
        looks = {
            (line.get_color(), line.get_marker(), str(line._dash_pattern)): line.get_label()
            for line in lines
        }
        assert len(looks) == len({*looks.values()}) == len({line.get_label() for line in lines})
        hollow |= {line.get_label() for line in lines if line.get_markerfacecolor() == "white"}
        plt.close(fig)
    gaussian = set(made[made.rho.notna()].series)
    sparse = {
        "Gaussian sparse histogram",
        "Misra–Gries",
        "correlated Gaussian sparse histogram",
    }
    assert hollow == {"stability histogram", "Dirichlet synthesis"} | sparse | gaussian


def test_trips_are_compared_under_one_relation(tmp_path, monkeypatch):
    trips = cormode2012_trips
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path / "none"))
    figure = trips.ThenAndNow.at("quick", epsilons=(0.5, 1.0), seeds=1)
    table = SparseTable.from_keys(Domain(("work", "home"), (20, 20)), [0, 9], [5, 7], Bound())
    rho = ZCDP.within(DP(1.0, 1e-6)).rho
    for mechanism in figure.mechanisms(1.0, table, 1):
        budget = mechanism.budget
        if isinstance(mechanism, InfTDA):
            assert budget.rho == rho and mechanism.total == 12
        elif isinstance(budget, ZCDP):
            assert budget.rho == rho / 2
        else:  # two steps, the second of which has e^ε times its δ
            assert budget.epsilon == 0.5
            assert (1 + exp(0.5)) * budget.delta in (0, pytest.approx(1e-6))
    (data,) = {sweep.datasets[0] for sweep in figure.sweeps().values()}
    assert data == trips.TwinPart() and not figure.off_paper()
    boxes = trips.Trips("pairs of regions", 1).on(data.domain)
    assert len(boxes) == 9 and boxes.cells(data.domain).sum() == data.domain.size
    for between in trips.QUERIES[1:]:
        asked = trips.Trips(between, 1).on(data.domain)
        assert asked.cells(data.domain).sum() == data.domain.size


# --- the words of claims, as numbers


def line(values, spread=0.01, seeds=6):
    made = [
        (x, v * (1 + spread * (s - (seeds - 1) / 2))) for x, v in values for s in range(seeds)
    ]
    return claims.confidence_intervals(pd.DataFrame(made, columns=["x", "value"]), "x")


def test_numbers_at_points_that_are_not_drawn_are_refused():
    few = pd.DataFrame({"x": [1, 1], "seed": [0, 1], "value": [1.0, 1.1]})
    curve = claims.mean_curve(few, "x")
    with pytest.raises(claims.MissingPoints, match="no point in common"):
        claims.crossing(curve.loc[5:], curve)
    with pytest.raises(claims.MissingPoints):
        claims.mean_curve(few, "x", seed=9)


def test_where_curves_cross_and_lines_on_logarithmic_axes():
    one = line([(1, 10.0), (10, 10.0), (1000, 10.0)])
    other = line([(1, 1.0), (10, 1.0), (1000, 100.0)])
    assert claims.crossing(one, other) == pytest.approx(100)
    assert np.isnan(claims.crossing(other, one))
    assert claims.crossing(other / 2, other) == claims.crossing(other * 0, other) == 1
    law = pickle.loads(pickle.dumps(claims.interpolate_log_log([1, 100], [2, 200])))
    assert np.allclose(law(np.array([1, 10, 100])), [2, 20, 200])
    assert np.isnan(law(np.array([0.5, 101]))).all()


def test_a_printed_number_has_a_reading_error():
    about = claims.Printed.approximately("around 1 %", 0.01, 0.005)
    assert about.covers(0.0145) and not about.covers(0.016) and not about.covers(0.0049)


# --- what is committed


def test_verdicts_are_collected_from_finished_figures(tmp_path):
    judged = [claims.Verdict("c-1", "A.", HOLDS, "1×"), claims.Verdict("c-0", "B.", DIFFERS)]
    spec = figures.Description("demo2020_fig1", "A figure", "workbench reproduce")
    frame = pd.DataFrame({"dataset": ["Twin()"], "value": [1.0], "truth_public": [True]})
    figures.save(None, frame, spec=spec, profile="paper", results=tmp_path, verdicts=judged)
    path = verdicts.write("demo2020", tmp_path, into=tmp_path)
    found = pd.read_csv(path, keep_default_na=False)
    assert list(found.id) == ["c-0", "c-1"] and list(found) == verdicts.COLUMNS.split()
    assert set(found.datasets) == {"Twin()"} and set(found.profile) == {"paper"}
    with pytest.raises(FileNotFoundError, match="reproduce --profile paper"):
        verdicts.collect("other2020", tmp_path)


@pytest.mark.parametrize(
    "path", sorted((HERE / "verdicts").glob("*.csv")), ids=lambda p: p.stem
)
def test_committed_verdicts_are_of_a_paper_run(path):
    judged = [claim for spec in SPECS for claim in claims_of(spec)]
    ids = {x.id for claim in judged for x in (claim, *claim.statements)}
    with open(path, newline="", encoding="utf-8") as file:
        told = list(csv.DictReader(file))
    assert {row["id"] for row in told} <= ids
    assert [row["id"] for row in told] == sorted(row["id"] for row in told)
    for row in told:
        assert row["profile"] == "paper" and row["outcome"] in OUTCOMES
        assert row["measured"] + row["why"]
        assert re.fullmatch(rf"{path.stem}_\w+", row["figure"]) and row["datasets"]
