"""The panel of users' contributions: what it shows is what its line of code releases."""

from dataclasses import fields

import numpy as np
import pytest

from tests.widgets.pages import released
from workbench import DP, widgets
from workbench.data import Bound, Interactions
from workbench.datasets import InteractionsTwin
from workbench.mechanisms import FPA, GS, HPA, LPA, SRA
from workbench.noise import Aligned
from workbench.trials.metrics import sampling_error, weighted_counts
from workbench.widgets.scenes.contributions import expected_error

SMALL = dict(users=300, items=60, records=6000, max_per_user=200)
MECHANISMS = dict(SRA=SRA, HPA=HPA, LPA=LPA, DFT=FPA, GS=GS)


def panel(**values):
    return widgets.contributions(**SMALL | dict(bound=100) | values)


def shown(p, part, series):
    """What one curve of the panel shows, by its x."""
    rows = p.rows[(p.rows.panel == part) & (p.rows.series == series)]
    x = dict(error="kept", counts="place", top="top", users="rank")[part]
    return rows.astype({x: int}).set_index(x).value


def pasted(p):
    """The release that the panel's line of code makes, and the data that it is made of."""
    return released(p), p.setting.dataset.load()


@pytest.mark.slow
@pytest.mark.parametrize("name", MECHANISMS)
@pytest.mark.parametrize("of", ["items", "edges"])
def test_the_screen_shows_the_release_of_the_code_line(name, of):
    p = panel(mechanism=name, of=of, epsilon=2.0, l=7)
    release, data = pasted(p)
    assert type(release.mechanism) is MECHANISMS[name]
    truth = data.edge_counts().ravel() if of == "edges" else data.item_counts()
    counts = getattr(release.estimate, of).values
    now = 7 if name in ("SRA", "HPA") else 100
    error = shown(p, "error", name)
    assert error[now] == pytest.approx(((counts - truth) ** 2).mean())
    order = np.argsort(-truth, kind="stable")
    kept = release.mechanism.bounded_data(data, Aligned(0))
    before = kept.edge_counts().ravel() if of == "edges" else kept.item_counts()
    for series, told in (
        ("truth", truth),
        (name, counts),
        (name + ", before noise", before),
    ):
        places = shown(p, "counts", series)
        assert places.index[-1] == len(truth)
        np.testing.assert_allclose(places, told[order[places.index - 1]])
    if of == "items" and len(set(counts)) == len(counts):
        k = shown(p, "top", name).index[-1]
        true, cut = np.sort(truth)[::-1], set(np.argsort(-counts)[:k])
        above = {*np.flatnonzero(truth > true[k - 1])}
        level = {*np.flatnonzero(truth == true[k - 1])}
        ours = len(cut & above) + len(cut & level) * (k - len(above)) / len(level)
        assert shown(p, "top", name)[k] == pytest.approx(ours / k)


@pytest.mark.parametrize("name, kept", [("SRA", 7), ("HPA", 7), ("LPA", 100), ("GS", 100)])
def test_users_are_cut_where_it_says(name, kept):
    p = panel(mechanism=name, l=7)
    before, after = (shown(p, "users", series) for series in ("truth", name))
    np.testing.assert_array_equal(after, np.minimum(before, kept))
    assert before.sum() > after.sum()
    data = p.setting.dataset.load()
    counted = np.minimum(data.records_per_user(), kept).sum()
    assert dict(p.view["facts"])["counted"].startswith(f"{counted:,} of 6,000 records")


def test_other_settings_of_l_have_the_same_noise():
    p = panel(mechanism="HPA", l=7, d=2, popularity_share=0.2)
    data = p.setting.dataset.load()
    error = shown(p, "error", "HPA")
    other = HPA(DP(1.0), 50, 2, 0.2)(data, Aligned(0)).estimate
    assert error[50] == pytest.approx(((other.items.values - data.item_counts()) ** 2).mean())
    assert {1, 7, 50, 200} <= {*error.index}


@pytest.mark.slow
@pytest.mark.parametrize("of", ["items", "edges"])
@pytest.mark.parametrize("consistent", [False, True])
def test_the_prediction_is_what_many_draws_show(of, consistent):
    """Seeded: never by chance; sees an error that is off by four standard errors and 1 %."""
    p = panel(of=of, consistent=consistent)
    dataset, mechanism = p.setting.setup
    data = dataset.load()
    truth = data.edge_counts().ravel() if of == "edges" else data.item_counts()
    law = expected_error(dataset, mechanism, of)
    for l in (1, 10, 60, 200):  # noqa: E741
        made = SRA(DP(1.0), l, consistent=consistent)
        errors = []
        for seed in range(100):
            estimate = made(data, Aligned(seed)).estimate
            errors.append(((getattr(estimate, of).values - truth) ** 2).mean())
        sure = 4 * np.std(errors) / 10 + 0.01 * np.mean(errors)  # straight between its knots
        assert law(np.array([l]))[0] == pytest.approx(np.mean(errors), abs=sure)
    lines = {line["name"]: line for line in p.view["charts"][0]["lines"]}
    drawn = lines["SRA, expected"]
    assert drawn["y"] == pytest.approx(law(np.array(drawn["x"])), rel=1e-4)
    assert lines["all zeros"]["y"] == pytest.approx(
        [(truth**2.0).mean()] * len(drawn["x"]), rel=1e-5
    )


def test_nothing_more_is_expected_above_the_most_that_users_have():
    dataset, mechanism = panel(l=5000).setting.setup
    law = expected_error(dataset, mechanism, "items")(np.array([200, 5000]))
    assert law[0] == law[1]
    assert (
        shown(panel(l=5000), "error", "SRA")[5000] == shown(panel(l=200), "error", "SRA")[200]
    )


def test_the_l_of_least_error_and_the_one_suggested():
    told = dict(panel(epsilon=2.0).view["facts"])["best l expected"]
    public = dict(n=300, bound=20, popularity=0.8)
    suggested = SRA(DP(2.0), "suggested", **public).sampling_factor(60)
    assert told.endswith(f"; {suggested} for items, suggested from public numbers")
    best = int(told.split(" ")[0])
    dataset, mechanism = panel(epsilon=2.0).setting.setup
    law = expected_error(dataset, mechanism, "items")
    assert law(np.array([best]))[0] < law(np.array([best / 2, best * 2])).min()
    assert "suggested" not in dict(panel(mechanism="GS").view["facts"])["best l expected"]


def noise(part="items", **values):
    p = widgets.contributions(**values)
    data = p.setting.dataset.load()
    kept = p.release.mechanism.bounded_data(data, Aligned(p.seed))
    counts = kept.item_counts() if part == "items" else kept.edge_counts().ravel()
    return getattr(p.release.estimate, part).values - counts, kept


def alike(a, b):
    return np.corrcoef(a[0], b[0])[0, 1]


@pytest.mark.slow
def test_noise_is_kept_as_the_panel_says():
    """Seeded: never by chance; sees noise that is redrawn (correlation below 0.99)."""
    at = noise()
    assert alike(at, noise(epsilon=0.5)) > 0.99
    assert alike(at, noise(l=50)) > 0.99
    assert np.array_equal(at[1].items, noise(epsilon=0.5)[1].items)
    assert alike(at, noise(l=200)) < 0.1  # a scale of 400
    assert alike(noise(l=200), noise(l=400)) > 0.99
    assert alike(noise("edges"), noise("edges", epsilon=0.5)) > 0.99
    assert alike(noise("edges"), noise("edges", l=50)) > 0.99
    assert alike(noise(mechanism="HPA"), noise(mechanism="HPA", l=20)) > 0.99
    assert alike(noise(mechanism="HPA"), noise(mechanism="HPA", epsilon=0.5)) > 0.99
    assert alike(noise(mechanism="LPA"), noise(mechanism="LPA", epsilon=0.5)) > 0.99
    assert noise(consistent=True)[1].items.tolist() == at[1].items.tolist()
    assert alike(noise(consistent=True), at) > 0.9


def test_each_mechanism_has_the_controls_that_it_has_fields_for():
    p, public = panel(), {"SRA": {"bound"}, "HPA": {"bound"}}  # theirs is for a suggested l
    for name, made in MECHANISMS.items():
        own = {f.name for f in fields(made)} - public.get(name, set())
        for control in p.scene.controls:
            if control.name in ("l", "d", "popularity_share", "bound", "consistent"):
                (when,) = control.when
                assert (name in when["mechanism"]) == (control.name in own)


def test_twins_are_there_whole():
    p = widgets.contributions(data="Gowalla twin")
    assert "InteractionsTwin(users=12579" in p.view["code"]
    assert p.setting.dataset == InteractionsTwin.gowalla()


def test_exact_errors_of_private_records_are_refused_and_of_none_are_zero():
    data = InteractionsTwin(**SMALL).load()
    columns = data.users, data.items, data.contexts
    private = Interactions(data.domain, *columns, Bound(200, 200, 200))
    for refused in (sampling_error, weighted_counts):
        with pytest.raises(ValueError, match="truth_public"):
            refused(private, np.ones(300))
    none = (c[:0] for c in columns)
    empty = Interactions(data.domain, *none, Bound(1), truth_public=True)
    assert sampling_error(empty, [1, 2]).tolist() == [0, 0]


def test_charts_name_what_is_kept_and_show_counts_of_one_draw():
    p = panel(mechanism="LPA", seeds=2)
    error, counts, *_ = p.view["charts"]
    assert error["x"]["label"] == "records kept of a user, l or M"
    assert counts == panel(mechanism="LPA").view["charts"][1] and "low" in error["lines"][0]


def test_nothing_is_expected_of_less_than_a_record():
    dataset, mechanism = panel().setting.setup
    assert np.isnan(
        expected_error(dataset, mechanism, "items")(np.array([0.5, 1.0]))
    ).tolist() == [
        True,
        False,
    ]


def test_what_is_too_much_to_draw_is_refused_before_it_is_loaded(monkeypatch):
    p = panel()
    monkeypatch.setattr(InteractionsTwin, "load", lambda self: pytest.fail("it was loaded"))
    with pytest.raises(
        ValueError, match="records = 10000001 is not allowed: need at most 10,000,000"
    ):
        p.set(records=10**7 + 1)
    p.scene.setup(p.values | dict(records=10**9, data="Gowalla twin"))  # which has its own
