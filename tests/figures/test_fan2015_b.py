"""Specs of Fan & Jin, Figures 7 to 9 and Table 5: what they run and compute themselves."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from experiments.fan2015 import _counts as groups
from experiments.fan2015 import data as fan2015_data
from experiments.fan2015 import fig7 as fan2015_fig7
from experiments.fan2015 import fig8 as fan2015_fig8
from experiments.fan2015 import fig9 as fan2015_fig9
from experiments.fan2015 import modern as fan2015_modern
from experiments.fan2015 import table5 as fan2015_table5
from experiments.fan2015._counts import (
    METHODS,
    PRECISION,
    PUBLISHED,
    READINGS,
    SQUARED,
    TOPS,
    beside_methods,
    five_methods,
    next_methods,
)
from experiments.fan2015.data import RatedFilms
from experiments.fan2015.unreleased import EqualCounts, ReleaseTakenApart, TopItems
from tests.agreement import seeded
from tests.figures.worlds import figure_of, noisy
from workbench import DP, Bound, Domain, Trial
from workbench.data import Interactions
from workbench.datasets import InteractionsTwin
from workbench.figures import plots
from workbench.mechanisms import HPA, SRA
from workbench.trials.claims import NOT_JUDGED, UNTESTABLE
from workbench.trials.metrics import MeanSquaredCountError, TopPrecision

SEEDS = 6
SMALL = InteractionsTwin(300, 120, 6000, 200)


# --- what the specs compute themselves


FILMS = InteractionsTwin(
    300, 60, 9000, 55, 20, once=True, contexts="gender and age", popularity=1.5
)
TWINS = ("Foursquare twin", "MovieLens twin")


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Two small twins in place of the paper's data."""
    monkeypatch.setitem(fan2015_data._TWINS, "Foursquare", SMALL)
    monkeypatch.setitem(fan2015_data._TWINS, "MovieLens", FILMS)
    return tmp_path


def at_small(spec, **given):
    return figure_of(spec).at("quick", data=TWINS, **given)


@pytest.mark.slow
def test_figures_7_to_9_share_their_runs(small):
    specs = (fan2015_fig7, fan2015_fig8, fan2015_fig9)
    figures = [at_small(spec, seeds=2) for spec in specs]
    told = [figures[0].rows(small)]
    kept = {path.name for path in small.glob("*.json")}
    told += [figure.rows(small) for figure in figures[1:]]
    both = {
        path.name for path in small.glob("*.json")
    } - kept  # MovieLens' groups are Figure 8's alone
    assert len(both) == (2 + 3) * 2 + 1  # two of SRA, three of HPA; the tastes
    items, edges, tops = told
    of_others = {(of, metric) for of, metric in zip(edges.of, edges.metric, strict=True)}
    assert ("items", PRECISION) in of_others and ("items", SQUARED) not in of_others
    assert set(items.law) == {"×0.5", "×1", "×2"} and set(items.reading.dropna()) == {*READINGS}
    assert set(tops.top) == set(TOPS) and set(tops.metric) == {PRECISION}
    assert items.truth_public.all() and set(items.panel) == set(TWINS)
    for figure, rows in zip(figures, told, strict=True):
        assert len(figure.comparison(rows)) == 2 * (3 * len(METHODS) + 6 + 4 + 1)
        drawn = figure.draw(rows)
        assert "not the paper's setting: data" in drawn._suptitle.get_text()
        plt.close(drawn)
        assert {v.outcome for v in figure.judge(rows)} == {NOT_JUDGED}


@pytest.mark.slow
def test_series_are_the_papers_methods_and_what_else_a_user_would_try(small):
    rows = at_small(fan2015_fig8, seeds=1, top=7, l=5).rows(small)
    case = fan2015_data.Case("MovieLens twin", FILMS, "MovieLens", 55, 30, 20)
    films = rows[(rows.panel == "MovieLens twin") & (rows.metric == SQUARED)]
    films = films[films.law == "×1"]
    beside = beside_methods(case, DP(1.0))
    for reading in READINGS:
        methods = five_methods(case, 1.0, reading)
        methods |= beside if reading == "total" else {}
        own = films[films.reading == reading]
        for series, mechanism in methods.items():
            (trial,) = own[own.series == series].trial
            assert repr(mechanism) in trial
        assert set(own.series) == {*methods}
    assert {"GS, once an item", "DFT, l records", "each count the mean"} < {*beside}
    others = rows[rows.panel == "Foursquare twin"]
    assert set(others[others.series == "SRA"].l) == {5}
    assert set(rows.top.dropna()) == {7}
    by_group = rows[rows.metric == "GroupPrecision"]
    assert set(by_group.panel) == {"MovieLens twin"} and set(by_group.group) == {*range(6)}
    assert len(by_group) == 3 * 2 * 6
    tastes = rows[rows.part == groups.OWN].set_index("group").value
    third = FILMS.load().edge_counts()[:, 2]
    assert tastes[2] == pytest.approx(np.sort(third)[-10:].sum() / third.sum())


def test_columns_tell_which_metric_a_row_is_of(small):
    rows = at_small(fan2015_fig7, seeds=2).rows(small)
    data = SMALL.load()
    some = rows[(rows.panel == "Foursquare twin") & (rows.series == "HPA") & (rows.seed == 1)]
    some = some[(some.law == "×1") & (some.reading == "total") & (some.of == "items")]
    mechanism = HPA(DP(1.0), 10, 1)
    released = Trial(SMALL, mechanism, 1).release(data).estimate
    (ours,) = some[some.top == 5].value
    assert ours == TopPrecision(5)(data, released)
    (ours,) = some[some.metric == SQUARED].value
    assert ours == MeanSquaredCountError()(data, released)


def test_the_parts_of_an_error_add_up(small):
    figure = at_small(fan2015_fig7, seeds=1, taken_apart=2)
    rows = figure.rows(small)
    parts = rows[rows.metric == fan2015_fig7.PARTS]
    assert set(parts.seed) == {0, 1} and set(parts.series) == {"SRA", "HPA"}
    sums = parts.pivot_table("value", ["panel", "series", "decile"], "part", "sum")
    whole = sums[["dropped", "noise", "interaction", "clipping"]].sum(axis=1)
    np.testing.assert_allclose(whole, sums.total, atol=1e-6)
    told = figure.sources(rows)
    assert len(told) == 2 * 2 * 2 and list(told.columns)[:2] == ["dropped", "noise"]


def test_how_far_the_first_ten_are_ahead():
    data = SMALL.load()
    exact = EqualCounts()(data, np.random.default_rng(0)).estimate
    told = TopItems()(data, exact).set_index("quantity").value
    counts = np.sort(data.item_counts())[::-1]
    assert told[TopItems.AHEAD] == counts[0] - counts[9] and told[TopItems.RELEASED] == 0
    assert told[TopItems.TRUE] == pytest.approx(counts[:10].mean() - counts[10:20].mean())
    assert told[TopItems.FIRST] == counts[0] / 300


def test_films_that_nobody_rated_are_left_out():
    labels = (range(1, 8), ("F", "M"))
    columns = [np.array(x) for x in ([0, 0, 1], [4, 1, 4], [1, 1, 0])]
    films = Interactions(Domain(("item", "context"), (7, 2), labels), *columns, Bound(7, 1))
    titles = {2: "two", 5: "five"}
    archive = SimpleNamespace(load=lambda: films, domain=films.domain, titles=lambda: titles)
    data = RatedFilms(archive).load()
    assert data.domain.shape == (2, 2) and list(data.domain.decode("item", data.items)) == [
        5,
        2,
        5,
    ]
    assert list(data.item_counts()) == [1, 2] and data.bound == Bound(7, 1)
    assert fan2015_table5.film_names(RatedFilms(archive)) == ["two", "five"]


def test_a_release_taken_apart_is_one_that_the_mechanism_makes():
    data = SMALL.load()
    mechanism = HPA(DP(1.0), 10, 1)
    apart = ReleaseTakenApart(mechanism)(data, np.random.default_rng(5)).estimate
    kept = mechanism.bounded_data(data, np.random.default_rng(5))
    released = mechanism(data, np.random.default_rng(5)).estimate
    assert (apart.kept.item_counts() == kept.item_counts()).all()
    assert (apart.released.items.values == released.items.values).all()


def test_the_squared_error_of_a_table_of_means_is_the_variance():
    data = SMALL.load()
    estimate = EqualCounts()(data, np.random.default_rng(0)).estimate
    for of, counts in (("items", data.item_counts()), ("edges", data.edge_counts())):
        assert MeanSquaredCountError(of)(data, estimate) == pytest.approx(counts.var())


def test_public_numbers_of_what_is_beside_the_paper():
    case = fan2015_data.Case("Online Retail", SimpleNamespace(), "", 7983)
    told = five_methods(case, 1.0, "total") | next_methods(case, DP(1.0))
    assert told["SRA, total = N"].total == 406_829 and told["SRA, suggested l"].n == 4372
    assert told["SRA, suggested l"].bound == 93 and told["HPA, half random"].random_share == 0.5
    assert set(fan2015_data.DATASETS) == set(PUBLISHED) | {
        "Foursquare"
    }  # which is always a twin


def test_a_group_is_its_own_records():
    data = SMALL.load()
    group = groups.context_records(data, 3)
    assert (group.item_counts() == data.edge_counts()[:, 3]).all()
    released = SRA(DP(1.0), 200).__call__(data, np.random.default_rng(0))
    ours = groups.context_tables(released.estimate, 3)
    edges = released.estimate.edges.values.reshape(data.domain.shape)
    assert (ours.items.values == edges[:, 3]).all()


def test_table_5_lists_films_of_one_run(small):
    figure = figure_of(fan2015_table5).at("quick", seeds=2, tops=(1, 5))
    rows = figure.rows(small)
    table = figure.table(rows)
    assert len(table.columns) == 7 and len(table) == 10
    best = set(table.original)
    for series in table.columns[1:]:
        for film in table[series]:
            assert film.endswith(" *") == (film.removesuffix(" *") in best)
    assert len(figure.comparison(rows)) == 3 * len(METHODS)
    each = rows[(rows.reading == "each") & (rows.series != "original")]
    doubled = rows[(rows.reading == "each, and popularity") & (rows.series == "HPA")]
    assert set(doubled.epsilon) == {2.0} and set(doubled.popularity_share) == {0.1}
    budgets = each.groupby("series").epsilon.first()
    assert budgets["SRA"] == budgets["LPA"] == 2 and budgets["HPA"] == pytest.approx(1.9)
    assert {v.outcome for v in figure.judge(rows)} == {UNTESTABLE}
    plt.close(figure.draw(rows))


def test_the_films_of_another_group(small):
    figure = figure_of(fan2015_table5).at("quick", seeds=1, group="F under 25", l=5)
    rows = figure.rows(small)
    data = FILMS.load()
    women = groups.context_records(data, fan2015_table5.GROUPS.index("F under 25"))
    rows = rows[rows.reading == "total"]
    counts = rows[(rows.metric == "Count") & (rows.series == "original")]
    assert list(counts.value) == sorted(women.item_counts(), reverse=True)[:10]
    exact = rows[(rows.metric == PRECISION) & (rows.series == "original")]
    assert list(exact.value) == [TopPrecision(k)(women, women) for k in figure.tops]  # ties
    assert set(rows[rows.series == "SRA"].l) == {5}
    verdict = figure.judge(rows)[0]
    assert verdict.why == "not the paper's setting: group = F under 25, l = 5"


def test_films_are_called_by_their_titles_where_they_have_some():
    data = SimpleNamespace(domain=SMALL.domain, titles=lambda: {0: "Heat (1995)"})
    told = fan2015_table5.film_names(data)
    assert told[:2] == ["Heat (1995)", "film 1"] and len(told) == 120
    assert fan2015_table5.film_names(SMALL)[0] == "film 0"


# --- bars of named groups, and axes of what lies between 0 and 1


def test_named_groups_of_bars_stand_in_the_order_of_the_rows():
    made = noisy(
        (
            {"panel": name, "series": series, "metric": metric, "value": value}
            for metric, value in ((PRECISION, 0.99), (SQUARED, 50.0))
            for name in ("b, whole", "a")
            for series in ("SRA", "HPA")
        ),
        SEEDS,
        spread=0,
    )
    _, axes = plots.panels(2, 1)
    plots.grouped_bars(made[made.metric == PRECISION], "panel", "series", axes[0], log=False)
    plots.grouped_bars(made[made.metric == SQUARED], "panel", "series", axes[1])
    for ax in axes:
        assert [t.get_text() for t in ax.get_xticklabels()] == ["b,\nwhole", "a"]
    assert axes[0].get_ylim() == (0, 1.05) and axes[1].get_yscale() == "log"
    assert {round(bar.get_height(), 6) for bar in axes[0].patches} == {0.99}
    plt.close(axes[0].figure)


def test_bands_of_precision_leave_no_room_beyond_it():
    made = pd.DataFrame({"top": [1, 1, 9, 9], "value": [0.0, 1.0, 0.2, 0.3], "series": "SRA"})
    _, (ax,) = plots.panels()
    plots.curves(made.assign(metric=PRECISION), "top", "series", ax, log="x")
    assert ax.get_ylim() == (0, 1.05)
    plt.close(ax.figure)


def test_chosen_numbers_of_records_stand_beside_the_best_in_hindsight(small):
    """A choice and its release share ε, and in hindsight the candidate with the least mean is shown."""
    few = dict(candidates=(1, 5, 50), epsilons=(0.3, 1.0), seeds=2)
    figure = fan2015_modern.Modern(data=("Foursquare twin",), **few)
    (case,) = figure.cases().values()
    for epsilon, _, mechanism in figure.mechanisms(case):
        assert epsilon <= mechanism.budget.epsilon <= epsilon * (1 + 1e-15)
    found = figure.rows(small)
    assert (
        len(found) == 2 * 2 * 4
        and found.groupby(["epsilon", "series"]).seed.nunique().eq(2).all()
    )
    data, error = case.dataset.load(), fan2015_modern.ItemError()
    best = found[found.series == fan2015_modern.HINDSIGHT].groupby("epsilon").l
    for epsilon, chosen in best:
        assert chosen.nunique() == 1
        means = {
            count: np.mean(
                [
                    error(data, SRA(DP(epsilon), count)(data, seeded(s)).estimate)
                    for s in range(20)
                ]
            )
            for count in few["candidates"]
        }
        assert means[chosen.iloc[0]] < 1.2 * min(means.values())
    assert set(figure.comparison(found).columns) == {
        "best l",
        "l of the paper",
        "l by error",
        "l by rank",
    }
