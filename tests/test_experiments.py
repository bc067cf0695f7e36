"""Specs: what each exposes, and that a claim's check tells a world where it is true from others."""

import csv
import inspect
import re
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from experiments import (
    cormode2012_fig2,
    cormode2012_fig3,
    cormode2012_fig6a,
    cormode2012_table1,
    verdicts,
)
from workbench import claims, figures
from workbench.claims import DIFFERS, HOLDS, OUTCOMES, UNDECIDED, UNTESTABLE

HERE = Path(__file__).parents[1] / "experiments"
SPECS = [
    import_module(f"experiments.{path.stem}")
    for path in sorted(HERE.glob("*.py"))
    if path.stem != "__init__"
]
OURS = (
    "c-t1-o c-t1-c c-t1-a c-21 c-c2 c-2a-1 c-2a-2 c-2a-3 c-2a-4 c-2b-1 c-2b-2 c-2c-1 c-3a-1 c-3a-2 "
    "c-3a-3 c-3c-1 c-3c-2 c-3d-1 c-6a-1 c-th"
).split()
each = pytest.mark.parametrize("spec", SPECS, ids=lambda s: s.__name__.split(".")[1])


@each
def test_a_spec_says_what_is_run_and_what_the_paper_says(spec):
    assert spec.TITLE and spec.PAGE and spec.__doc__ and hasattr(spec, "PAPER")
    assert list(inspect.signature(spec.rows).parameters)[:2] == ["profile", "store"]
    assert all(isinstance(claim, claims.Claim) for claim in spec.CLAIMS)
    assert all(claim.says.endswith(".") for claim in spec.CLAIMS)


def test_every_claim_is_judged_once():
    ids = [claim.id for spec in SPECS for claim in spec.CLAIMS]
    assert len(set(ids)) == len(ids)
    assert set(OURS) <= set(ids)


def rows(curves, along, seeds=6):
    """Fabricated rows: a dict of (panel, series, metric, …) to a function of each point of `along`."""
    made = []
    for (panel, series, metric), law in curves.items():
        for seed in range(seeds):
            for name, xs in along(panel).items():
                made += [
                    {
                        "panel": panel,
                        "series": series,
                        "metric": metric,
                        "seed": seed,
                        name: x,
                        "value": law(x) * (1 + 0.01 * (seed - (seeds - 1) / 2)),
                    }
                    for x in xs
                ]
    return pd.DataFrame(made)


ABSOLUTE, RELATIVE, SIGNED = "MeanAbsoluteError", "MedianRelativeError", "MeanSignedError"


def fig2():
    two = "filter"
    one = "one-sided filter"
    made = rows(
        {
            ("a", two, ABSOLUTE): lambda t: 500,
            ("a", one, ABSOLUTE): lambda t: 500 * (1 + 60 / t if t < 60 else 1),
            ("a", two, RELATIVE): lambda t: 0.01 + abs(t - 40) / 1000,
            ("a", one, RELATIVE): lambda t: 0.1,
            ("a", two, SIGNED): lambda t: 0,
            ("a", one, SIGNED): lambda t: 10 * t,
            ("a", two, "HeldCells"): lambda t: 0.97,
            ("a", one, "HeldCells"): lambda t: 0.97,
            ("b", "threshold", ABSOLUTE): lambda s: 1e8 / s,
            ("b", "priority", ABSOLUTE): lambda s: 1.1e8 / s,
            ("b", "threshold", RELATIVE): lambda s: 3e3 / s,
            ("b", "priority", RELATIVE): lambda s: 4e3 / s,
            ("c", "filter-priority, R = 5,000", ABSOLUTE): lambda t: 700 + 5 * abs(t - 45),
            ("c", "filter-priority, R = 5,000", RELATIVE): lambda t: 0.01,
            ("sides", "geometric", ABSOLUTE): lambda r: 11 * r**0.5,
            ("sides", one, ABSOLUTE): lambda r: 4 * r,
        },
        lambda panel: {
            "b": {"target": cormode2012_fig2.SIZES},
            "sides": {"query_size": cormode2012_fig2.SUBSETS},
        }.get(panel, {"theta": cormode2012_fig2.THETAS}),
    )
    weights = [
        rows(
            {("weights", "priority", m): law},
            lambda _: {"query_size": cormode2012_fig2.SUBSETS},
        ).assign(weights=kind)
        for kind, m, law in (
            ("raw", ABSOLUTE, lambda r: 6 * r),
            ("unbiased", ABSOLUTE, lambda r: 18 * r**0.5),
            ("raw", SIGNED, lambda r: -4 * r),
            ("unbiased", SIGNED, lambda r: 0),
        )
    ]
    tests = pd.DataFrame({"panel": "laws", "mechanism": "M", "statistic": "size"}, index=[0, 1])
    made = pd.concat([made, *weights, tests.assign(value=[0.5, 0.1])], ignore_index=True)
    made["sides"] = made.series.map({one: 1})
    made["released"] = 100_000 * 60 / made.theta
    made["query_size"] = made.query_size.mask(made.panel == "c", 5000)
    return made


def fig3():
    sizes = cormode2012_fig3.SUBSETS

    def noise(r):
        return 11 * r**0.5

    def filtered(r):
        return 0.5 * noise(r) + 0.04 * r

    world = {
        "geometric": noise,
        "filter, θ = 50": filtered,
        "priority": lambda r: 2.5 * noise(r),
        "filter-priority, θ = 40": lambda r: 1.1 * noise(r),
    }
    curves = {(p, series, ABSOLUTE): law for p in "ab" for series, law in world.items()}
    curves |= {(p, s, RELATIVE): lambda r: 0.05 * (100 / r) ** 0.5 for p in "ab" for s in world}
    curves |= {
        ("c", "geometric", ABSOLUTE): noise,
        ("c", "filter, θ = 50", ABSOLUTE): lambda r: 2.5 * noise(r) * (r / 1000) ** 0.5,
        ("c", "priority", ABSOLUTE): lambda r: 2.5 * noise(r),
        ("c", "filter-priority, θ = 20", ABSOLUTE): lambda r: 1.5 * noise(r),
        ("c", "filter-priority, θ = 20, s = 2·10⁵", ABSOLUTE): lambda r: 1.1 * noise(r),
        ("d", "geometric", ABSOLUTE): noise,
        ("d", "filter, θ = 50", ABSOLUTE): lambda r: 0.8 * noise(r),
        ("d", "filter, θ = 70", ABSOLUTE): lambda r: 0.9 * noise(r),
        ("d", "priority", ABSOLUTE): lambda r: 3 * noise(r),
        ("d", "filter-priority, θ = 50", ABSOLUTE): lambda r: 0.6 * noise(r),
    }
    return rows(curves, lambda p: {"query_size": sizes.get(p, [*sizes["a"], *sizes["b"]])})


def fig6a():
    far = {"geometric": (1, 1), "filter": (9, 9), "priority": (1.5, 0.8)}
    far["filter-priority"] = 1.5, 0.9
    panel = cormode2012_fig6a.JUDGED
    curves = {
        (panel, series, ABSOLUTE): lambda x, near=near, wide=wide: (
            1e6 * x**0.5 * (wide if x >= 0.2 else near)
        )
        for series, (near, wide) in far.items()
    }
    curves |= {(panel, series, RELATIVE): lambda x: 1e-4 / x**0.5 for series in far}
    return rows(curves, lambda _: {"share": cormode2012_fig6a.SHARES})


def table1():
    printed = {"Census Income (UCI), age/5": (0.03, 20), "Adult, seven attributes": (0.0014, 9)}
    printed["OnTheMap twin, 4001 places"] = 0.051, 150
    return pd.DataFrame(
        [
            {"name": name, "metric": metric, "value": value}
            for name, values in printed.items()
            for metric, value in zip(("density", "mean"), values, strict=True)
        ]
    )


WORLDS = {
    cormode2012_fig2: fig2,
    cormode2012_fig3: fig3,
    cormode2012_fig6a: fig6a,
    cormode2012_table1: table1,
}
BROKEN = {  # claim: what makes it false, as (panel, series, metric, factor, added)
    "c-2a-1": ("a", "one-sided filter", ABSOLUTE, 0.4, 0),
    "c-2a-2": ("a", "filter", RELATIVE, 2, 0),
    "c-2a-3": ("a", "filter", ABSOLUTE, 2, 0),
    "c-2a-4": ("a", "one-sided filter", SIGNED, -1, 0),
    "c-2b-1": ("b", "threshold", ABSOLUTE, 2, 0),
    "c-2b-2": ("b", "priority", RELATIVE, 10, 0),
    "c-2c-1": ("c", "filter-priority, R = 5,000", RELATIVE, 10, 0),
    "c-21": ("sides", "one-sided filter", ABSOLUTE, 9, 0),
    "c-c2": ("weights", "priority", SIGNED, 1, 50),
    "c-th": ("laws", None, None, 1e-6, 0),
    "c-3a-1": ("a", "geometric", RELATIVE, 2, 0),
    "c-3a-2": ("a", "filter, θ = 50", ABSOLUTE, 10, 0),
    "c-3a-3": ("b", "filter-priority, θ = 40", ABSOLUTE, 2, 0),
    "c-3c-1": ("c", "filter-priority, θ = 20", ABSOLUTE, 5, 0),
    "c-3c-2": ("c", "filter-priority, θ = 20, s = 2·10⁵", ABSOLUTE, 2, 0),
    "c-3d-1": ("d", "filter-priority, θ = 50", ABSOLUTE, 3, 0),
    "c-6a-1": (cormode2012_fig6a.JUDGED, "filter", RELATIVE, 100, 0),
}
CHECKS = [
    (spec, claim)
    for spec in WORLDS
    for claim in spec.CLAIMS
    if not claim.id.startswith("c-t1-o")
]
checks = pytest.mark.parametrize("spec, claim", CHECKS, ids=[c.id for _, c in CHECKS])


@checks
def test_a_claim_holds_in_a_world_where_it_is_true(spec, claim):
    verdict = claim.judge(WORLDS[spec](), "quick")
    assert verdict.outcome == HOLDS, verdict.measured
    assert verdict.measured and not verdict.why


@checks
def test_a_claim_differs_in_a_world_where_it_is_false(spec, claim):
    world = WORLDS[spec]()
    if claim.id in BROKEN:
        panel, series, metric, factor, added = BROKEN[claim.id]
        there = world.panel == panel
        if series:
            there &= (world.series == series) & (world.metric == metric)
        assert there.any()
        world.loc[there, "value"] = world.value[there] * factor + added
    else:
        world["value"] *= 3
    verdict = claim.judge(world, "quick")
    assert verdict.outcome == DIFFERS, verdict.measured


def test_what_is_not_at_hand_is_named_and_not_judged():
    there = table1()
    there = there[~there.name.str.startswith("Adult")]
    found = {v.id: v for v in claims.judge(cormode2012_table1.CLAIMS, there, "paper")}
    assert found["c-t1-a"].outcome == UNTESTABLE and "not at hand" in found["c-t1-a"].why
    assert found["c-t1-o"].outcome == UNTESTABLE and "47 states" in found["c-t1-o"].why
    assert found["c-t1-c"].outcome == HOLDS
    assert "Adult, seven attributes: not at hand" in cormode2012_table1.absent(there)


def test_tables_run_without_any_file(monkeypatch, tmp_path):
    from workbench.datasets import published

    monkeypatch.setattr(published, "raw", lambda: tmp_path)
    monkeypatch.setenv("WORKBENCH_DATA", str(tmp_path))
    found = cormode2012_table1.rows("quick", tmp_path)
    assert list(found.name.unique()) == ["OnTheMap twin, 4001 places"]
    assert len(cormode2012_table1.absent(found)) == len(cormode2012_table1.DATASETS) - 1


# --- the words of claims, as numbers


def line(values, spread=0.01, seeds=6):
    made = [
        (x, v * (1 + spread * (s - (seeds - 1) / 2))) for x, v in values for s in range(seeds)
    ]
    return claims.intervals(pd.DataFrame(made, columns=["x", "value"]), "x")


POINTS = [(x, 100.0) for x in range(8)]
TWICE = [(x, 200.0) for x in range(8)]


def test_better_needs_intervals_apart_at_three_quarters():
    low, high = line(POINTS), line(TWICE)
    assert claims.better(low, high).holds and claims.better(high, low).holds is False
    assert claims.better(low, high, times=3).holds is False
    assert claims.better(line(POINTS, 0.4), line(TWICE, 0.4)).holds is None
    some = line([(x, 100.0 if x < 6 else 300.0) for x in range(8)])
    assert claims.better(some, high).holds, "at six of eight"
    assert claims.better(some, high, share=1).holds is False
    with pytest.raises(ValueError, match="no point in common"):
        claims.better(low, line([(99, 1.0)]))


def test_alike_is_within_a_quarter_or_too_noisy_to_tell():
    assert claims.alike(line(POINTS), line([(x, 120.0) for x in range(8)])).holds
    assert claims.alike(line(POINTS), line(TWICE)).holds is False
    noisy = claims.alike(line(POINTS, 0.5), line(TWICE, 0.5))
    assert noisy.holds is None and noisy.leans


def test_a_check_that_seeds_do_not_settle_is_undecided_only_when_they_are_few():
    for leans, outcome in ((False, DIFFERS), (True, HOLDS)):
        found = claims.Finding(None, "", leans=leans)
        claim = claims.Claim("x", "It is.", lambda rows, found=found: found)
        assert claim.judge(pd.DataFrame(), "quick").outcome == UNDECIDED
        assert claim.judge(pd.DataFrame(), "paper").outcome == outcome


def test_parts_are_settled_together():
    yes, no = claims.Finding(True, "1"), claims.Finding(False, "2", "because")
    open_, leaning = claims.Finding(None, "3"), claims.Finding(None, "4", leans=True)
    assert claims.every({"a": yes, "b": yes}).holds
    assert claims.every({"a": yes, "b": no, "c": open_}).holds is False
    assert claims.every({"a": yes, "b": open_}).holds is None
    assert claims.every({"a": yes, "b": leaning}).leans
    assert not claims.every({"a": open_, "b": leaning}).leans
    told = claims.every({"a": yes, "b": no})
    assert told.measured == "a: yes (1); b: no (2)" and told.why == "because"


def test_falling_allows_noise_and_no_rise():
    assert claims.falls(line([(1, 9.0), (2, 5.0), (3, 5.2), (4, 1.0)])).holds
    assert claims.falls(line([(1, 9.0), (2, 1.0), (3, 5.0)])).holds is False
    assert claims.falls(line([(1, 5.0), (2, 5.0)])).holds is False


def test_a_printed_number_has_a_reading_error():
    about = claims.Printed.about("around 1 %", 0.01, 0.005)
    assert about.covers(0.0145) and not about.covers(0.016) and not about.covers(0.0049)
    assert claims.agrees(about, line([(1, 0.01)]), percent=True).measured == "1 %"
    assert claims.agrees(about, line([(1, 0.01), (2, 0.05)])).holds is False
    assert claims.agrees(about, line([(1, 0.016)], spread=0.1)).holds is None


# --- what is committed


def test_verdicts_are_collected_from_finished_figures(tmp_path):
    judged = [claims.Verdict("c-1", "A.", HOLDS, "1×"), claims.Verdict("c-0", "B.", DIFFERS)]
    spec = SimpleNamespace(__name__="experiments.demo2020_fig1", TITLE="A figure")
    frame = pd.DataFrame({"dataset": ["Twin()"], "value": [1.0]})
    figures.save(None, frame, spec=spec, profile="paper", results=tmp_path, verdicts=judged)
    path = verdicts.write("demo2020", tmp_path, into=tmp_path)
    found = pd.read_csv(path, keep_default_na=False)
    assert list(found.id) == ["c-0", "c-1"] and list(found) == verdicts.COLUMNS
    assert set(found.datasets) == {"Twin()"} and set(found.profile) == {"paper"}
    with pytest.raises(FileNotFoundError, match="reproduce --profile paper"):
        verdicts.collect("other2020", tmp_path)


@pytest.mark.parametrize(
    "path", sorted((HERE / "verdicts").glob("*.csv")), ids=lambda p: p.stem
)
def test_committed_verdicts_are_of_a_paper_run(path):
    ids = {claim.id for spec in SPECS for claim in spec.CLAIMS}
    with open(path, newline="", encoding="utf-8") as file:
        told = list(csv.DictReader(file))
    assert {row["id"] for row in told} <= ids
    assert [row["id"] for row in told] == sorted(row["id"] for row in told)
    for row in told:
        assert row["profile"] == "paper" and row["outcome"] in OUTCOMES
        assert row["outcome"] != UNDECIDED and row["measured"] + row["why"]
        assert re.fullmatch(rf"{path.stem}_\w+", row["figure"]) and row["datasets"]
