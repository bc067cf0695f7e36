"""Specs of Chen et al., Figures 4, 6 and 7: each check tells a world where its claim is true."""

from itertools import combinations

import numpy as np
import pytest

from experiments.chen2012 import fig4 as chen2012_fig4
from experiments.chen2012 import fig6 as chen2012_fig6
from experiments.chen2012 import fig7 as chen2012_fig7
from tests.figures.worlds import differs, holds, spread
from workbench import DP, Bound, Domain, Marginals, SparseTable, plots
from workbench.mechanisms import LaplaceQueries, RetentionReplacement

SEEDS = 6


def fig4():
    told = []
    for sweep, values in chen2012_fig4.SWEEPS["paper"].items():
        for x in values:
            point = vars(chen2012_fig4.Point()) | {sweep: x}
            for kind in (chen2012_fig4.PAST, chen2012_fig4.FRESH):
                for series, value in (
                    ("maximum entropy, no prior", 300.0),
                    ("kernel PCA, no prior", 900.0),
                    ("maximum entropy, with prior", 200.0),
                    ("kernel PCA, with prior", 230.0),
                ):
                    one = {"panel": sweep, "kind": kind, "series": series, "value": value}
                    told.append(point | one | {"deviation": 1000.0})
    return spread(told, SEEDS).assign(metric="RMSE")


def fig6():
    told, sizes = [], {"A": 2, "B": 7, "C": 50, "D": 60}
    for k in (2, 3):
        for names in combinations(sizes, k):
            cells = int(np.prod([sizes[n] for n in names]))
            for series, value in (
                (chen2012_fig6.ENTROPY, 0.01 * k),
                (chen2012_fig6.NOISY, 0.02),
                *((r, (1.5 if cells >= 500 else 0.1) * (k - 1)) for r in chen2012_fig6.RIVALS),
            ):
                if series != chen2012_fig6.NOISY or k == 2:
                    value = 1.5 if k == 3 and series in chen2012_fig6.RIVALS else value
                    about = {"case": "some", "k": k, "joint": ", ".join(names), "cells": cells}
                    about |= {"first": names[0], "others": ", ".join(names[1:])}
                    told.append(about | {"series": series, "value": value})
    return spread(told, SEEDS).assign(metric="JointError")


def fig7():
    return spread(
        (
            {"case": "some", "dims": k, "series": series, "value": value}
            for k in chen2012_fig7.DIMS
            for series, value in (
                (chen2012_fig6.ENTROPY, 900.0 / k),
                (chen2012_fig7.FLAT, 5000.0),
                *((rival, 3000.0 * 10**k) for rival in chen2012_fig6.RIVALS),
            )
        ),
        SEEDS,
    ).assign(metric="RMSE")


WORLDS = {chen2012_fig4: fig4, chen2012_fig6: fig6, chen2012_fig7: fig7}
BROKEN = [  # claim, which rows, by what factor
    ("n-4", {"series": "kernel PCA, no prior", "kind": "past"}, 0.1),
    ("n-4", {"series": "kernel PCA, with prior", "kind": "past"}, 3),
    ("n-4", {"series": "maximum entropy, with prior", "kind": "past"}, 3),
    ("n-6a", {"series": chen2012_fig6.RIVALS[0], "joint": "A, B"}, 0.01),
    ("n-6a", {"series": chen2012_fig6.RIVALS[1], "joint": "C, D"}, 0.1),
    ("n-6a", {"series": chen2012_fig6.RIVALS[1], "joint": "A, B"}, 5),
    ("n-6b", {"series": chen2012_fig6.RIVALS[0], "k": 3}, 0.3),
    ("n-6b", {"series": chen2012_fig6.ENTROPY, "k": 3}, 30),
    ("n-7", {"series": chen2012_fig6.ENTROPY, "dims": 1}, 100),
]
CLAIMS = {claim.id: (spec, claim) for spec in WORLDS for claim in spec.CLAIMS}


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_holds_in_a_world_where_it_is_true(name):
    spec, claim = CLAIMS[name]
    holds(claim, WORLDS[spec]())


@pytest.mark.parametrize("name, where, factor", BROKEN)
def test_a_claim_differs_in_a_world_where_it_is_false(name, where, factor):
    spec, claim = CLAIMS[name]
    differs(claim, WORLDS[spec](), where, factor)


@pytest.mark.parametrize("spec", WORLDS)
def test_a_spec_tells_its_numbers_and_draws_all_its_panels(spec):
    rows = WORLDS[spec]()
    assert len(spec.compare_with_paper(rows))
    drawn = spec.drawn_rows(rows) if hasattr(spec, "drawn_rows") else rows
    fig = plots.grid(drawn, spec.panels(drawn), columns=2)
    assert all(ax.lines or ax.patches for ax in fig.axes)


def test_new_queries_are_told_and_not_judged():
    world = fig4()
    world.loc[world.kind == "new", "value"] *= np.where(
        world.series[world.kind == "new"].str.startswith("kernel"), 0.1, 1
    )
    assert "no" in set(chen2012_fig4.new_queries(world).holds)
    holds(CLAIMS["n-4"][1], world)


# --- what the specs compute themselves


def small():
    rng = np.random.default_rng(0)
    domain = Domain(("a", "b", "c"), (3, 2, 4))
    keys = domain.keys(np.stack([rng.integers(0, n, 5000) for n in domain.shape], axis=1))
    ones = np.ones(len(keys), np.int64)
    return SparseTable.from_keys(domain, keys, ones, Bound(1), truth_public=True)


def test_all_ways_to_a_joint_are_near_the_truth():
    table, rng = small(), np.random.default_rng(1)
    noisy = LaplaceQueries(DP(100.0), Marginals(2))(table, rng).estimate
    reports = RetentionReplacement(DP(30.0))(table, rng).estimate
    true = chen2012_fig6.table_shares(table)
    for axes in ((0, 1), (0, 2), (1, 2)):
        exact = true(axes)
        assert exact.sum() == pytest.approx(1)
        for joint in (
            chen2012_fig6.marginal_shares(noisy),
            chen2012_fig6.report_shares(reports),
        ):
            assert np.abs(joint(axes) - exact).sum() < 0.02
    assert chen2012_fig6.marginal_shares(noisy)((0, 1, 2)) is None


def test_triples_are_different_and_always_the_same():
    domain = Domain(tuple("abcdefghi"), (2,) * 9)
    some = chen2012_fig6.triples(domain)
    assert len(set(some)) == chen2012_fig6.TRIPLES and some == chen2012_fig6.triples(domain)


def test_alpha_is_the_one_that_foresees_best():
    table, rng = small(), np.random.default_rng(2)
    history = LaplaceQueries(DP(50.0), Marginals(1))(table, rng).estimate

    def fits(rest, alphas):
        return [lambda asked, a=a: table.answer(asked) + a for a in alphas]

    assert chen2012_fig4.choose_alpha(history, fits, [500.0, 0.0, 300.0]) == 0.0
    assert chen2012_fig4.choose_alpha(history, None, [7.0]) == 7.0
