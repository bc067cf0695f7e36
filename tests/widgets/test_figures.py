"""A figure under its own parameters: run roughly and then with full effort, in another process."""

import json
import shlex
from pathlib import Path

import pytest

from tests.widgets.pages import moved, settled, until
from workbench import widgets
from workbench.figures import find_figure, results_folder
from workbench.figures.recorded import recorded_rows
from workbench.figures.status import grid
from workbench.widgets import panels
from workbench.widgets.figure_subject import FigureSubject, listed_figures, rough_figure

ID = "cormode2012_fig3"
TINY = dict(seeds=2, queries=5, m=2000, size=100, low_size=20, small=(100,), large=(500,))


@pytest.fixture
def shown(tmp_path):
    subject = FigureSubject(ID, tmp_path)
    made = panels.Panel(subject, **subject.settings(find_figure(ID).at("quick", **TINY)))
    yield made
    made._on_message(None, {"kind": "stop"}, [])


def test_every_parameter_has_a_control_and_nothing_runs_by_itself(shown):
    figure = shown.subject.at(shown.values)
    assert set(shown.values) == set(figure.parameters())
    assert figure == find_figure(ID).at("quick", **TINY)
    assert not shown.view["exact"] and shown.progress == {}
    assert f"workbench reproduce {ID}" in repr(shown) and "-p seeds=2" in repr(shown)
    assert [c["name"] for c in shown.spec["controls"][:2]] == ["epsilon", "theta"]


@pytest.mark.parametrize("id", listed_figures())
def test_every_stop_of_every_control_is_a_figure(id):
    subject = FigureSubject(id, Path())
    start = {c.name: c.value for c in subject.controls({})}
    quick = find_figure(id).at("quick")
    assert subject.at(start) == quick and subject.settings(quick) == start
    for control in subject.controls(start):
        for stop in control.stops if control.kind != "several" else ():
            figure = subject.at(start | {control.name: control.read(stop)})
            assert getattr(figure, control.name) == stop
            assert rough_figure(figure).id == id
        if control.kind == "several":
            assert subject.at(start | {control.name: [*control.stops[:1]]})
            with pytest.raises(ValueError, match="need"):
                subject.at(start | {control.name: []})
        if control.optional:
            subject.at(start | {control.name: None})


@pytest.mark.slow
@pytest.mark.parametrize("id", listed_figures())
def test_mechanisms_take_what_controls_offer(id):
    """At the ends of each slider, and next to its start."""
    subject = FigureSubject(id, Path())
    start = {c.name: c.value for c in subject.controls({})}
    for c in subject.controls(start):
        effort = subject.at(start).parameters()[c.name].metadata["kind"] == "effort"
        if c.kind != "slider" or effort:
            continue
        at = c.stops.index(c.value) if c.value in c.stops else 0
        for stop in {c.stops[0], c.stops[-1], *c.stops[at : at + 2]}:
            figure = subject.at(start | {c.name: c.read(stop)})
            try:
                assert figure.sweeps()
            except (FileNotFoundError, NotImplementedError):  # no file, or no sweep
                pass
            except ValueError as e:  # it depends on the data alone
                assert "cells" in str(e)


TIMED = {"chen2012_fig5", "cormode2012_fig4", "cormode2012_fig5"}  # times are not recorded


@pytest.mark.parametrize("id", listed_figures())
def test_a_panel_opens_with_a_picture(id, tmp_path):
    subject = FigureSubject(id, tmp_path)
    figure = find_figure(id).at("quick")
    opened = panels.Panel(subject).view
    assert opened["image"] and not opened["exact"] and "paper's settings" in opened["lead"]
    sliders = [c for c in subject.controls({}) if c.kind == "slider"]
    for c in [c for c in sliders if c.stops[-1] != c.value][:1]:
        other = panels.Panel(subject, **{c.name: c.stops[-1]})
        assert other.view["image"] == opened["image"]
        assert other.view["old"] and opened["old"]
        assert recorded_rows(subject.at(other.values)) is None
    assert (recorded_rows(figure) is None) == (id in TIMED)


@pytest.mark.slow
@pytest.mark.parametrize("id", [id for id in listed_figures() if id not in TIMED])
def test_recorded_rows_are_drawn_without_a_trial(id, tmp_path):
    subject = FigureSubject(id, tmp_path)
    start = subject.settings(find_figure(id).at("quick"))
    drawn = subject.draw(start, False, tmp_path / "progress")
    assert drawn.exact and drawn.lead == "Numbers recorded with the package."
    assert len(drawn.image) > 5000 or drawn.table
    assert not (tmp_path / "store").exists() and not (tmp_path / "progress").exists()


@pytest.mark.parametrize("id", listed_figures())
def test_code_command_and_link_have_the_settings(id):
    """After two controls were moved."""
    shown = panels.Panel(FigureSubject(id, results_folder()))
    sliders = [c for c in shown.subject.controls({}) if c.kind == "slider"]
    given = {c.name: next(s for s in c.stops[::-1] if s != c.value) for c in sliders[:2]}
    shown._show(shown._read(given), [shown.subject.saved(shown._read(given))])
    figure = shown.subject.at(shown.values)
    assert {name: getattr(figure, name) for name in given} == given
    made = {}
    exec(shown.view["code"].replace("widgets.figure(", "made = widgets.figure("), made)
    assert made["made"].values == shown.values
    (command,) = shown.view["commands"]
    workbench, reproduce, named, *words = shlex.split(command)
    assert (workbench, reproduce, named) == ("workbench", "reproduce", id)
    settings = [word for word in words if "=" in word]
    assert [find_figure(id).at("quick", **x) for x in grid(find_figure(id), settings)] == [
        figure
    ]
    again = panels.Panel(shown.subject, **panels.settings_of(shown.view["words"]))
    assert again.values == shown.values


@pytest.fixture
def chooser(monkeypatch, tmp_path):
    """The list of figures on a machine where none has run."""
    monkeypatch.setattr("workbench.figures.results_folder", lambda: tmp_path)
    return widgets.figures()


def test_a_choice_shows_its_picture_while_the_figure_runs(chooser, monkeypatch):
    assert chooser.view["exact"] and not chooser.view["image"]
    monkeypatch.setattr(chooser, "_refine", lambda values, stopped: None)
    view = moved(chooser, rest=True, figure=ID)
    assert view["image"] and not view["exact"] and chooser.values["figure"] == ID
    small = view["image"]
    assert moved(chooser, rest=True, epsilon=0.5)["image"] == small  # the last one stays


def test_what_is_not_allowed_is_said_and_the_rest_stays(shown):
    view = moved(shown, epsilon=0)
    assert "epsilon = 0.0 is not allowed: need a number" in view["error"]
    assert view["at"] == "epsilon" and shown.values["epsilon"] == 0.1
    view = moved(shown, small="10,x")
    assert "small = 'x' is not allowed" in view["error"] and view["at"] == "small"
    assert shown.progress == {}
    with pytest.raises(ValueError, match="no control 'epsilonn'"):
        shown.set(epsilonn=1)
    with pytest.raises(ValueError, match="no figure 'nobody'"):
        widgets.figure("nobody")
    with pytest.raises(ValueError, match="has no parameter 'epsilonn'. Did you mean epsilon"):
        widgets.figure(ID, epsilonn=1)


def test_the_list_has_figures_alone_and_brings_their_controls(chooser):
    (control,) = chooser.spec["controls"]
    assert control["shown"][0] == "choose a figure" and control["stops"][0] == ""
    assert all(name[-1] != "e" or "_" in name for name in control["stops"][1:])
    assert not {"00_tour", "01_explore"} & set(control["stops"]) and len(control["stops"]) > 35
    assert "Hay 2010, Figure 5" in " ".join(control["shown"])
    chooser._on_message(None, {"kind": "export"}, [])
    until(lambda: chooser.view["error"])
    assert "choose a figure first" in chooser.view["error"] and chooser.view["at"] == "figure"
    started = []
    chooser._refine = lambda values, *rest: started.append(values)
    moved(chooser, figure=ID)
    until(lambda: started)
    assert started[0]["figure"] == ID and started[0]["epsilon"] == 0.1
    chooser.values = started[0] | {"epsilon": 0.5}
    moved(chooser, figure="hay2010_thm4")  # whose epsilon is its own
    until(lambda: len(started) > 1)
    assert started[1]["epsilon"] == 1.0 and "theta" not in started[1]
    view = moved(chooser, rest=True, levels_2="x y")
    assert "levels_2 = 'x y' is not allowed" in view["error"] and view["at"] == "levels_2"
    assert chooser.values["figure"] == "hay2010_thm4"


@pytest.mark.slow
def test_a_move_runs_roughly_then_fully_and_says_what_makes_the_same(
    shown, tmp_path, monkeypatch
):
    monkeypatch.setattr(panels, "PAUSE", 0.01)
    views = []
    shown.observe(lambda change: views.append(change["new"]), "view")
    moved(shown, rest=True, epsilon=1.0)
    settled(shown)
    pictures = [view["exact"] for view in views if view["image"]]
    assert pictures == [False, True] and shown.values["epsilon"] == 1.0
    assert "-p epsilon=1.0" in shown.view["commands"][0]
    assert "epsilon = 1.0" in dict(shown.view["facts"])["not the paper's setting"]
    json.dumps(shown.view)
    kept = {f.name: f.stat().st_mtime_ns for f in (tmp_path / "store").iterdir()}
    shown.set(epsilon=1.0)
    assert kept == {f.name: f.stat().st_mtime_ns for f in (tmp_path / "store").iterdir()}
    shown.save()
    (folder,) = (tmp_path / "quick").iterdir()
    assert folder.name.startswith(f"{ID},") and ",epsilon=1.0," in folder.name
    assert (folder / "manifest.json").exists()
    again = panels.Panel(shown.subject, **shown.values)  # which a batch has saved
    assert again.view["image"] and again.view["lead"] == "As a batch saved it."


def test_a_table_is_shown_as_a_table(tmp_path, monkeypatch):
    cls = find_figure("cormode2012_table1")
    monkeypatch.setattr(cls, "draw", lambda figure, rows: None)
    subject = FigureSubject(cls.id, tmp_path)
    values = subject.settings(cls.at("quick")) | {"data": ["OnTheMap twin"]}
    drawn = subject.draw(values, True, None)
    assert drawn.table.startswith("<table") and not drawn.image
