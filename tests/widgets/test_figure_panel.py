"""Sliders on a figure: its own parameters, run roughly and then with full effort, in another process."""

import time

import pytest

from workbench import widgets
from workbench.widgets import figure_panel

ID = "cormode2012_fig3"
TINY = dict(seeds=2, queries=5, m=2000, size=100, low_size=20, small=(100,), large=(500,))


def until(happened, seconds=120):
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


@pytest.fixture
def panel(tmp_path):
    made = figure_panel.FigurePanel(
        figure_panel.figures.find_figure(ID).at("quick", **TINY), tmp_path
    )
    yield made
    made.stop()


def test_every_parameter_has_a_control_and_nothing_runs_by_itself(panel):
    assert set(panel._editors) == set(panel.figure.parameters())
    assert panel._stop.disabled and not panel._picture.value
    assert f"workbench reproduce {ID}" in repr(panel) and "-p seeds=2" in repr(panel)


def test_what_is_not_allowed_is_said_and_the_rest_stays(panel):
    panel._editors["epsilon"]._widget.value = "0"
    assert "epsilon = 0 is not allowed: need a number" in panel._message.value
    assert panel.figure.epsilon == 0.1 and panel._stop.disabled
    panel._editors["small"]._widget.value = "10,x"
    assert "small = &#x27;x&#x27; is not allowed" in panel._message.value
    with pytest.raises(ValueError, match="has no parameter 'epsilonn'; did you mean epsilon"):
        panel.set(epsilonn=1)
    with pytest.raises(ValueError, match="no figure 'nobody'"):
        widgets.figure("nobody")


@pytest.mark.slow
def test_a_move_runs_roughly_then_fully_and_says_what_makes_the_same(
    panel, tmp_path, monkeypatch
):
    monkeypatch.setattr(figure_panel, "PAUSE", 0.01)
    panel._editors["epsilon"]._slider.value = 1.0
    assert panel.figure.epsilon == 1.0 and panel._editors["epsilon"]._widget.value == "1.0"
    until(lambda: panel._stop.disabled)
    assert bytes(panel._picture.value).startswith(b"\x89PNG")
    assert "-p epsilon=1.0" in panel._message.value
    changed = panel._message.value.partition("not the paper's setting: ")[2]
    assert "epsilon = 1.0" in changed
    kept = {f.name: f.stat().st_mtime_ns for f in (tmp_path / "store").iterdir()}
    panel.set(epsilon=1.0)
    until(lambda: panel._stop.disabled)
    assert kept == {f.name: f.stat().st_mtime_ns for f in (tmp_path / "store").iterdir()}
    panel._export.click()
    until(lambda: panel._stop.disabled)
    (folder,) = (tmp_path / "quick").iterdir()
    assert folder.name.startswith(f"{ID},") and ",epsilon=1.0," in folder.name
    assert (folder / "manifest.json").exists()
