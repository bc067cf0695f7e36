"""The panel of any mechanism: what it shows can be made again, and every slider does what it says."""

import json
import os
import pickle
import shlex
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import ClassVar

import matplotlib
import numpy as np
import pandas as pd
import pytest

matplotlib.use("Agg")

from tests.widgets.pages import control, facts, moved, released, settled, titles, until  # noqa: E402
from workbench import (  # noqa: E402
    DP,
    ZCDP,
    Aligned,
    Bound,
    Domain,
    Dyadic,
    Marginals,
    Ranges,
    Records,
    SparseTable,
    datasets,
    figures,
    mechanisms,
    widgets,
)
from workbench.data import Interactions  # noqa: E402
from workbench.datasets import GaussianSparse, InteractionsTwin, Towns  # noqa: E402
from workbench.figures import plots  # noqa: E402
from workbench.mechanisms import (  # noqa: E402
    SRA,
    GeometricHistogram,
    HighPassFilter,
    ImprovedAdaptiveHistogram,
    LaplaceQueries,
    PrioritySampling,
    PrivTree,
    ThresholdSampling,
)
from workbench.mechanisms.protocol import budget_field  # noqa: E402
from workbench.queries import RandomRanges  # noqa: E402
from workbench.trials.metrics import MeanAbsoluteError  # noqa: E402
from workbench.value import value  # noqa: E402
from workbench.widgets.mechanism_subject import TINY, MechanismSubject, _example  # noqa: E402
from workbench.widgets.panels import Panel, worker  # noqa: E402
from workbench.widgets.subjects import loaded  # noqa: E402
from workbench.widgets.views import QUERY_SEED  # noqa: E402

every = pytest.mark.parametrize("cls", mechanisms.ALL, ids=lambda c: c.__name__)
TABLE = ["Error of ranges", "The domain in 64 parts"]
MAPS = "Records per unit of area, "
RECORDS = ["Error of nodes", "Nodes of a level", "Nodes released"]
VISITS = ["Items, the most popular first", "Most popular items found", "Error of ranges"]
BY_ATTRIBUTES = [*TABLE, "Error of ranges over k attributes"]
QUERIES = ["What is released, by its truth", "How far off that is"]
DRAWN = {
    "AIM": BY_ATTRIBUTES,
    "Flipping": BY_ATTRIBUTES,
    "RetentionReplacement": BY_ATTRIBUTES,
    "GaussianQueries": QUERIES,
    "LaplaceQueries": QUERIES,
    "UnattributedHistogram": ["Error of ranges", "Counts in ascending order"],
}
NAMED = {"epsilon", "theta", "tau", "l", "alpha"}  # which the issue wants as sliders


def price(cls):
    """What its first slider is."""
    return "epsilon" if cls.accepts_dp else "rho"


# ---- every mechanism


@pytest.mark.slow
@every
def test_a_panel_opens_at_the_example(cls):
    shown = widgets.panel(cls)
    delta = 1e-6 if getattr(cls, "spends_delta", False) else 0.0
    json.dumps([shown.spec, shown.view], allow_nan=False)
    budget = DP(1.0, delta) if cls.accepts_dp else ZCDP(0.5, delta)
    assert shown.release.mechanism == cls.example(budget) and shown.release.simulated
    assert ("privacy" in shown.values) == (cls.accepts_dp and cls.accepts_zcdp)
    kinds = {SparseTable: TABLE, Interactions: VISITS}
    drawn = [title for title in titles(shown) if not title.startswith(MAPS)]
    assert drawn == DRAWN.get(cls.__name__, kinds.get(cls.takes, RECORDS))
    assert (len(titles(shown)) - len(drawn) == 2) == (cls.takes is Records)
    assert ("delta" in shown.values) == bool(delta)
    assert shown.subject == pickle.loads(pickle.dumps(shown.subject))
    left, right = (x.estimate.to_arrow().to_pandas() for x in (released(shown), shown.release))
    pd.testing.assert_frame_equal(left, right)
    places = [c["place"] for c in shown.spec["controls"]]
    assert 1 <= places.count("top") <= 4 and shown.spec["controls"][0]["name"] == price(cls)
    for c in shown.spec["controls"]:
        if c["name"] in NAMED:
            assert c["kind"] == "slider" and c["place"] == "top"


@pytest.mark.slow
@every
def test_every_control_can_be_moved_to_its_ends(cls):
    shown = widgets.panel(cls)
    start = dict(shown.values)
    others = 0
    for c in shown.subject.controls(start):
        for stop in {c.stops[0], c.stops[len(c.stops) // 2], c.stops[-1]} - {c.value}:
            view = moved(shown, **start | {c.name: stop})
            if view["error"]:  # in the mechanism's words
                assert view["at"] in shown.values and " need" in view["error"], view["error"]
            else:
                assert len(view["charts"]) >= 2 and np.isfinite(shown.rows.value).all()
                others += shown.release.mechanism != shown.subject.mechanism
        moved(shown, **start)
    assert others


@every
def test_every_stop_of_every_control_is_a_mechanism(cls):
    subject = MechanismSubject(_example(cls), TINY)
    start = {c.name: c.value for c in subject.controls({})}
    opened = SimpleNamespace(subject=subject, values=start)
    refused = set()
    for c in subject.controls(start):
        for stop in c.stops:
            try:
                Panel._read(opened, {c.name: stop})
            except ValueError as e:
                refused.add((c.name, stop, str(e)[-40:]))
    two_before = ("consistent", True, "Dyadic(), whose nodes have ancestors")
    assert {r[:2] for r in refused} <= {two_before[:2]}, refused
    assert not refused or cls is ThresholdSampling  # which also needs θ >= 1


@pytest.mark.slow
@every
def test_code_command_and_link_make_the_very_rows(cls):
    """After two controls were moved."""
    shown = widgets.panel(cls, **{price(cls): 2.0}, seed=1)
    controls = shown.subject.controls(shown.values)
    own = [c for c in controls if not c.place and c.name not in (price(cls), "privacy")]
    for c in own:
        middle = c.stops[len(c.stops) // 2 :]
        for x in (*middle, *c.stops):
            with suppress(ValueError):  # more than this dataset has
                shown.set(**{c.name: x})
                if x != c.value:
                    break
        if len(shown.view["words"]) > 2:
            break
    _, export, name, *words = shlex.split(shown.view["commands"][0])
    assert (export, name) == ("export", cls.__name__) and words == shown.view["words"]
    assert {f"{price(cls)}=2.0", "seed=1"} <= {*words} and (len(words) > 2 or not own)
    pd.testing.assert_frame_equal(widgets.from_settings(name, words).rows, shown.rows)
    left, right = (x.estimate.to_arrow().to_pandas() for x in (released(shown), shown.release))
    pd.testing.assert_frame_equal(left, right)
    linked = widgets.panel(cls)
    linked._on_message(None, dict(kind="link", words=words), [])
    assert not settled(linked)["error"] and linked.values == shown.values
    pd.testing.assert_frame_equal(linked.rows, shown.rows)


# ---- what is set


def test_what_takes_a_rho_too_spends_what_its_list_says():
    shown = widgets.panel(PrioritySampling)
    assert facts(shown)["Guarantee"].startswith("1-DP: ") and "rho" not in shown.values
    shown.set(privacy="rho", rho=0.02)
    start = PrioritySampling.example(DP(1.0))
    assert shown.release.mechanism == replace(start, budget=ZCDP(0.02))
    assert facts(shown)["Guarantee"].startswith("0.02-zCDP")
    assert ["At δ", dict(shown.release.describe(1e-6))["At δ"]] in shown.view["facts"]
    assert shown.view["commands"][0] == "workbench export PrioritySampling rho=0.02 privacy=rho"
    assert "epsilon" not in shown.values and shown.spec["controls"][0]["name"] == "rho"
    again = widgets.from_settings("PrioritySampling", shown.view["words"])
    pd.testing.assert_frame_equal(again.rows, shown.rows)
    started = widgets.panel(shown.release.mechanism)
    assert started.values["privacy"] == "rho" and started.values["rho"] == 0.02
    tree = widgets.panel(mechanisms.HierarchicalHistogram)  # a page sends its noise as text
    texts = tree.view["values"] | {"privacy": "rho"}
    assert moved(tree, **texts)["error"] == ""
    assert tree.release.mechanism == mechanisms.HierarchicalHistogram(ZCDP(0.5))


def test_a_number_that_excludes_another_takes_its_place():
    shown = widgets.panel(ThresholdSampling)
    assert shown.values["tau"] == 10.0 and shown.values["size"] is None
    shown.set(size=20)
    assert shown.release.mechanism == ThresholdSampling(DP(1.0), size=20)
    assert shown.values["tau"] is None and "tau=auto" in shown.view["words"]
    for tau in (6.0, 5.0, 5.0):  # a page still has the size while somebody drags, and lets go
        assert moved(shown, size=20, tau=tau)["error"] == ""
        assert shown.release.mechanism == ThresholdSampling(DP(1.0), tau=tau)
    view = moved(shown, tau=None)
    assert "needs either tau or size" in view["error"] and view["at"] == "tau"


def test_an_error_is_next_to_the_control_that_caused_it():
    shown = widgets.panel(PrioritySampling)
    charts = shown.view["charts"]
    for name, bad, words in (
        ("size", 2.5, "PrioritySampling.size = 2.5 is not allowed: need an integer >= 1"),
        ("theta", -1.0, "PrioritySampling.theta = -1.0 is not allowed: need a number >= 0"),
        ("epsilon", -1.0, "DP.epsilon = -1.0 is not allowed"),
        ("epsilon", 0.0, "need a finite epsilon > 0"),
        ("size", "many", "size = 'many' is not allowed: need a number"),
        ("transform", "Fourier()", "is not allowed: need one of"),
    ):
        view = moved(shown, **{name: bad})
        assert words in view["error"] and view["at"] == name and view["charts"] == charts
        with pytest.raises(ValueError) as refused:
            shown.set(**{name: bad})
        assert str(refused.value) == view["error"]
    assert moved(shown, size=11)["error"] == "" and shown.values["size"] == 11
    with pytest.raises(ValueError, match="no control 'espilon'"):
        shown.set(espilon=1.0)
    with pytest.raises(ValueError, match="seeds = 0 is not allowed"):
        shown.set(seeds=0)


def test_an_instance_is_where_it_starts():
    start = PrioritySampling(DP(0.3), size=25, transform=Dyadic())
    shown = widgets.panel(start, theta=3.0)
    assert shown.release.mechanism == replace(start, theta=3.0)
    assert control(shown, "size").value == 25 and 25 in control(shown, "size").stops
    assert "export" not in " ".join(shown.view["commands"])
    asked = widgets.panel(LaplaceQueries(DP(1.0), Marginals(3)))
    assert len(asked.release.estimate) == 1536
    assert ["not moved here", "workload = Marginals(k=3)"] in asked.view["facts"]
    wrapped = widgets.panel(mechanisms.Laborious, theta=7.0, epsilon=2.0)
    assert wrapped.release.mechanism == mechanisms.Laborious(HighPassFilter(DP(2.0), theta=7.0))
    assert released(wrapped).mechanism == wrapped.release.mechanism


# ---- what is measured


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


def test_two_mechanisms_are_drawn_on_shared_noise():
    table = GaussianSparse(1000, 0.5, 100.0).load()
    cells = Ranges(table.keys, table.keys + 1)
    shown = widgets.panel(
        HighPassFilter, GaussianSparse(1000, 0.5, 100.0), compare="ThresholdSampling"
    )
    drawn = shown.subject.draw(shown.values, True, None)
    noise = [r.answer(cells, weights="raw") - table.counts for r in drawn.releases]
    assert (noise[0] == noise[1]).all() and noise[0].std() > 0.5
    shown = widgets.panel(HighPassFilter)
    shown.set(compare="GeometricHistogram")
    assert {"Guarantee, filter", "Guarantee, geometric"} <= {*facts(shown)}
    drawn = {line["name"] for line in shown.view["charts"][0]["lines"]}
    assert {"filter", "geometric"} <= drawn
    assert (shown.rows[shown.rows.panel == "whole"].series == "truth").sum() == 64
    made = {}
    exec(shown.view["code"], made)
    assert made["other"].mechanism == GeometricHistogram(DP(1.0))
    again = widgets.from_settings("HighPassFilter", shown.view["words"])
    pd.testing.assert_frame_equal(again.rows, shown.rows)
    assert moved(shown, compare="PrivTree")["at"] == "compare"  # it takes records
    moved(shown, compare="DirichletSynthesis")
    assert {"records", "total"} <= set(shown.values)  # the other's own fields have sliders
    moved(shown, compare="")
    assert not {"records", "total"} & set(shown.values) and "Guarantee" in facts(shown)


def test_shared_settings_that_the_other_cannot_have_are_left_to_it():
    shown = widgets.panel(ThresholdSampling, size=20, compare="HighPassFilter")
    _, other = shown.subject.at(shown.values)
    assert other == HighPassFilter(DP(1.0), size=20)  # and not θ = 0 as well


def test_a_map_shows_the_leaves_and_says_how_they_are_decided():
    shown = widgets.panel(ImprovedAdaptiveHistogram, threshold=50)
    truth, map_ = shown.view["charts"][:2]
    assert truth["kind"] == map_["kind"] == "cells" and map_["outlines"]
    drawn = shown.rows[(shown.rows.panel == "map") & (shown.rows.series != "truth")]
    area = (drawn.x1 - drawn.x0) * (drawn.y1 - drawn.y0)
    assert (drawn.value * area).sum() == pytest.approx(shown.release.estimate.values.sum())
    said = facts(shown)
    assert said["structure"] == "ε = 0.306 at worst where 0.5 is paid"
    assert said["discount"].endswith("Theorem 3 asks for 53, and 50 are certified to do")
    assert said["an empty node splits"] == "with probability 2.1e-06"


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
    shown.set(transform=None, seed=1)
    assert abs(np.corrcoef(first, noise(shown))[0, 1]) < 0.2


# ---- data


KINDS = {
    ThresholdSampling: GaussianSparse(1000, 0.1),
    PrivTree: Towns(1000),
    SRA: InteractionsTwin(users=100, items=20, records=1000, max_per_user=50),
}


@pytest.mark.parametrize("cls", KINDS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("says", [True, False, "method"])
def test_the_private_has_no_panel_whatever_its_dataset_says(cls, says):
    public = KINDS[cls].load()

    @value
    class Liar:
        truth_public = says if says != "method" else lambda self: False
        domain, bound = public.domain, Bound(1, 1)

        def load(self):
            assert says is True, "it was read"
            return replace(public, truth_public=False, bound=Bound(1, 1))

    for refused in (lambda: loaded(Liar()), lambda: widgets.panel(cls, Liar())):
        with pytest.raises(ValueError, match="truth_public"):
            refused()


def test_data_of_your_choice_must_be_public():
    shown = widgets.panel(PrioritySampling, dataset=GaussianSparse(10_000), size=500)
    assert len(shown.release.estimate) == 500 and "m=10000" in shown.view["code"]
    with pytest.raises(ValueError, match="need a dataset that anybody can load from its text"):
        widgets.panel(PrioritySampling, dataset=TINY.load())
    with pytest.raises(ValueError, match="need one of SparseTable, not Records"):
        widgets.panel(PrioritySampling, dataset=datasets.Towns(1000))


def test_values_that_nobody_listed_have_no_panel():
    for name in ("GeometricSelection", "WeightedSelection"):
        cls = getattr(mechanisms, name)
        for mechanism in (cls, cls(DP(1.0, 1e-6))):
            with pytest.raises(
                ValueError, match=f"no small dataset is known for {name}.* takes UnlistedValues"
            ):
                widgets.panel(mechanism)


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
    with pytest.raises(ValueError, match="need a tuple of attributes"):
        datasets.Projected(adults, "Race")
    with pytest.raises(ValueError, match="need a dataset of counts"):
        datasets.Projected(3, ("Race",))


# ---- files


def test_noise_is_simulated_and_stays_so(tmp_path):
    shown = widgets.panel(ThresholdSampling)
    cautions = [text for name, text in shown.view["facts"] if name == "Caution"]
    assert shown.release.simulated and "Do not publish it" in cautions[0]
    with pytest.raises(ValueError, match="replayed|never saved"):
        shown.release.save(tmp_path / "leak.parquet")


@pytest.mark.slow
def test_what_is_exported_is_what_its_command_makes(tmp_path):
    shown = widgets.panel(ThresholdSampling)
    moved(shown, epsilon=0.4)
    assert "need" in moved(shown, tau=-1.0)["error"]
    shown.view = shown.view | dict(exact=False)  # as a slower picture is while one drags
    kept = figures.load(shown.save(tmp_path))
    assert set(kept.images) == {"pdf", "svg", "png"} and kept.rows.simulated.all()
    words = kept.manifest["command"].split()
    assert words == ["workbench", "export", "ThresholdSampling", "epsilon=0.4"]
    assert np.allclose(widgets.from_settings(words[2], words[3:]).rows.value, kept.rows.value)
    shown.set(epsilon=0.5)
    other = figures.load(shown.save(tmp_path))
    assert other.folder != kept.folder and figures.load(kept.folder).rows.equals(kept.rows)


def test_settings_are_read_from_words_and_links():
    for bad in ("dyadic=maybe", "nonsense=1", "epsilon", "epsilon=much", "sides=3"):
        with pytest.raises(ValueError, match="is not allowed|no control '(dyadic|nonsense)'"):
            widgets.from_settings("HighPassFilter", [bad])
    with pytest.raises(ValueError, match="there is no mechanism 'Filtr'"):
        widgets.from_settings("Filtr", [])
    with pytest.raises(ValueError, match="privacy = 'tau' is not allowed: need one of"):
        widgets.panel(PrioritySampling, privacy="tau")
    shown = widgets.panel(HighPassFilter)
    words = ["epsilon=0.5", "theta=auto", "size=12", "consistent=off", "seed=3"]
    shown._on_message(None, dict(kind="link", words=words), [])
    assert (
        shown.release.mechanism == HighPassFilter(DP(0.5), size=12)
        and shown.values["seed"] == 3
    )
    assert shown.view["words"] == ["epsilon=0.5", "theta=auto", "size=12", "seed=3"]
    shown._on_message(None, dict(kind="link", words=["theta=x"]), [])
    assert "theta = 'x' is not allowed" in shown.view["error"]


# ---- work in a process of its own


def test_work_is_exact_elsewhere_and_the_same():
    shown = widgets.panel(ThresholdSampling)
    moved(shown, rest=True, bands=True, epsilon=0.3)
    view = settled(shown)
    assert view["exact"] and view["charts"][0]["lines"][0]["low"] and shown.progress == {}
    here = widgets.panel(ThresholdSampling, epsilon=0.3, seeds=20)
    pd.testing.assert_frame_equal(here.rows, shown.rows)


class Slow(MechanismSubject):
    """Draws that nobody wants to wait for."""

    def draw(self, values, exact, progress):
        if exact and values["seed"] > 2:
            time.sleep(600)
        return super().draw(values, exact, progress)


def slow():
    return Panel(Slow(ThresholdSampling.example(DP(1.0)), TINY))


@pytest.mark.slow
def test_stop_stops_even_one_long_draw_and_keeps_the_others():
    shown = slow()
    moved(shown, rest=True, bands=True, epsilon=0.3)
    until(lambda: shown.progress.get("done") == 3)
    time.sleep(0.3)
    shown._on_message(None, {"kind": "stop"}, [])
    assert settled(shown)["note"] == "stopped after 3 of 20 seeds"
    assert set(shown.rows.seed) == {0, 1, 2} and shown.progress == {}
    moved(shown, rest=True, epsilon=0.4)  # and the next one works
    assert settled(shown)["exact"] and shown.view["note"] == ""


@pytest.mark.slow
def test_the_last_move_wins():
    shown = slow()
    moved(shown, rest=True, bands=True, epsilon=0.3, seed=3)  # which takes ten minutes
    time.sleep(1.5)
    moved(shown, rest=True, epsilon=0.5, seed=0)
    assert settled(shown)["exact"] and shown.values["epsilon"] == 0.5
    assert set(shown.rows.seed) == {0}
    moved(shown, rest=True, bands=True, epsilon=0.3)
    shown.set(epsilon=5.0, seeds=1)  # from Python too
    time.sleep(1.5)
    assert facts(shown)["Guarantee"].startswith("5-DP: ") and shown.progress == {}
    assert "low" not in shown.view["charts"][0]["lines"][0] and shown.release.privacy == DP(5.0)


@pytest.mark.slow
def test_a_worker_that_died_while_it_was_idle_is_replaced():
    shown = widgets.panel(ThresholdSampling)
    worker.start()
    for process in worker._pool._processes:
        os.kill(process, signal.SIGKILL)
    time.sleep(0.5)
    moved(shown, rest=True, bands=True, epsilon=0.3)
    assert settled(shown)["exact"] and shown.values["seeds"] == 20


@pytest.mark.slow
def test_stop_of_a_panel_that_waits_ends_nobody_elses_work():
    first, second = slow(), widgets.panel(ThresholdSampling)
    moved(first, rest=True, bands=True, seed=3)
    time.sleep(1.0)
    moved(second, rest=True, bands=True, epsilon=0.3)
    pool = worker._pool
    second._on_message(None, {"kind": "stop"}, [])
    assert settled(second)["note"] == "stopped after 0 of 20 seeds"
    assert worker._pool is pool and first.progress  # still at work for the first
    first._on_message(None, {"kind": "stop"}, [])
    assert settled(first)["note"] == "stopped after 0 of 20 seeds"


class Broken(MechanismSubject):
    """Somebody else's mechanism."""

    def draw(self, values, exact, progress):
        if values["epsilon"] == 0.3:
            raise ZeroDivisionError("division by zero")
        return super().draw(values, exact, progress)


def test_whatever_is_raised_is_a_sentence_on_the_panel():
    shown = Panel(Broken(ThresholdSampling.example(DP(1.0)), TINY))
    view = moved(shown, epsilon=0.3)
    assert view["error"] == "ZeroDivisionError: division by zero" and view["seq"] == 1
    shown._on_message(None, dict(kind="set", seq=2), [])
    assert "KeyError" in shown.view["error"]
    assert moved(shown, epsilon=0.4)["error"] == ""


# ---- Vega, which draws


def test_panels_share_one_copy_of_vega():
    first, second = widgets.panel(ThresholdSampling), widgets.panel(HighPassFilter)
    assert first.drawing is second.drawing and len(first.drawing.script) > 100_000
    states = [json.dumps(shown.get_state()) for shown in (first, second)]
    assert not any(first.drawing.script in state for state in states)
    first.drawing.close()
    third = widgets.panel(HighPassFilter)
    assert third.drawing is not first.drawing and third.drawing.comm is not None


def test_the_subtitle_has_no_backticks():
    assert widgets.panel(SRA).spec["words"] == "Count at most l random records per user."


def test_marks_are_those_of_the_printed_figures():
    shown = widgets.panel(SRA)
    lines = [line for chart in shown.view["charts"] for line in chart["lines"]]
    used = {line["marker"] for line in lines if line.get("marker")}
    used |= {marker for _, marker in plots.SERIES_STYLES.values()}
    assert used <= set(shown.spec["markers"])


# ---- mechanisms written in a notebook

NOTEBOOK = '''
from typing import ClassVar
import numpy as np
from workbench import DP, Release, SparseTable, noise
from workbench.estimates import Summary
from workbench.mechanisms.protocol import parameter, budget_field, sensitivity
from workbench.value import value

@value
class Rounded:
    """Counts rounded to multiples of `step`, with noise on those of non-empty cells alone.

    No guarantee worth the name: it is here to be drawn.
    """
    budget: DP = budget_field()
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
    shown = widgets.panel(rounded, step=5.0, cut=15.0)
    assert titles(shown) == TABLE
    assert shown.subject.words.startswith("Counts rounded to multiples")
    assert shown.release.mechanism == rounded(DP(1.0), step=5.0, cut=15.0)
    assert "my way" in [line["name"] for line in shown.view["charts"][0]["lines"]]
    assert (
        "release = Rounded(budget=DP(epsilon=1.0), step=5.0, cut=15.0)(" in shown.view["code"]
    )
    assert [*shown.values] == ["epsilon", "compare", "step", "cut", "loud", "seed", "seeds"]
    assert control(shown, "loud").kind == "switch" and control(shown, "step").unit == "counts"
    assert shown.view["commands"] == []  # the command line does not know it
    assert ["not moved here", "seeds = 3"] in shown.view["facts"]
    kept = figures.load(shown.save(tmp_path))
    assert "Rounded(" in kept.manifest["command"] and len(kept.rows) == len(shown.rows)
    moved(shown, rest=True, bands=True, epsilon=0.5)
    assert not settled(shown)["error"] and shown.rows.seed.nunique() == 20
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
        budget: DP = budget_field()
        takes: ClassVar[type] = SparseTable

        def __call__(self, table, rng=None):
            other = SparseTable.from_keys(Domain(("y",), (3,)), [1], [9], Bound())
            return GeometricHistogram(self.budget)(other, rng)

    with pytest.raises(ValueError, match="estimates neither"):
        widgets.panel(Elsewhere(DP(1.0)))
