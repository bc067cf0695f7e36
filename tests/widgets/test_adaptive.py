"""The panel of adaptive histograms: its maps, prefixes, errors and laws are those of the release."""

import matplotlib
import numpy as np
import pytest

matplotlib.use("Agg")

from tests.widgets.pages import released  # noqa: E402
from workbench import DP, widgets
from workbench.datasets import QueryLogTwin, Towns  # noqa: E402
from workbench.figures import plots  # noqa: E402
from workbench.mechanisms import (
    BasicAdaptiveHistogram,
    DirectSynthesis,
    ImprovedAdaptiveHistogram,
    PrivTree,
)
from workbench.noise import Aligned, laws
from workbench.noise.law import geometric_variance  # noqa: E402
from workbench.queries import Level  # noqa: E402
from workbench.trials.metrics import MeanSquaredError  # noqa: E402
from workbench.widgets.scenes.adaptive import (
    BASIC,
    DIRECT,
    IMPROVED,
    LEVELS,
    MAP,
    MAX_LEAVES,
    STRINGS,
    TREE,
    Adaptive,
    expected_box_errors,
)
from workbench.widgets.view import Setting  # noqa: E402

DEFAULTS = {c.name: c.value for c in Adaptive.controls}
SQUARE = 1024  # finest cells along a side of 64 km


def part(shown, panel, series=None):
    """The rows of one chart, without the sheet that they lie on."""
    rows = shown.rows[shown.rows.panel == panel]
    return rows[rows.series == series] if series else rows[1:]


def dense(leaves):
    """What a release says of every finest cell, leaf by leaf."""
    found, told = np.zeros((SQUARE, SQUARE)), leaves.nodes()
    corners = (told.iloc[:, :4].to_numpy() * SQUARE / 64).astype(int)
    for (x0, x1, y0, y1), n in zip(corners, told.noisy, strict=True):
        found[x0:x1, y0:y1] += n / ((x1 - x0) * (y1 - y0))
    return found


def counted(data):
    """The true counts of every finest cell."""
    found = np.zeros((SQUARE, SQUARE), int)
    np.add.at(found, tuple(data.hierarchy.corners(data.keys)), 1)
    return found


def boxes(cells, level):
    """Sums over the boxes of a level."""
    side, n = SQUARE >> level, 1 << level
    return cells.reshape(n, side, n, side).sum(axis=(1, 3))


@pytest.mark.parametrize("name", [IMPROVED, TREE])
def test_the_map_is_the_leaves_and_the_error_that_of_all_boxes(name):
    shown = widgets.adaptive(mechanism=name, seed=5)
    leaves, data = released(shown).estimate, Towns().load()
    told, drawn = leaves.nodes(), part(shown, "release")
    assert len(drawn) == len(leaves) <= MAX_LEAVES
    ends = told[["east_from", "north_from", "east_to", "north_to"]].to_numpy()
    assert (drawn[["x0", "y0", "x1", "y1"]].to_numpy() == ends).all()
    area = (ends[:, 2] - ends[:, 0]) * (ends[:, 3] - ends[:, 1])
    assert np.allclose(drawn.value * area, told.noisy)
    true, cells = part(shown, "truth"), np.zeros((64, 64))
    cells[true.x0.astype(int), true.y0.astype(int)] = true.value  # records per km², of 1 km²
    exact, found = counted(data), dense(leaves)
    assert (cells == boxes(exact, 6)).all() and (true.x1 - true.x0 == 1).all()
    errors = shown.rows[shown.rows.panel == "error"].set_index("side").value
    assert list(errors.index) == [64 / 2**level for level in LEVELS]
    for level in LEVELS:
        off = boxes(found, level) - boxes(exact, level)
        assert errors[64 / 2**level] == pytest.approx((off**2).mean(), rel=1e-9)


def test_what_is_too_small_to_draw_is_added_up_and_said():
    shown = widgets.adaptive(mechanism=DIRECT)
    leaves, drawn = released(shown).estimate, part(shown, "release")
    assert len(leaves) > MAX_LEAVES >= len(drawn)
    assert dict(shown.view["facts"])["drawn"].startswith(f"{len(drawn):,} boxes")
    found, coarse = np.zeros((64, 64)), boxes(dense(leaves), 6)
    for x0, y0, x1, y1, value in (
        drawn[["x0", "y0", "x1", "y1", "value"]].astype(int).to_numpy()
    ):
        found[x0:x1, y0:y1] = value
    whole = drawn.value % 1 == 0  # others are of larger leaves
    assert whole.mean() > 0.9 and np.abs(found - coarse).max() < 1
    assert (drawn.value * (drawn.x1 - drawn.x0) ** 2).sum() == pytest.approx(
        leaves.values.sum()
    )


@pytest.mark.slow
def test_noise_of_leaves_is_foreseen():
    """Seeded: never by chance; sees a squared error that is off by 8 %."""
    data, mechanism = Towns(20_000).load(), ImprovedAdaptiveHistogram(DP(1.0), threshold=40)
    off, law = {2: [], 3: []}, {2: [], 3: []}
    for seed in range(150):
        leaves = mechanism(data, Aligned(seed)).estimate
        for level in off:
            if (leaves.levels >= level).all():  # no box is blurred: noise is all there is
                off[level].append(MeanSquaredError(Level(level))(data, leaves))
                told = expected_box_errors(mechanism, leaves, 1, level)
                law[level].append(told["noise of the leaves, expected"])
    for level in off:
        assert len(off[level]) > 100
        assert np.mean(off[level]) == pytest.approx(np.mean(law[level]), rel=0.08)


def test_laws_are_those_of_the_budget():
    shown = widgets.adaptive(mechanism=DIRECT, depth=4, epsilon=0.6)
    *_, chart = shown.setting.panels(shown.rows)
    count, grid = (law for _, law in chart.theory)
    sides = np.array([64 / 2**level for level in LEVELS])
    assert np.allclose(grid(sides), geometric_variance(0.6))
    assert np.allclose(count(sides[:4]), geometric_variance(0.6 / 5))  # the total is bought too
    assert np.isnan(count(sides[4:])).all()
    dashed = [line["name"] for line in shown.view["charts"][2]["lines"] if "marker" not in line]
    assert dashed == ["noise of a count", "a grid of such boxes, expected"]


@pytest.mark.slow
def test_prefixes_and_strings_are_those_of_the_log():
    shown = widgets.adaptive(data=STRINGS, records=20_000, threshold=60)
    data, leaves = QueryLogTwin(20_000).load(), released(shown).estimate
    log, told = data.to_frame(), leaves.nodes().rename(columns={"noisy": "count"})
    for panel, frame in (("truth", log), ("release", told)):  # both in the order of keys
        drawn, ends = part(shown, panel), frame["count"].cumsum()
        for symbols in (1, 2):
            beginning = frame["query"].str[:symbols]
            some = frame["count"].groupby(beginning, sort=False).sum()
            last = ends.groupby(beginning, sort=False).last()
            wide = some[(some.index.str.len() == symbols) & (some * 400 > ends.iloc[-1])]
            here = drawn[drawn.y1 == symbols]
            assert here.value.tolist() == wide.tolist() and len(wide) > 10
            assert here.x1.tolist() == last[wide.index].tolist()
        assert np.allclose(drawn.x1 - drawn.x0, drawn.value)
        most = int(frame["count"].argmax())  # on which nothing stands
        middle = ends[most] - frame["count"][most] / 2
        there = drawn[(drawn.x0 < middle) & (middle < drawn.x1)]
        assert there.y1.tolist() == list(range(1, len(frame["query"][most]) + 1))
    top = np.argsort(-data.counts, kind="stable")[:40]
    assert part(shown, "top", "truth").value.tolist() == data.counts[top].tolist()
    whole = told[told.complete & (told["count"] > 0)].set_index("query")["count"]
    ours = [whole.get(text, np.nan) for text in log["query"].iloc[top]]
    assert np.array_equal(part(shown, "top", IMPROVED).value, ours, equal_nan=True)
    assert 2 < np.isfinite(ours).sum() < 40


@pytest.mark.parametrize("data", [MAP, STRINGS])
def test_every_mechanism_is_what_its_settings_say(data):
    v = DEFAULTS | dict(
        data=data, records=5000, epsilon=2.0, threshold=30, depth=5, measure=0.4
    )
    v |= dict(discount=90, own_discount=True)
    budget, split = DP(2.0), dict(threshold=30, measure=0.4)
    for name, mechanism in {
        IMPROVED: ImprovedAdaptiveHistogram(budget, discount=90, **split),
        BASIC: BasicAdaptiveHistogram(budget, depth=5, **split),
        DIRECT: DirectSynthesis(budget, 5, stop="count"),
        TREE: PrivTree(budget, **split),
    }.items():
        settings = v | dict(mechanism=name, stop="count")
        assert Adaptive().setup(settings).mechanism == mechanism
        seen, release = Setting.of(Adaptive(), settings).draw(0, False)
        assert {"truth", "release"} < set(seen.rows.panel) and len(release.estimate) > 3
    free = Adaptive().setup(v | dict(own_discount=False)).mechanism
    assert free.discount is None


def test_controls_that_a_mechanism_has_not_are_greyed():
    used = {}
    for name in (IMPROVED, BASIC, DIRECT, TREE):
        values = DEFAULTS | dict(mechanism=name, own_discount=True)
        used[name] = {
            c.name
            for c in Adaptive.controls
            if not c.when
            or any(all(values[n] in some for n, some in each.items()) for each in c.when)
        }
    every = {"mechanism", "epsilon", "data", "records", "spread"}
    assert used[IMPROVED] - every == {"threshold", "own_discount", "discount", "measure"}
    assert used[BASIC] - every == {"threshold", "depth", "measure"}
    assert used[DIRECT] - every == {"depth", "stop"}
    assert used[TREE] - every == {"threshold", "measure"}


def test_facts_are_those_of_the_mechanism():
    shown = widgets.adaptive(threshold=60, epsilon=0.8)
    mechanism, facts = shown.release.mechanism, dict(shown.view["facts"])
    assert (
        f"ε = {mechanism.worst_case_loss():.3g} at worst where 0.4 is paid"
        == facts["structure"]
    )
    assert facts["discount"].startswith(f"{mechanism.effective_discount()} records a split")
    assert facts["depth reached"] == f"{shown.release.estimate.levels.max()} of 10 levels"
    assert facts["released"].startswith(f"{len(shown.release.estimate):,} leaves")
    shown.set(own_discount=True, discount=100, threshold=50)
    assert dict(shown.view["facts"])["discount"].startswith("100 records a split; Theorem 3")
    shown.set(mechanism=TREE)
    scale, fall = PrivTree(DP(0.8)).scale(Towns().hierarchy, 1)
    assert dict(shown.view["facts"])["λ, δ"] == f"{scale:.3g}, {fall} records"


def test_only_the_first_of_many_draws_is_mapped():
    shown = widgets.adaptive(seeds=3, seed=2)
    charts = shown.view["charts"]
    assert [len(c["boxes"][0]) for c in charts[:2]] == [
        1 + len(part(widgets.adaptive(seed=2), panel)) for panel in ("truth", "release")
    ]
    assert "low" in charts[2]["lines"][0] and shown.rows.seed.nunique() == 3
    assert charts[0]["limits"] == charts[1]["limits"]


def test_the_truth_has_its_colours_whatever_is_released():
    truth = [widgets.adaptive(epsilon=e).view["charts"][0] for e in (0.05, 5.0)]
    assert truth[0] == truth[1]
    drawn = widgets.adaptive(epsilon=0.05)
    fig = plots.grid(drawn.rows, drawn.setting.panels(drawn.rows), columns=3)
    scales = [ax for ax in fig.axes if ax.get_subplotspec() is None]
    assert len(scales) == 2
    for ax in scales:
        assert ax.get_xlim() == pytest.approx(tuple(truth[0]["limits"]))
    plots.close(fig)


def test_noise_is_kept_as_far_as_the_panel_says(monkeypatch):
    """Seeded: never by chance; sees noise that is redrawn (correlation below 0.9), or kept (above 0.1)."""
    drawn, add = [], laws.TwoSidedGeometric.add

    def kept(self, out, words):
        before = out.copy()
        add(self, out, words)
        drawn.append(out - before)

    monkeypatch.setattr(laws.TwoSidedGeometric, "add", kept)
    data, same, deep, scaled, leaves = Towns().load(), [], [], [], []
    for seed in range(8):
        looks, told = {}, {}
        for key, mechanism in {
            "a": ImprovedAdaptiveHistogram(DP(1.0), threshold=100),
            "threshold": ImprovedAdaptiveHistogram(DP(1.0), threshold=120),
            "ε": ImprovedAdaptiveHistogram(DP(1.2), threshold=100),
        }.items():
            drawn.clear()
            made = mechanism(data, Aligned(seed)).estimate
            looks[key] = [x.copy() for x in drawn]
            off = made.values - data.node_counts(made.levels, made.keys)
            told[key] = dict(zip(zip(made.levels, made.keys[0], strict=True), off, strict=True))
        for own, other in zip(looks["a"], looks["threshold"], strict=False):
            n = min(len(own), len(other))
            same.append((own[:n] == other[:n]).all())
            if len(own) != len(other):
                break
        last = min(len(looks["a"]), len(looks["threshold"])) - 1
        n = min(len(looks["a"][last - 2]), len(looks["threshold"][last - 2]))
        deep += zip(looks["a"][last - 2][:n], looks["threshold"][last - 2][:n], strict=True)
        near = [np.concatenate(looks[key][:3]) for key in ("a", "ε")]
        scaled += zip(*near, strict=True)
        both = told["a"].keys() & told["threshold"].keys()
        leaves += [(told["a"][k], told["threshold"][k]) for k in both]
    assert np.mean(same) > 0.95 and len(same) > 8 * 3
    assert np.corrcoef(np.transpose(deep))[0, 1] > 0.9
    assert np.corrcoef(np.transpose(scaled))[0, 1] > 0.9
    assert abs(np.corrcoef(np.transpose(leaves))[0, 1]) < 0.1
