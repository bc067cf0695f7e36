"""A panel of any mechanism, from its fields; and advice where nothing may be looked at."""

import json
import pickle
import shlex
import time
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

from tests.widgets.pages import moved, released  # noqa: E402
from workbench import (
    DP,
    PUBLIC,
    ZCDP,
    Advice,
    Aligned,
    Bound,
    Domain,
    Dyadic,
    Marginals,
    Quadtree,
    Ranges,
    Records,
    SparseTable,
    advise,
    datasets,
    figures,
    guarantee,
    mechanisms,
    widgets,
)
from workbench.data import Interactions  # noqa: E402
from workbench.datasets import GaussianSparse  # noqa: E402
from workbench.mechanisms import (
    GeometricHistogram,
    HighPassFilter,
    LaplaceQueries,
    PrioritySampling,
    ThresholdSampling,
)
from workbench.mechanisms.protocol import pure_budget  # noqa: E402
from workbench.queries import RandomRanges  # noqa: E402
from workbench.trials.metrics import MeanAbsoluteError  # noqa: E402
from workbench.value import (
    parameter,
    value,  # noqa: E402
)
from workbench.widgets.chart import charts  # noqa: E402
from workbench.widgets.controls import controls_of_field, stops_around  # noqa: E402
from workbench.widgets.scenes.advice import Advised, advice_instead, advice_scene  # noqa: E402
from workbench.widgets.scenes.fields import TINY, Fields  # noqa: E402
from workbench.widgets.scenes.summaries import QUERY_SEED  # noqa: E402
from workbench.widgets.view import Setting, qualified_text  # noqa: E402

every = pytest.mark.parametrize("cls", mechanisms.ALL, ids=lambda c: c.__name__)
TABLE = ["Error of ranges", "The domain in 64 parts"]
RECORDS = ["Error of nodes", "Nodes of a level", "Nodes released"]
VISITS = ["Items, the most popular first", "Most popular items found", "Error of ranges"]
LOCAL = [*TABLE, "Error of ranges over k attributes"]
QUERIES = ["What is released, by its truth", "How far off that is"]
DRAWN = {
    "Flipping": LOCAL,
    "RetentionReplacement": LOCAL,
    "GaussianQueries": QUERIES,
    "LaplaceQueries": QUERIES,
    "UnattributedHistogram": ["Error of ranges", "Counts in ascending order"],
}


def titles(shown):
    return [chart["title"] for chart in shown.view["charts"]]


def price(cls):
    """What its slider is."""
    return "epsilon" if cls.accepts_dp else "rho"


def control(shown, name):
    return next(c for c in shown.scene.controls if c.name == name)


# ---- every mechanism


@pytest.mark.slow
@every
def test_a_panel_of_any_mechanism_opens_at_its_example(cls):
    shown = widgets.panel(cls)
    view, delta = shown.view, 1e-6 if getattr(cls, "spends_delta", False) else 0.0
    json.dumps([shown.spec, view], allow_nan=False)
    budget = DP(1.0, delta) if cls.accepts_dp else ZCDP(0.5, delta)
    assert shown.release.mechanism == cls.example(budget) and shown.release.simulated
    assert ("privacy" in shown.values) == (cls.accepts_dp and cls.accepts_zcdp)
    assert set(shown.values) >= {price(cls)}
    kinds = {SparseTable: TABLE, Records: RECORDS, Interactions: VISITS}
    assert titles(shown) == DRAWN.get(cls.__name__, kinds[cls.takes])
    assert ("delta" in shown.values) == bool(delta)
    assert shown.scene == pickle.loads(pickle.dumps(shown.scene))
    left, right = (x.estimate.to_arrow().to_pandas() for x in (released(shown), shown.release))
    pd.testing.assert_frame_equal(left, right)


@pytest.mark.slow
@every
def test_every_control_can_be_moved_to_its_ends(cls):
    it = Fields.of(cls)
    base, others = {c.name: c.value for c in it.controls}, 0
    for c in it.controls:
        switched = {name: some[0] for name, some in (c.when[0] if c.when else {}).items()}
        for stop in {c.stops[0], c.stops[len(c.stops) // 2], c.stops[-1]}:
            values = base | switched | {c.name: stop}
            try:
                seen, release = Setting.of(it, values).draw(0, False)
            except ValueError as e:  # in the mechanism's words
                assert " need" in str(e), e
            else:
                drawn = charts(seen.rows, Setting.of(it, values).panels(seen.rows))
                assert len(drawn) >= 2 and np.isfinite(seen.rows.value).all()
                others += release.mechanism != it.mechanism
    assert others


@pytest.mark.slow
@every
def test_what_has_no_control_is_told(cls):
    shown = widgets.panel(cls)
    told = dict(shown.view["facts"]).get("as they are", "")
    inner = getattr(shown.release.mechanism, "mechanism", shown.release.mechanism)
    for f in fields(inner):
        assert (f.name in shown.values) + (f"{f.name} = " in told) + (f.name == "budget") == 1
    assert ("memory" in {f.name for f in fields(inner)}) == ("memory = " in told)


@pytest.mark.slow
@every
def test_the_command_finds_it_by_its_name(cls):
    shown = widgets.panel(cls, **{price(cls): 2.0}, seed=1)
    _, export, name, *words = shlex.split(shown.view["commands"][0])
    assert (export, name) == ("export", cls.__name__) and words == [
        f"{price(cls)}=2.0",
        "seed=1",
    ]
    pd.testing.assert_frame_equal(widgets.from_settings(name, words).rows, shown.rows)


@pytest.mark.slow
@every
def test_a_picture_is_drawn_while_one_drags(cls):
    shown = widgets.panel(cls)
    view = moved(shown, **{price(cls): 1.5})
    assert not view["error"] and view["seq"] == 1 and shown.values[price(cls)] == 1.5
    for c in shown.spec["controls"]:  # a list shows what is set, None and bases too
        assert c["kind"] == "slider" or shown.view["values"][c["name"]] in c["stops"]


def test_what_takes_a_rho_too_spends_what_its_list_says():
    shown = widgets.panel(PrioritySampling, rho=0.02)
    assert shown.view["guarantee"] == "1-DP"
    shown.set(privacy="rho")
    start = PrioritySampling.example(DP(1.0))
    assert shown.release.mechanism == replace(start, budget=ZCDP(0.02))
    epsilon = guarantee(shown.release.ledger, 1e-6).epsilon
    said = shown.view["guarantee"]
    assert said.startswith("0.02-zCDP: (") and said.endswith(", δ)-DP at δ = 1e-06")
    assert epsilon <= float(said.split("(")[1].split(",")[0]) < 1.001 * epsilon
    assert shown.view["commands"][0] == "workbench export PrioritySampling privacy=rho rho=0.02"
    (which,) = [c for c in shown.spec["controls"] if c["name"] == "privacy"]
    assert which["stops"] == ["epsilon", "rho"] and which["shown"] == ["ε", "ρ"]
    started = widgets.panel(shown.release.mechanism)
    assert started.values["privacy"] == "rho" and started.values["rho"] == 0.02


# ---- what is set and measured


def test_numbers_on_the_screen_are_those_of_the_release():
    shown = widgets.panel(ThresholdSampling, tau=25.0, seed=4)
    table = TINY.load()
    release = ThresholdSampling(DP(1.0), tau=25.0)(table, Aligned(4))
    errors = shown.rows[shown.rows.panel == "ranges"].set_index("query_size").value
    assert [*errors.index] == [1, 10, 100]
    for size, error in errors.items():
        asked = RandomRanges(int(size), 400, seed=QUERY_SEED)
        assert error == MeanAbsoluteError(asked)(table, release.estimate)
    whole = shown.rows[shown.rows.panel == "whole"].groupby("series").value.sum()
    assert whole["truth"] == table.total == 100
    assert whole["threshold"] == pytest.approx(release.estimate.weights().sum())


def test_counts_are_those_of_the_first_of_many_draws():
    for cls in (PrioritySampling, mechanisms.SRA, LaplaceQueries, mechanisms.PrivTree):
        many, one = (widgets.panel(cls, seeds=n).view["charts"] for n in (2, 1))
        same = [a["title"] for a, b in zip(many, one, strict=True) if a == b]
        assert (
            len(same) == 1
            and "rror" not in same[0]
            and any("low" in x for c in many for x in c["lines"])
        )


def test_closed_forms_foresee_what_is_drawn():
    """Seeded: never by chance; sees an error that is off by 15 %."""
    shown = widgets.panel(ThresholdSampling, epsilon=0.5, seeds=20)
    words, law = shown.setting.panels(shown.rows)[0].theory
    errors = shown.rows[shown.rows.panel == "ranges"].groupby("query_size").value.mean()
    assert words == "expected"
    assert np.allclose(law(errors.index.to_numpy(float)), errors, rtol=0.15)
    assert widgets.panel(GeometricHistogram).view["facts"][-2][0] == "size expected"
    exact = widgets.panel(mechanisms.Privelet)
    assert not exact.setting.panels(exact.rows)[0].theory


def test_numbers_that_may_be_left_out_have_a_switch():
    shown = widgets.panel(ThresholdSampling)
    assert shown.values["set_tau"] and not shown.values["set_size"]
    assert (
        control(shown, "size").when == ({"set_size": (True,)},)
        and not control(shown, "theta").when
    )
    shown.set(set_tau=False, set_size=True, size=20)
    assert shown.release.mechanism == ThresholdSampling(DP(1.0), size=20)
    with pytest.raises(ValueError, match="needs either tau or size"):
        shown.set(set_tau=True)
    assert control(shown, "tau").unit == "counts" and "θ" == control(shown, "theta").label


def test_an_instance_is_where_it_starts():
    start = PrioritySampling(DP(0.3), size=25, transform=Dyadic())
    shown = widgets.panel(start, theta=3.0)
    assert shown.release.mechanism == replace(start, theta=3.0)
    assert control(shown, "size").value == 25 and 25 in control(shown, "size").stops
    assert not shown.scene.by_name and "export" not in " ".join(shown.view["commands"])
    asked = widgets.panel(LaplaceQueries(DP(1.0), Marginals(3)))
    assert len(asked.release.estimate) == 1536
    assert ["as they are", "workload = Marginals(k=3)"] in asked.view["facts"]


def test_what_is_out_of_range_is_the_mechanisms_own_message():
    shown = widgets.panel(PrioritySampling)
    for name, bad, words in (
        ("size", 2.5, "PrioritySampling.size = 2.5 is not allowed: need a whole number >= 1"),
        ("theta", -1.0, "PrioritySampling.theta = -1.0 is not allowed: need a number >= 0"),
        ("epsilon", -1.0, "DP.epsilon = -1.0 is not allowed"),
        ("epsilon", 0.0, "PrioritySampling.budget = .* need a finite epsilon > 0"),
    ):
        with pytest.raises(ValueError, match=words):
            shown.set(**{name: bad})


def test_the_wrapped_are_set_through_what_wraps_them():
    shown = widgets.panel(mechanisms.Laborious, theta=7.0, epsilon=2.0)
    assert shown.release.mechanism == mechanisms.Laborious(HighPassFilter(DP(2.0), theta=7.0))
    assert "mechanisms.Laborious(mechanism=mechanisms.HighPassFilter(" in shown.view["code"]


def test_noise_stays_where_it_is_drawn_in_the_same_way():
    """Seeded: never by chance; sees noise that is redrawn (correlation below 0.95)."""
    table = GaussianSparse(1000, 0.5, 100.0).load()
    cells = Ranges(table.keys, table.keys + 1)

    def noise(shown):
        return shown.release.answer(cells, weights="raw") - table.counts

    shown = widgets.panel(GeometricHistogram, dataset=GaussianSparse(1000, 0.5, 100.0))
    first = noise(shown)
    shown.set(epsilon=0.5)
    assert np.corrcoef(first, noise(shown))[0, 1] > 0.95  # scaled
    shown.set(epsilon=1.0, transform=Dyadic())
    assert abs(np.corrcoef(first, noise(shown))[0, 1]) < 0.2  # of other nodes
    shown = widgets.panel(HighPassFilter, dataset=GaussianSparse(1000, 0.5, 100.0))
    first = noise(shown)
    shown.set(theta=20.0)
    assert (first == noise(shown)).all()


# ---- data


def test_data_of_your_choice_must_be_public():
    shown = widgets.panel(PrioritySampling, dataset=GaussianSparse(10_000), size=500)
    assert len(shown.release.estimate) == 500 and "m=10000" in shown.view["code"]
    assert not shown.scene.by_name
    with pytest.raises(ValueError, match="need a dataset, whose text anybody can run"):
        widgets.panel(PrioritySampling, dataset=TINY.load())
    with pytest.raises(ValueError, match="need one of SparseTable, not Records"):
        widgets.panel(PrioritySampling, dataset=datasets.Towns(1000))


def test_a_projection_is_the_marginal_of_a_dataset():
    adults = datasets.IPUMSTwin(500)
    some = datasets.Projected(adults, ("Race", "Gender"))
    table = some.load()
    assert table.domain == some.domain and table.domain.shape == (9, 2) and some.truth_public
    codes = adults.load()
    race, gender = (codes.domain.column(codes.keys, a) for a in ("Race", "Gender"))
    counts = np.zeros((9, 2), int)
    np.add.at(counts, (race, gender), codes.counts)
    assert (table.dense() == counts).all() and table.bound.l1 == 1 and some.files() == ()
    assert qualified_text(some).startswith("datasets.Projected(dataset=datasets.IPUMSTwin(")
    with pytest.raises(ValueError, match="need a tuple of attributes"):
        datasets.Projected(adults, "Race")
    with pytest.raises(ValueError, match="need a dataset of counts"):
        datasets.Projected(3, ("Race",))


# ---- mechanisms written in a notebook

NOTEBOOK = '''
from typing import ClassVar
import numpy as np
from workbench import DP, Release, SparseTable, noise
from workbench.estimates import Summary
from workbench.mechanisms.protocol import parameter, pure_budget, sensitivity
from workbench.value import value

@value
class Rounded:
    """Counts rounded to multiples of `step`, with noise on those of non-empty cells alone.

    No guarantee worth the name: it is here to be drawn.
    """
    budget: DP = pure_budget()
    step: float = parameter(2.0, 0, 100, strict=True, unit="counts", doc="of the grid")
    cut: float | None = parameter(None, 0, unit="counts", doc="released from here on")
    loud: bool = True
    seeds: int = 3
    takes: ClassVar[type] = SparseTable
    series: ClassVar[str] = "my way"

    def __call__(self, table, rng=None):
        noisy, receipt = noise.geometric(
            table.counts, l1=sensitivity(table), epsilon=self.budget.epsilon, rng=rng
        )
        noisy = np.rint(np.rint(noisy / self.step) * self.step).astype(np.int64)
        kept = noisy >= (self.cut or 1)
        summary = Summary(table.domain, table.keys[kept], noisy[kept], None)
        return Release(summary, (receipt,), self, table.bound)

    @classmethod
    def example(cls, budget):
        return cls(budget)
'''


@pytest.fixture
def rounded():
    told = {"__name__": "__main__"}
    exec(NOTEBOOK, told)
    return told["Rounded"]


@pytest.mark.slow
def test_a_mechanism_of_a_notebook_has_a_panel(rounded, tmp_path):
    shown = widgets.panel(rounded, step=5.0, set_cut=True, cut=15.0)
    assert titles(shown) == TABLE and shown.scene.words.startswith(
        "Counts rounded to multiples"
    )
    assert shown.release.mechanism == rounded(DP(1.0), step=5.0, cut=15.0)
    assert "my way" in [line["name"] for line in shown.view["charts"][0]["lines"]]
    assert (
        "release = Rounded(budget=DP(epsilon=1.0), step=5.0, cut=15.0)(" in shown.view["code"]
    )
    names = [c.name for c in shown.scene.controls]
    assert names == ["epsilon", "step", "set_cut", "cut", "loud"]
    assert control(shown, "loud").kind == "switch" and control(shown, "step").unit == "counts"
    assert shown.view["commands"] == []  # the command line does not know it
    assert ["as they are", "seeds = 3"] in shown.view["facts"]
    kept = figures.load(shown.save(tmp_path))
    assert "Rounded(" in kept.manifest["command"] and len(kept.rows) == len(shown.rows)
    with pytest.raises(ValueError, match="Rounded.step = 101.0 is not allowed"):
        shown.set(step=101.0)


def test_it_is_drawn_by_the_worker_too(rounded):
    shown = widgets.panel(rounded)
    moved(shown, rest=True, bands=True, epsilon=0.5)
    end = time.time() + 60
    while not shown.view["exact"] and time.time() < end:
        time.sleep(0.05)
    assert not shown.view["error"] and shown.rows.seed.nunique() == 20
    here = widgets.panel(rounded, epsilon=0.5, seeds=20)
    pd.testing.assert_frame_equal(here.rows, shown.rows)
    assert type(shown.release.mechanism) is rounded


def test_what_is_no_mechanism_is_told_so(rounded):
    @dataclass
    class Loose:
        budget: DP
        takes: ClassVar[type] = SparseTable

        def __call__(self, table, rng=None):
            raise AssertionError

    class Shy(rounded):
        example = None
        takes = dict

    for bad in (3, DP(1.0), Loose, Loose(DP(1.0)), "HighPassFilter", RandomRanges(3)):
        with pytest.raises(ValueError, match="need a class with an example"):
            widgets.panel(bad)
    with pytest.raises(ValueError, match="no small dataset is known for .*it takes dict"):
        widgets.panel(Shy(DP(1.0)))


def test_an_estimate_about_something_else_is_not_compared():
    @value
    class Elsewhere:
        budget: DP = pure_budget()
        takes: ClassVar[type] = SparseTable

        def __call__(self, table, rng=None):
            other = SparseTable.from_keys(Domain(("y",), (3,)), [1], [9], Bound())
            return GeometricHistogram(self.budget)(other, rng)

    with pytest.raises(ValueError, match="neither about"):
        widgets.panel(Elsewhere(DP(1.0)))


# ---- controls


def made(field: Any, at: Any, kind: type = float):
    cls = value(type("Made", (), {"__annotations__": {"x": kind}, "x": field}))
    return controls_of_field(fields(cls)[0], at)


def test_stops_are_round_and_inside_the_bounds():
    (share,) = made(parameter(0.5, 0, 1, strict=True), 0.5)
    assert share.stops[0] == 0.05 and share.stops[-1] == 1.0 and len(share.stops) == 20
    (small,) = made(parameter(1e-6, 0, 1), 1e-6)
    assert small.stops[:2] == (0.0, 1e-8) and small.stops[-1] == 8e-5
    (whole,) = made(parameter(3, 1, 12, integer=True), 3, int)
    assert whole.stops == tuple(range(1, 13)) and all(type(s) is int for s in whole.stops)
    (wide,) = made(parameter(5.0, unit="counts"), -5.0)
    assert wide.stops[0] == -55.0 and wide.stops[-1] == 45.0 and -5.0 in wide.stops
    (zero,) = made(parameter(0, 0, 2**50), 0)
    assert zero.value == 0.0 and zero.stops[0] == 0.0 and zero.stops[-1] == 1000.0
    (open_,) = made(parameter(10, check=lambda x: None), 10, int | str)
    assert open_.stops[0] == 1 and open_.stops[-1] == 1000
    assert stops_around(7, 7, 7, strict=False, whole=True) == (7,)
    for text in ("suggested", None, (0.5, 0.5), Dyadic()):
        assert made(parameter(10, check=lambda x: None), text) == ()


def test_a_number_left_out_starts_somewhere_inside():
    switch, slider = made(parameter(None, 1, 2**53, integer=True), None, int)
    assert (switch.name, switch.value, slider.value) == ("set_x", False, 100)
    assert made(parameter(None, 1, 50, integer=True), None, int)[1].value == 50
    assert made(parameter(None, 0, 1), None)[1].value == 0.5
    assert made(parameter(None, 0, 2**50), 4)[0].value is True


# ---- advice: nothing is looked at


def private(keys, counts, bound=None):
    return SparseTable.from_keys(
        Domain(("x", "y"), (100, 50)), keys, counts, bound or Bound(2, 3)
    )


@pytest.mark.slow
def test_nothing_of_a_private_table_reaches_the_screen():
    one, other = private([1, 2, 3], [5, 900, 7]), private(range(4000), [1] * 4000)
    for values in ({}, dict(believed=True, epsilon=0.7, size=123, delta=1e-6)):
        a, b = (widgets.advice(t, **values) for t in (one, other))
        assert a.view == b.view and a.spec == b.spec and a.release is None
        pd.testing.assert_frame_equal(a.rows, b.rows)
    bare = widgets.advice(one.domain, Bound(2, 3), **values)
    assert bare.view == a.view
    for ask in (widgets.summaries, widgets.history, lambda t: widgets.panel(HighPassFilter, t)):
        assert ask(one).view == ask(other).view


def test_only_domain_and_bound_are_read():
    class Guarded:
        domain, bound = Domain(("x",), (10**4,)), Bound()

        def __getattr__(self, name):
            if name != "truth_public":
                raise AssertionError(f"{name} was read")
            raise AttributeError(name)

    assert isinstance(advice_instead(Guarded()), Advised)
    assert widgets.panel(HighPassFilter, Guarded()).view["charts"]


@pytest.mark.slow
def test_the_advice_on_the_screen_is_that_of_advise():
    shown = widgets.advice(Domain(("x",), (10**4,)), size=1000, believed=True, spread=5.0)
    told = {}
    exec(shown.view["code"].replace("advise(", "told = advise("), told)
    advice = told["told"]
    again = advise(
        *(Domain(("x",), (10**4,)), 0.1, 1000),
        **dict(density=0.1, mean=100, spread=5, queries=[1, 10, 100, 1000]),
    )
    assert isinstance(advice, Advice) and repr(advice) == repr(again)
    assert ["recommended", f"{advice.reason}."] in shown.view["facts"]
    frame = advice.to_frame()
    errors = shown.rows[shown.rows.panel == "errors"]
    assert set(errors.metric) == {"ExpectedError"} and errors.series.nunique() == 5
    own = errors[errors.series == "priority"].set_index("query_size").value
    text = repr(PrioritySampling(DP(0.1), size=1000))
    assert own.to_dict() == frame[frame.mechanism == text].set_index("query").error.to_dict()
    assert "geometric" in set(errors.series)  # what everything is compared with
    doubt = widgets.advice(Domain(("x",), (10**4,)), size=200)
    assert set(doubt.rows.metric) == {"WorstRMSE", "TotalEpsilon"}
    assert "worst case decides" in dict(doubt.view["facts"])["recommended"]


def test_quick_advice_is_part_of_the_whole():
    asked = dict(density=0.1, mean=100, spread=20, delta=1e-6)
    whole, part = (
        advise(Domain(("x",), (10**4,)), 0.1, 1000, quick=quick, **asked).to_frame()
        for quick in (False, True)
    )
    own = (whole["transform"] == "") & (whole.summary != "filter-priority")
    pd.testing.assert_frame_equal(whole[own].reset_index(drop=True), part)
    assert len(part) < len(whole) / 2


def test_the_command_gives_the_same_advice(tmp_path):
    from typer.testing import CliRunner

    from workbench.cli import app

    shown = widgets.advice(private([1], [1]), delta=1e-6, size=40)
    words = shlex.split(shown.view["commands"][0])
    assert words[:2] == ["workbench", "advise"]
    path = tmp_path / "domain.json"
    path.write_text(json.dumps({"x": 100, "y": 50}))
    words[words.index("domain.json")] = str(path)
    said = CliRunner().invoke(app, words[1:], env={"COLUMNS": "300"})
    assert said.exit_code == 0, said.output
    advice = shown.scene.advice(shown.values)
    assert advice.reason[1:] in " ".join(said.output.split())
    assert shown.view["commands"][1].startswith("workbench release YOUR.csv … --epsilon 0.1")


def test_looking_costs_every_time_and_advice_nothing():
    shown = widgets.advice(private([1], [1]), epsilon=0.3, delta=1e-6)
    assert shown.view["guarantee"].startswith("0 spent: nothing was looked at")
    assert shown.view["ledger"] == [] and shown.view["simulated"] == ""
    cost = shown.rows[shown.rows.panel == "cost"].set_index("looks").value
    assert [*cost.index] == [*range(1, 11)]
    assert np.allclose(cost, 0.3 * cost.index)
    told = dict(shown.view["facts"])["looks together"]
    assert (
        told.startswith("1: ε = 0.3, δ = 1e-06; 2: ε = 0.6") and "10: ε = 3, δ = 1e-05" in told
    )
    assert shown.spec["noise_note"] == ""  # and no button to draw again
    assert {"stability histogram"} & set(shown.scene.advice(shown.values).to_frame().summary)


def test_a_private_table_is_told_why_it_has_no_panel():
    table = private([1, 2], [3, 4])
    for ask in (
        *(getattr(widgets, name) for name in widgets.ALL),
        lambda t: widgets.panel(HighPassFilter, t),
    ):
        shown = ask(table)
        assert "does not say truth_public" in shown.scene.words and shown.release is None
    assert "truth_public" not in widgets.advice(table).scene.words
    public = replace(table, truth_public=True)
    with pytest.raises(ValueError, match="this panel makes its own"):
        widgets.summaries(public)
    assert advice_instead(public) is None and advice_instead(private([1], [1], PUBLIC)) is None


@value
class Own:
    """A dataset of one's own."""

    truth_public: bool = False
    bound = Bound(1)
    domain = Domain(("axis0", "axis1"), (20, 30))

    def load(self):
        keys = np.arange(600)
        return SparseTable.from_keys(
            self.domain, keys, keys, self.bound, truth_public=self.truth_public
        )


def test_a_private_dataset_is_advised_about_by_its_shape():
    shown = widgets.panel(HighPassFilter, Own())
    assert shown.scene == advice_scene(
        Domain(("axis0", "axis1"), (20, 30)), Bound(1), shown.scene.why
    )
    public = Own(truth_public=True)
    assert widgets.panel(HighPassFilter, public).release is not None


def test_private_records_and_interactions_are_refused_in_one_sentence():
    records = Records.from_values(Quadtree(1, 4), np.array([[0.5], [0.1]]), Bound())
    domain = Domain(("film", "day"), (5, 7))
    visits = Interactions.from_codes(domain, [9, 4, 9], [0, 1, 4], [6, 6, 0], Bound(2))
    for data in (records, visits):
        for ask in (widgets.adaptive, lambda d: widgets.panel(mechanisms.PrivTree, d)):
            with pytest.raises(
                ValueError, match="compares with the truth.*k looks k·ε.*widgets.advice"
            ):
                ask(data)
    with pytest.raises(ValueError, match="need a table, or a domain"):
        widgets.advice(visits)
    with pytest.raises(ValueError, match="bound = PUBLIC is not allowed"):
        widgets.advice(private([1], [1], PUBLIC))


def test_advice_is_exported_and_shared_like_any_panel(tmp_path):
    shown = widgets.advice(Domain(("x",), (500,)))
    kept = figures.load(shown.save(tmp_path))
    assert "advise(Domain(" in kept.manifest["command"] and set(kept.images) == {
        "pdf",
        "svg",
        "png",
    }
    it = pickle.loads(pickle.dumps(shown.scene))
    assert it == shown.scene
    assert not moved(shown, believed=True)["error"]
    assert "trees aside" in shown.view["facts"][0][0] and not shown.view["exact"]
    assert shown.view["code"].endswith(", quick=True)")
    labels = widgets.advice(Domain(("x",), (3,), (("a", "b", "c"),)))
    assert "'a'" not in json.dumps(labels.view) and labels.view["charts"]


def test_code_lines_name_the_room_of_every_class():
    wrapped = mechanisms.Laborious(HighPassFilter(DP(1.0), theta=2))
    told = "mechanisms.Laborious(mechanism=mechanisms.HighPassFilter(budget=DP(epsilon=1.0), theta=2))"
    assert qualified_text(wrapped) == told
    assert qualified_text(LaplaceQueries(DP(1.0), Marginals(2))).endswith(
        "workload=Marginals(k=2))"
    )
