"""The panel of Hay et al.: its numbers are those of the release, of its noise, and of closed forms."""

import numpy as np
import pandas as pd
import pytest

from workbench import DP, RandomRanges, inference, noise
from workbench.figures import plots
from workbench.inference.consistency import tree_sums
from workbench.mechanisms import HierarchicalHistogram, LaplaceHistogram, UnattributedHistogram
from workbench.noise import Aligned
from workbench.widgets.scenes.consistency import (
    DATA,
    ESTIMATORS,
    LEAVES,
    NODES,
    PLAIN,
    TREE,
    Consistency,
)
from workbench.widgets.view import Setting

SORTED = {"task": "sorted counts"}
DOMAIN = DATA["NetTrace twin"].domain


def drawn(seed=0, exact=False, **told):
    shown = Consistency()
    values = {c.name: c.value for c in shown.controls} | told
    seen, release = Setting.of(shown, values).draw(seed, exact)
    return shown, values, seen, release


def line(rows, panel, series, x):
    some = rows[(rows.panel == panel) & (rows.series == series)]
    return some.set_index(x).value.astype(float)


def noisy_tree(epsilon=0.1, k=2, law="laplace", seed=0, data="NetTrace twin"):
    """H̃ and the noise in it."""
    table = DATA[data].load()
    made = HierarchicalHistogram(DP(epsilon), k, consistent=False, noise=law)
    values = made(table, Aligned(seed)).estimate.values
    return values, values - tree_sums(table.dense(), k)


@pytest.mark.parametrize("seed, k", [(0, 2), (3, 4)])
def test_errors_and_counts_are_those_of_one_vector_of_noise(seed, k):
    truth = DATA["NetTrace twin"].load().dense()
    m, (tree, tree_noise) = len(truth), noisy_tree(k=k, seed=seed)
    made = LaplaceHistogram(DP(0.1))
    flat = made(DATA["NetTrace twin"].load(), Aligned(seed)).estimate.values
    _, _, seen, release = drawn(seed, branching=k, nonnegative=False, size=100)
    leaves = inference.tree_least_squares(tree, k)[-m:]
    np.testing.assert_array_equal(release.estimate.values, leaves)
    cells = {"truth": truth, LEAVES: flat, f"{PLAIN}, released": leaves}
    start = truth.argmax() - 32
    for name, values in cells.items():
        parts = line(seen.rows, "whole", name, "cell")
        np.testing.assert_allclose(parts, values.reshape(64, -1).sum(axis=1), atol=1e-6)
        np.testing.assert_allclose(
            line(seen.rows, "near", name, "cell"), values[start : start + 64]
        )
        if name == "truth":
            continue
        off = np.concatenate([[0], np.cumsum(values - truth)])
        for size, error in line(seen.rows, "error", name, "query_size").items():
            asked = RandomRanges(int(size), 100).on(DOMAIN)
            squares = (off[asked.hi] - off[asked.lo]) ** 2
            assert error == pytest.approx(squares.mean(), rel=1e-6)
    errors = line(seen.rows, "error", TREE, "query_size")
    leaf = RandomRanges(1, 100).on(DOMAIN).lo
    assert errors[1] == pytest.approx((tree_noise[-m:][leaf] ** 2).mean())
    assert 100 in errors  # the size that was asked for


@pytest.mark.parametrize(
    "told, series, made",
    [
        ({}, NODES, HierarchicalHistogram(DP(0.1))),
        (
            {"consistent": False, "nonnegative": False},
            TREE,
            HierarchicalHistogram(DP(0.1), consistent=False),
        ),
        (
            {"optimal": True, "noise": "geometric"},
            NODES,
            HierarchicalHistogram(DP(0.1), "optimal", noise="geometric"),
        ),
        (SORTED, "S̄, isotonic", UnattributedHistogram(DP(0.1))),
        (
            SORTED | {"estimator": "noisy"},
            "S̃, noisy",
            UnattributedHistogram(DP(0.1), "noisy"),
        ),
    ],
)
def test_the_series_called_released_is_that_of_the_code(told, series, made):
    shown, values, seen, release = drawn(2, **told)
    assert release.mechanism == made
    named = {s for s in seen.rows.series if s.endswith(", released")}
    assert named == {f"{series}, released"}
    scope = {}
    exec(Setting.of(shown, values).code(2), scope)
    np.testing.assert_array_equal(scope["release"].estimate.values, release.estimate.values)


def test_sorted_counts_are_measured_from_the_largest_down():
    table = DATA["keywords twin"].load()
    truth, rng = table.ranked().dense(), Aligned(1)
    noisy = UnattributedHistogram(DP(0.1), "noisy")(table, rng).estimate.values
    kinds = {
        "S̃, noisy": noisy,
        "S̃ᵣ, sorted": inference.round_to_counts(np.sort(noisy)),
        "S̄, isotonic, released": inference.isotonic(noisy),
    }
    _, _, seen, _ = drawn(1, data="keywords twin", **SORTED)
    for name, values in kinds.items():
        squares = ((values - truth) ** 2)[::-1]
        errors = line(seen.rows, "error", name, "position")
        ends = [*errors.index[1:], len(truth) + 1]
        for p, end, error in zip(errors.index, ends, errors, strict=True):
            assert error == pytest.approx(squares[int(p) - 1 : int(end) - 1].mean())
        assert errors.index[-1] == 2**14  # and it reaches down to the smallest
        words = dict(seen.facts)[f"{name.removesuffix(', released')}, mean of 20,000"]
        assert f"{squares.mean():.3g}" in words
    for panel in ("whole", "near"):
        shown = line(seen.rows, panel, "S̄, isotonic, released", "position")
        at = len(truth) - shown.index.to_numpy(int)
        np.testing.assert_allclose(shown, kinds["S̄, isotonic, released"][at])
        np.testing.assert_allclose(line(seen.rows, panel, "truth", "position"), truth[at])


@pytest.mark.slow
@pytest.mark.parametrize("law, k", [("geometric", 2), ("laplace", 8)])
def test_closed_forms_are_met_on_average(law, k):
    """Seeded: never by chance; sees an error that is off by 4.5 standard errors."""
    told = dict(data="Search Logs twin", nonnegative=False, branching=k, noise=law)
    draws = [drawn(seed, epsilon=0.5, **told)[2].rows for seed in range(40)]
    names = {LEAVES: LEAVES, TREE: TREE, PLAIN: f"{PLAIN}, released"}
    for name, series in names.items():
        found = pd.concat([line(r, "error", series, "query_size") for r in draws], axis=1)
        wanted = line(draws[0], "expected", name, "query_size")
        off = (found.mean(axis=1) - wanted) / (found.std(axis=1) / np.sqrt(len(draws)))
        assert (abs(off) < 4.5).all(), (name, off.abs().max())
        assert wanted[1] == pytest.approx(found.loc[1].mean(), rel=0.1)


def test_closed_forms_are_drawn_where_there_are_any():
    def drawn_laws(**told):
        shown, values, seen, _ = drawn(**told)
        (first, *rest) = Setting.of(shown, values).panels(seen.rows.assign(seed=0))
        assert not any(panel.theory for panel in rest)
        return {name: law for name, law in first.theory}, first.mark, dict(seen.facts)

    laws, mark, facts = drawn_laws(size=100)
    assert mark == 100 and "complete" in facts["tree"] and "not" not in facts["tree"]
    x = np.array([1.0, 100.0])
    flat = noise.variance(1, 0.1, "laplace")
    np.testing.assert_allclose(laws[f"{LEAVES}, expected"](x), flat * x)
    of = HierarchicalHistogram(DP(0.1))
    exact = [of.variance(DOMAIN, RandomRanges(int(s), 100), 1).mean() for s in x]
    np.testing.assert_allclose(laws[f"{PLAIN}, expected"](x), exact)
    node = noise.variance(17, 0.1, "laplace")
    np.testing.assert_allclose(laws[f"{TREE}, expected"](1), node)
    assert "expected if not zeroed" in facts[f"{NODES}, 100 cells"]

    laws, _, facts = drawn_laws(branching=3)
    assert (
        set(laws) == {f"{LEAVES}, expected", f"{TREE}, expected"}
        and "not complete" in facts["tree"]
    )
    assert "expected" not in facts[f"{NODES}, 64 cells"]

    laws, mark, _ = drawn_laws(
        data="Social Network twin", **SORTED
    )  # an edge moves two degrees
    np.testing.assert_allclose(laws["S̃, noisy, expected"](x), noise.variance(2, 0.1, "laplace"))
    assert mark is None


def test_switches_and_the_range_size_keep_the_noise():
    _, _, first, _ = drawn()
    for told in ({"consistent": False}, {"nonnegative": False}, {"size": 1024}):
        _, _, other, _ = drawn(**told)
        for name in (LEAVES, TREE):
            a, b = (
                line(s.rows.replace(f"{TREE}, released", TREE), "error", name, "query_size")
                for s in (first, other)
            )
            pd.testing.assert_series_equal(a, b)
    _, _, seen, _ = drawn(**SORTED)
    _, _, other, _ = drawn(estimator="sorted", **SORTED)
    for name in ESTIMATORS.values():
        kept = [
            line(
                s.rows.assign(series=s.rows.series.str.removesuffix(", released")),
                "error",
                name,
                "position",
            )
            for s in (seen, other)
        ]
        pd.testing.assert_series_equal(*kept)


def test_epsilon_scales_the_noise_as_the_panel_says():
    """Seeded: never by chance; sees a scale that is off by 2 %."""
    for law, pair in (("laplace", (0.02, 0.1, 1.0)), ("geometric", (0.08, 0.1, 1.0))):
        tree = [noisy_tree(epsilon, law=law)[1] for epsilon in pair]
        assert np.corrcoef(tree)[0, 1:].min() > 0.998
    tree = [noisy_tree(epsilon)[1] for epsilon in (0.08, 0.1)]
    assert tree[0].std() / tree[1].std() == pytest.approx(1.25, rel=0.02)
    table = DATA["NetTrace twin"].load()
    truth, found = table.dense(), []
    for epsilon in (0.01, 0.1, 0.5):
        made = LaplaceHistogram(DP(epsilon))
        found.append(made(table, Aligned(0)).estimate.values - truth)
    assert np.corrcoef(found)[0, 1:].min() > 0.99
    wide = [noisy_tree(e, law="geometric")[1] for e in (0.06, 0.08)]  # drawn another way
    assert abs(np.corrcoef(wide)[0, 1]) < 0.02


def test_where_there_is_no_noise_there_is_nothing_to_expect():
    _, values, seen, _ = drawn(epsilon=1000.0, noise="geometric")  # noise that is never seen
    assert (line(seen.rows, "error", LEAVES, "query_size") == 0).all()
    (first, *_) = Setting.of(Consistency(), values).panels(seen.rows.assign(seed=0))
    assert f"{LEAVES}, expected" not in dict(first.theory)


def test_a_legend_says_in_words_what_a_tilde_means_and_keeps_its_look():
    for name in (LEAVES, TREE, PLAIN, NODES, *ESTIMATORS.values()):
        sign, *words = name.split(", ")
        assert (
            words
            and plots.series_styles([f"{name}, released"])[f"{name}, released"][:2]
            == plots.SERIES_STYLES[sign]
        )
