"""Specs of Hay et al.: each check tells a world where its claim is true from others."""

import numpy as np
import pandas as pd
import pytest

from experiments.hay2010 import appE as hay2010_appE
from experiments.hay2010 import fig3 as hay2010_fig3
from experiments.hay2010 import fig5 as hay2010_fig5
from experiments.hay2010 import fig6 as hay2010_fig6
from experiments.hay2010 import fig7 as hay2010_fig7
from experiments.hay2010 import thm4 as hay2010_thm4
from tests.figures.worlds import differs, holds, spread
from workbench import DP, Bound, Domain, SparseTable, plots
from workbench.claims import DIFFERS
from workbench.estimates import Histogram
from workbench.inference import Zeroed
from workbench.mechanisms import HierarchicalHistogram

SEEDS = 6
TWINS = ("NetTrace twin", "Search Logs twin")


def fig3():
    told = [
        {"panel": "error", "series": series, "position": i, "value": value}
        for i in range(1, 26)
        for series, value in (("S̃", 2.0), ("S̄", 0.1 if i <= 20 else 2.0))
    ]
    told += [{"panel": "same", "series": "S̄", "position": 21, "value": 0.99}]
    told += [{"panel": "examples", "series": name, "value": 0.0} for name in hay2010_fig3.PAPER]
    return spread(told, SEEDS)


def fig5():
    told = []
    for name in ("Social Network twin", "surnames", "Social Network twin, as printed"):
        for epsilon in hay2010_fig5.EPSILONS:
            ours = 1000 / epsilon**1.7
            at_one = name.startswith("Social") and epsilon == 1
            for series, value in (
                ("S̃", 20_000 / epsilon**2),
                ("S̃ᵣ", ours * (1.1 if at_one else 3)),
                ("S̄", ours),
            ):
                told.append(
                    {"panel": name, "epsilon": epsilon, "series": series, "value": value}
                )
    for n in hay2010_fig5.LENGTHS:
        for series, value in (("S̃", 2.0 * n), ("S̄", np.log(n) ** 3)):
            told.append({"panel": "over n", "cells": n, "series": series, "value": value})
    for d in hay2010_fig5.VALUES:
        for series, value in (("S̃", 2.0**15), ("S̄", 10.0 * d)):
            told.append({"panel": "over d", "distinct": d, "series": series, "value": value})
    return spread(told, SEEDS).assign(metric="SquaredError")


def fig6():
    told = []
    for name in (*TWINS, "shop hours"):
        for epsilon in hay2010_fig6.EPSILONS:
            for size in hay2010_fig6.range_sizes(2**15):
                flat, tree = 2.0 * size, 4000 * (size / 2000) ** 0.15
                ours = min(0.3 * tree, 0.5 * flat)
                known = {"L̃": flat, "H̃": tree, "H̄": ours, "H̄ by nodes": ours}
                known |= {"H̄ not zeroed": 0.3 * tree}
                about = {"panel": name, "epsilon": epsilon, "query_size": size}
                told += [
                    about | {"series": s, "metric": "MeanSquaredError", "value": v / epsilon**2}
                    for s, v in known.items()
                ]
                value = flat / epsilon**2
                told.append(about | {"series": "L̃", "metric": "theory", "value": value})
    return spread(told, SEEDS)


def fig7():
    told, position = [], 0
    for count, length in ((9, 1), (8, 1), (7, 2), (2, 100), (1, 400)):
        for i in range(length):
            position += 1
            near = min(i, length - 1 - i) < 2
            value = 0.3 if near and length > 9 else 2.0 if near else 0.004
            about = {"panel": "all", "position": position}
            told.append(
                about | {"metric": "Count", "series": "truth", "value": count, "seed": 0}
            )
            told += [
                about | {"metric": "SquaredError", "series": "S̄", "value": value, "seed": seed}
                for seed in range(5)
            ]
    return pd.DataFrame(told)


def thm4():
    told = []
    for k, heights in hay2010_thm4.TREES.items():
        for levels in heights:
            about = {"panel": k, "k": k, "levels": levels}
            value = 1.2 * hay2010_thm4.factor(k, levels)
            ratio = about | {"metric": "VarianceRatio"}
            told.append(ratio | {"series": "exact", "seed": 0, "value": value})
            for seed in range(SEEDS):
                off = seed - (SEEDS - 1) / 2
                one = {"series": "measured", "seed": seed, "value": value * (1 + 0.01 * off)}
                told.append(ratio | one)
                told.append(
                    about | {"metric": "bias", "series": "H̄", "seed": seed, "value": off}
                )
    told += [{"panel": "rivals", "k": 2, "levels": 4, "series": "H̃", "seed": 0, "value": 1.1}]
    return pd.DataFrame(told)


def appendix_e():
    told = []
    for n in hay2010_appE.RECORDS:
        for series in ("H̃", "H̄ not zeroed", *hay2010_appE.OTHERS):
            value = 200.0 if series.startswith("H") else 3.0 * n**0.67
            about = {"records": n, "series": series}
            told.append(about | {"panel": "worst", "value": value})
            told.append(about | {"panel": "useful", "value": value / n})
    return spread(told, SEEDS)


WORLDS = {
    hay2010_fig3: fig3,
    hay2010_fig5: fig5,
    hay2010_fig6: fig6,
    hay2010_fig7: fig7,
    hay2010_thm4: thm4,
    hay2010_appE: appendix_e,
}
BROKEN = [  # claim, which rows, by what factor
    ("h-3", {"panel": "error", "series": "S̄"}, 15),
    ("h-3", {"panel": "same"}, 0.9),
    ("h-5-1", {"panel": "surnames", "series": "S̃"}, 0.4),
    ("h-5-2", {"panel": "surnames", "series": "S̃ᵣ"}, 0.2),
    ("h-5-2", {"panel": "Social Network twin", "series": "S̃ᵣ", "epsilon": 1.0}, 3),
    ("h-5-3", {"panel": "surnames", "series": "S̄", "epsilon": 0.01}, 30),
    ("h-th2", {"panel": "over n", "series": "S̄", "cells": 2**16}, 9),
    ("h-th2", {"panel": "over d", "series": "S̄", "distinct": 2**12}, 0.1),
    ("h-6-1", {"panel": TWINS[0], "series": "H̃"}, 3),
    ("h-6-1", {"panel": TWINS[1], "series": "L̃", "query_size": 1}, 5000),
    ("h-6-2", {"panel": TWINS[1], "series": "H̄", "query_size": 2**14}, 9),
    ("h-6-3", {"panel": TWINS[0], "series": "H̄", "query_size": 16}, 3),
    ("h-6-4", {"panel": TWINS[0], "series": "H̄", "query_size": 2**12}, 3),
    ("h-6-5", {"panel": TWINS[0], "series": "L̃", "metric": "MeanSquaredError"}, 2),
    ("h-6-5", {"panel": TWINS[0], "series": "H̄ not zeroed"}, 100),
    ("h-6-5", {"panel": TWINS[0], "series": "H̄ not zeroed", "epsilon": 0.01}, 2),
    ("h-7", {"metric": "SquaredError", "value": 0.004}, 20),
    ("h-7", {"metric": "SquaredError", "value": 0.3}, 0.05),
    ("h-7", {"metric": "SquaredError", "value": 2.0}, 0.2),
    ("h-th4", {"panel": "rivals"}, 0.9),
    ("h-th4", {"series": "exact"}, 0.8),
    ("h-th4", {"series": "measured", "panel": 4}, 0.8),
    ("h-e", {"series": "H̃", "records": 10**8}, 2),
    ("h-e", {"series": "H̃"}, 1e4),
    ("h-e", {"series": "equi-depth", "records": 10**8}, 1e-6),
]
CLAIMS = {claim.id: (spec, claim) for spec in WORLDS for claim in spec.CLAIMS}
SILENT = {"h-ex"}  # examples: there is nothing to scale


@pytest.mark.slow
@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_holds_in_a_world_where_it_is_true(name):
    spec, claim = CLAIMS[name]
    holds(claim, WORLDS[spec]())


@pytest.mark.slow
@pytest.mark.parametrize("name, where, factor", BROKEN)
def test_a_claim_differs_in_a_world_where_it_is_false(name, where, factor):
    spec, claim = CLAIMS[name]
    differs(claim, WORLDS[spec](), where, factor)


def test_an_example_that_is_not_as_printed_differs():
    world = fig3()
    world.loc[world.series == "Example 4", "value"] = 1.0
    assert CLAIMS["h-ex"][1].judge(world, "quick").outcome == DIFFERS
    assert {name for name, *_ in BROKEN} | SILENT == set(CLAIMS)


def test_a_biased_tree_differs():
    world = thm4()
    world.loc[world.metric == "bias", "value"] += 10
    found = CLAIMS["h-th4"][1].judge(world, "quick")
    assert found.outcome == DIFFERS and "unbiased: no" in found.measured


@pytest.mark.parametrize("spec", WORLDS)
def test_a_spec_tells_its_numbers_beside_the_papers(spec):
    if spec is hay2010_fig3:
        assert len(spec.compare_with_paper(fig3())) == len(spec.PAPER)
    else:
        assert len(spec.compare_with_paper(WORLDS[spec]()))


# --- what the specs compute themselves


def test_data_that_is_not_at_hand_has_a_twin(monkeypatch, tmp_path):
    from workbench.datasets import published

    monkeypatch.setattr(published, "raw", lambda: tmp_path)
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    assert list(hay2010_fig6.datasets()) == list(TWINS)
    assert list(hay2010_fig5.datasets()) == [
        "Social Network twin",
        "NetTrace twin",
        "keywords twin",
    ]
    (tmp_path / "hay2010").mkdir()
    for name in ("nettrace.txt", "social_network.txt"):
        (tmp_path / "hay2010" / name).write_text("1\n")
    assert list(hay2010_fig6.datasets()) == ["NetTrace", "Search Logs twin"]
    assert list(hay2010_fig5.datasets())[:2] == ["Social Network", "NetTrace"]


def test_laws_of_ranges_are_what_mechanisms_do():
    data = hay2010_fig6.SearchLogsTwin()
    asked = [hay2010_fig6.RandomRanges(n, 50) for n in (1, 64)]
    told = (
        hay2010_fig6.expected_errors(data, asked, 0.5).set_index(["series", "query_size"]).value
    )
    assert told["L̃", 64] == pytest.approx(2 * 64 / 0.25, rel=1e-5)
    assert told["H̃", 1] == pytest.approx(2 * (16 / 0.5) ** 2, rel=1e-5)
    assert 2 * told["H̃", 1] < told["H̃", 64] < 12 * told["H̃", 1]
    assert told["H̄ not zeroed", 1] < told["H̃", 1]


def test_zeroed_nodes_answer_ranges_that_zeroed_leaves_do_not():
    table = SparseTable.from_keys(Domain(("x",), (256,)), [7], [40], Bound(1))
    rng = np.random.default_rng(0)
    noisy = HierarchicalHistogram(DP(1.0), consistent=False)(table, rng).estimate
    held = Zeroed()(noisy)
    made = HierarchicalHistogram(DP(1.0), ranges="leaves")
    leaves = made(table, np.random.default_rng(0)).estimate
    assert (held.values[-256:] == leaves.values).all(), "the same tree"
    whole = hay2010_fig6.RandomRanges(256, 1).on(table.domain)
    nodes, summed = held.answer(whole)[0], leaves.answer(whole)[0]
    assert nodes == pytest.approx(held.values[0]) and summed > nodes > 0
    assert held.variance is None and repr(Zeroed()) == "Zeroed()"


def test_weights_of_covers_answer_as_the_tree_does():
    k, m = 3, 27
    table = hay2010_thm4.poisson_table(m)
    rng = np.random.default_rng(1)
    noisy = HierarchicalHistogram(DP(1.0), k, consistent=False)(table, rng).estimate
    for lo, hi in ((0, 27), (1, 26), (5, 6), (3, 9), (8, 22)):
        asked = hay2010_thm4.Ranges([lo], [hi])
        weights = hay2010_thm4._cover(k, m, lo, hi)
        assert noisy.answer(asked)[0] == pytest.approx(weights @ noisy.values)


def test_equi_depth_is_the_procedure_of_its_reference():
    from tests.reference import equi_depth

    table, depth, n = hay2010_appE.wave_table(10**6), 10**6 / 8, hay2010_appE.CELLS

    def ours(noise, quantiles=False):
        return hay2010_appE.equi_depth(table, 8, noise, quantiles)

    class Quiet:
        def laplace(self, location, scale):
            return 0.0

    ends = equi_depth.release(table.dense().tolist(), depth, 8, 1.0, Quiet())
    found = ours(np.random.default_rng(0))
    assert len(np.unique(found)) <= len(ends) - 1
    exact = [equi_depth.answer(ends, depth, i, i + 1) for i in range(n)]
    sums = np.abs(np.cumsum(found) - np.cumsum(exact))
    assert sums.max() < 0.02 * 10**6, "noise of 80 on buckets of 125,000"
    quantiles = np.cumsum(ours(np.random.default_rng(0), True)) - np.cumsum(table.dense())
    assert np.abs(quantiles).max() < 0.1 * 10**6


def test_the_worst_error_is_over_all_ranges():
    errors = np.random.default_rng(0).normal(size=30)
    slow = max(abs(errors[a:b].sum()) for a in range(30) for b in range(a + 1, 31))
    assert hay2010_appE._worst(errors) == pytest.approx(slow)


def test_made_sequences_have_their_distinct_counts():
    found = hay2010_fig5.sequence_errors(256, 16, 0)
    assert list(found.series) == ["S̃", "S̄"]
    noisy, inferred = found.value
    assert inferred < noisy and noisy == pytest.approx(2 * 256, rel=0.5)


def test_two_laws_can_lie_under_one_panel():
    panel = plots.Panel(
        "two",
        {"panel": TWINS[0], "epsilon": 1.0, "metric": "MeanSquaredError"},
        "query_size",
        theory=[("theory", lambda x: x), ("theory", lambda x: 2 * x)],
    )
    fig = plots.grid(fig6(), [panel], 1)
    dashed = [line for line in fig.axes[0].lines if line.get_label() == "theory"]
    assert len(dashed) == 2


def test_a_sequence_of_cells_is_compared_with_its_own_domain():
    from workbench.metrics import MeanSquaredError, SquaredError

    domain = Domain(("x",), (4,))
    truth = SparseTable.from_keys(domain, [0, 1], [10, 20], Bound(), truth_public=True)
    held = Histogram(domain, np.array([13.0, 16.0, 0.0, 5.0]))
    assert SquaredError()(truth, held) == 9 + 16 + 25
    assert MeanSquaredError(hay2010_fig6.RandomRanges(4, 1))(truth, held) == 16
    with pytest.raises(ValueError, match="over rank has no error against a truth over x"):
        SquaredError()(truth, Histogram(Domain(("rank",), (4,)), held.values))
    private = SparseTable.from_keys(domain, [0], [1], Bound())
    for metric in (SquaredError(), MeanSquaredError(hay2010_fig6.RandomRanges(4, 1))):
        with pytest.raises(ValueError, match="truth_public"):
            metric(private, held)
