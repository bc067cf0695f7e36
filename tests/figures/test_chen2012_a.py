"""Specs of Chen et al., Figures 2, 3 and 5, and of the answer bank: true worlds and false ones."""

from types import SimpleNamespace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from experiments import answer_bank
from experiments.chen2012 import data as chen2012_data
from experiments.chen2012 import fig2 as chen2012_fig2
from experiments.chen2012 import fig3 as chen2012_fig3
from experiments.chen2012 import fig5 as chen2012_fig5
from experiments.chen2012.data import ALPHAS, WITH, WITHOUT
from tests.figures.worlds import differs, holds, spread
from workbench import metrics, plots
from workbench.claims import DIFFERS, HOLDS, UNDECIDED
from workbench.datasets import IPUMSTwin
from workbench.workload import workload_sensitivity

SEEDS = 6
CASES = ("Census Income", "IPUMS twin")
SMALL = IPUMSTwin(records=3000)


def law(alpha, prior, new):
    """Bias that falls with α, and noise that rises with it."""
    bias = (3e4 if prior == WITHOUT else 6e3) / (1 + (alpha / 1000) ** 2)
    return 200 + bias + (1500 if new else 300) * alpha / (alpha + 1e6)


def fig2():
    return spread(
        (
            {"case": case, "panel": panel, "series": series, "alpha": alpha, "metric": "RMSE"}
            | {"deviation": 520.0, "value": law(alpha, series, panel in "cd")}
            for case in (*CASES, CASES[1] + chen2012_fig2.AS_PRINTED)
            for panel in chen2012_fig2.PANELS
            for series in (WITHOUT, WITH)
            for alpha in ALPHAS.tolist()
        ),
        SEEDS,
    )


def fig3():
    told = []
    for name in (*CASES, CASES[1] + chen2012_fig2.AS_PRINTED):
        for series in (WITHOUT, WITH):
            one = {"panel": name, "metric": "RMSE"}
            for alpha in ALPHAS.tolist():
                value = law(alpha, series, True)
                at = one | {"alpha": alpha}
                told.append(at | {"series": series, "value": value})
                estimated = series + chen2012_fig3.ESTIMATED
                told.append(at | {"series": estimated, "value": 1.1 * value})
            chosen = {"panel": f"{name}, chosen", "metric": "chosen", "value": 500.0}
            told.append(one | chosen | {"series": series, "alpha": 1e4})
    world = spread(told, SEEDS)
    noise = world.series.str.endswith(chen2012_fig3.ESTIMATED)
    ratio = world[noise].groupby(["panel", "series", "alpha"]).cumcount()
    world.loc[noise, "value"] *= 1 + 0.001 * ratio  # seeds differ in the ratio as well
    return world


def fig5():
    told = []
    for panel, sizes in {
        "queries": (250, 500, 1000),
        "universe": (4e3, 1e11),
        "merged": (1e5, 1e11),
        "tuples": (5e3, 5e5),
    }.items():
        for x in sizes:
            m = x if panel == "queries" else 1000
            one = {"panel": panel, chen2012_fig5._along(panel): x, "metric": "ProcessorTime"}
            told += [
                one | {"series": chen2012_fig5.KERNEL, "value": 1e-10 * m**3},
                one | {"series": chen2012_fig5.ENTROPY, "value": 1 + 1e-3 * m},
                one | {"series": chen2012_fig5.BUYING, "value": 1e-7 * x},
            ]
    return pd.DataFrame(told)


def bank():
    told = []
    for name, share in (("an empty bank", 1.0), ("marginals", 0.9), ("blocks", 0.5)):
        for error in answer_bank.ERRORS.tolist():
            one = {"panel": "price", "metric": "Price", "series": name, "error": error}
            told.append(one | {"value": share * 10 / error})
    told += [
        {"panel": "bars", "metric": "bar", "series": "recalled", "value": 90.0},
        {"panel": "bars", "metric": "bar", "series": "bought", "value": 100.0},
    ]
    return pd.DataFrame(told)


WORLDS = {chen2012_fig2: fig2, chen2012_fig3: fig3, chen2012_fig5: fig5, answer_bank: bank}
ESTIMATE = WITH + chen2012_fig3.ESTIMATED
LARGE = ALPHAS.tolist()[-1]
BROKEN = [  # claim, which rows, by what factor
    ("n-2a", {"case": CASES[0], "panel": "a", "series": WITH, "alpha": LARGE}, 0.1),
    ("n-2a", {"case": CASES[1], "panel": "b", "series": WITHOUT, "alpha": LARGE}, 1.5),
    ("n-2a", {"case": CASES[1], "panel": "b", "series": WITHOUT, "alpha": 1000.0}, 20),
    ("n-2b", {"case": CASES[0], "panel": "d", "series": WITH}, 3),
    ("n-2b", {"case": CASES[0], "panel": "c", "series": WITHOUT, "alpha": LARGE}, 0.3),
    ("n-2c", {"case": CASES[1], "panel": "c", "series": WITH, "alpha": 100.0}, 0.01),
    ("n-3", {"panel": CASES[0], "series": ESTIMATE}, 1.5),
    ("n-3", {"panel": CASES[1], "series": ESTIMATE}, 0.85),
    ("n-3", {"panel": CASES[1], "series": ESTIMATE, "alpha": 100.0}, 0.01),
    ("n-5", {"panel": "universe", "series": chen2012_fig5.KERNEL, "universe": 1e11}, 2),
    ("n-5", {"panel": "tuples", "series": chen2012_fig5.ENTROPY, "tuples": 5e5}, 2),
    ("n-5", {"panel": "queries", "series": chen2012_fig5.KERNEL, "queries": 500}, 3),
    ("n-5", {"panel": "queries", "series": chen2012_fig5.ENTROPY, "queries": 1000}, 3),
    ("bank-1", {"series": "marginals"}, 2),
    ("bank-2", {"series": "recalled"}, 2),
]
CLAIMS = {claim.id: (spec, claim) for spec in WORLDS for claim in spec.CLAIMS}
specs = pytest.mark.parametrize("spec", WORLDS, ids=lambda s: s.__name__.split(".")[1])


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_holds_in_a_world_where_it_is_true(name):
    spec, claim = CLAIMS[name]
    holds(claim, WORLDS[spec]())


@pytest.mark.slow
@pytest.mark.parametrize("name, where, factor", BROKEN)
def test_a_claim_differs_in_a_world_where_it_is_false(name, where, factor):
    spec, claim = CLAIMS[name]
    differs(claim, WORLDS[spec](), where, factor)


def test_every_claim_is_broken():
    assert {name for name, *_ in BROKEN} == set(CLAIMS)


def test_the_papers_noise_is_shown_and_not_judged():
    world = fig2()
    printed = world.case.str.endswith(chen2012_fig2.AS_PRINTED)
    world.loc[printed, "value"] = 1.0
    assert all(c.judge(world, "quick").outcome == HOLDS for c in chen2012_fig2.CLAIMS)
    assert any(
        "Lap(5000)" in name for name, *_ in chen2012_fig2.compare_with_paper(world).index
    )


def test_few_seeds_settle_nothing():
    world = fig2()
    world.loc[world.alpha == LARGE, "value"] *= 1 + (world.seed - (SEEDS - 1) / 2)
    world["value"] = world.value.abs() + 1
    assert CLAIMS["n-2a"][1].judge(world, "quick").outcome in (UNDECIDED, DIFFERS)


@pytest.mark.slow
@specs
def test_a_world_is_drawn_and_told(spec):
    world = WORLDS[spec]()
    fig = plots.grid(world, spec.panels(world), columns=2)
    assert len(fig.axes) == len(spec.panels(world))
    plt.close(fig)
    if hasattr(spec, "compare_with_paper"):
        assert len(spec.compare_with_paper(world))


# --- what the specs compute themselves


@pytest.fixture
def small(monkeypatch):
    """One small dataset, few queries, one seed."""
    case = chen2012_data.Case("IPUMS twin", SMALL, 3000.0)
    for spec in (chen2012_fig2, chen2012_fig3):
        monkeypatch.setattr(spec, "cases", lambda: {case.name: case})
        monkeypatch.setattr(spec, "SEEDS", {"quick": 2})
        for name in ("PAST", "NEW"):
            monkeypatch.setattr(spec, name, {"quick": 40})
    return case


def test_data_that_is_not_at_hand_is_left_out(monkeypatch, tmp_path):
    from workbench.datasets import published

    monkeypatch.setattr(published, "raw", lambda: tmp_path)
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    assert list(chen2012_data.cases()) == ["IPUMS twin"]
    (case,) = chen2012_data.cases().values()
    assert case.twin and case.total == case.dataset.records


def test_questions_noise_and_prior_are_what_the_spec_says():
    table = SMALL.load()
    past, new = (chen2012_data.random_queries("ranges", 50, 3, new) for new in (False, True))
    assert past != new and past == chen2012_data.random_queries("ranges", 50, 3)
    told = [chen2012_data.noisy_answers(table, past, 0, seed) for seed in (3, 3, 4)]
    assert (told[0].values == told[1].values).all() and (told[0].values != told[2].values).any()
    moved = workload_sensitivity(past, table.domain)
    assert moved < 50 and told[0].scales[0] == pytest.approx(moved, rel=1e-3)
    prior = chen2012_data.prior(table, 3)
    assert tuple(map(len, prior)) == table.domain.shape
    assert all(min(p) > 0 and sum(p) == pytest.approx(1) for p in prior)
    exact = chen2012_data.exact_answers(table, past)
    assert exact == pytest.approx(table.answer(past))
    assert metrics.rmse(exact + 3.0, exact) == pytest.approx(3.0)
    private = SimpleNamespace(truth_public=False)
    with pytest.raises(AssertionError):
        chen2012_data.exact_answers(private, past)


@pytest.mark.slow
def test_errors_over_alpha_run_from_the_prior_to_the_unbiased_answer(small, tmp_path):
    rows = chen2012_fig2.rows("quick", tmp_path)
    assert len(rows) == 2 * 2 * 4 * 2 * len(ALPHAS) and rows.truth_public.all()
    assert rows[~rows.case.str.endswith("5000)")].epsilon.eq(1.0).all()
    printed = rows[rows.case.str.endswith("5000)")]
    assert np.allclose(printed.deviation, 5000 * np.sqrt(2), rtol=1e-3)
    past = rows[(rows.case == small.name) & (rows.panel == "b") & (rows.alpha == LARGE)]
    assert past.value.mean() == pytest.approx(past.deviation.mean(), rel=0.4), "unbiased"


@pytest.mark.slow
def test_figure_3_has_the_true_curve_of_figure_2c(small, tmp_path):
    two, three = (spec.rows("quick", tmp_path) for spec in (chen2012_fig2, chen2012_fig3))
    keys = ["seed", "series", "alpha"]
    there = two[(two.case == small.name) & (two.panel == "c")].set_index(keys).value
    here = three[(three.panel == small.name) & three.series.isin([WITH, WITHOUT])]
    assert np.allclose(here.set_index(keys).value[there.index], there, rtol=1e-6)
    assert len(chen2012_fig3.compare_with_paper(three)) == 4


def test_merged_and_narrowed_people_are_the_same_people():
    table = SMALL.load()
    part = chen2012_fig5.fewer_attributes(table, 2)
    assert part.domain.shape == (79, 51) and part.total == table.total
    coarse = chen2012_fig5.fewer_codes(table, 8)
    assert coarse.domain.attributes == table.domain.attributes
    assert min(coarse.domain.shape) >= 2 and coarse.domain.shape[0] == 10
    assert coarse.total == table.total
    ages = table.domain.column(table.keys, "Age") // 8
    again = coarse.domain.column(coarse.keys, "Age")
    counted = [np.bincount(k, t.counts, 10) for k, t in ((ages, table), (again, coarse))]
    assert (counted[0] == counted[1]).all()
    same = chen2012_fig5.fewer_codes(table, 1)
    assert same.domain.shape == table.domain.shape and (same.keys == table.keys).all()


@pytest.mark.slow
def test_times_are_of_all_three_and_name_their_machine(monkeypatch):
    monkeypatch.setitem(chen2012_fig5.STEPS, "quick", 2)
    monkeypatch.setattr(chen2012_fig5, "CHAINS", 64)
    told = pd.DataFrame(chen2012_fig5.timing_rows(SMALL.load(), 20, "merged", 1e5, "quick"))
    assert set(told.series) == {
        chen2012_fig5.KERNEL,
        chen2012_fig5.ENTROPY,
        chen2012_fig5.BUYING,
    }
    assert (told.value > 0).all() and told.machine.str.len().gt(3).all()
    assert told.universe.eq(1e5).all() and told.truth_public.all()


@pytest.mark.slow
def test_a_bank_makes_answers_cheaper(monkeypatch, tmp_path):
    monkeypatch.setattr(answer_bank, "DATA", SMALL)
    monkeypatch.setattr(answer_bank, "TOTAL", 3000)
    monkeypatch.setattr(answer_bank, "ERRORS", np.array([50.0, 300.0]))
    rows = answer_bank.rows("quick", tmp_path)
    assert all(c.judge(rows, "quick").outcome == HOLDS for c in answer_bank.CLAIMS)


def test_a_refusal_is_told_and_its_absence_is_an_error():
    def no():
        raise ValueError("too much")

    assert answer_bank.refusal(no) == "ValueError: too much"
    with pytest.raises(AssertionError, match="nothing was refused"):
        answer_bank.refusal(dict)
