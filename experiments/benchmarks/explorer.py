"""Panels under a hand: first paint and drags, in their process and in a browser, against their limits.

All on the clock, as a person waits. Without Chromium (and Playwright) the browser is left out.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from experiments.benchmarks._timing import format_seconds, in_process, median_seconds, once, row
from workbench import mechanisms, widgets
from workbench.compiled import project_folder
from workbench.figures import plots

PAINT = 1.0  # seconds
DRAG = 0.15
NAMES = (
    "ThresholdSampling",
    "HierarchicalHistogram",
    "PrivTree",
    "SRA",
)  # of the explorer's notebook
DRAGGED = """
async (root) => {
  const slider = root.querySelector("[data-name=epsilon] input[type=range]"), spent = [];
  for (let k = 0; k < 40; k++) {
    const drawn = new Promise((done) => {
      const watch = new MutationObserver(() => { watch.disconnect(); done(); });
      watch.observe(root, { attributes: true, attributeFilter: ["data-seq"] });
    });
    slider.value = Math.round(slider.max * (0.3 + 0.01 * k));
    const begun = performance.now();
    slider.dispatchEvent(new Event("input"));
    await drawn;
    spent.push((performance.now() - begun) / 1000);
    await new Promise((next) => setTimeout(next, 30));
  }
  return spent.slice(5);
}
"""


def main():
    """The explorer's panels, and the redrawing of a figure by matplotlib for comparison."""
    rows = []
    redraw = format_seconds(matplotlib_redraw())
    for name in NAMES:
        opened = []
        drags = []
        for _ in range(3):
            first_paint, spent = json.loads(in_process(open_and_drag, name))
            opened.append(first_paint)
            drags += spent
        rows.append(_row(f"{name}: opened", [median(opened)], PAINT))
        rows.append(_row(f"{name}: a drag of ε, drawn and told", drags, DRAG, redraw))
    for name, drags in in_a_browser().items():
        rows.append(_row(f"{name}: a drag of ε, seen in a browser", drags, DRAG))
    return rows


def open_and_drag(name: str) -> None:
    """Print the seconds until a panel is open, and those of each move of ε."""
    opened, shown = once(lambda: widgets.panel(getattr(mechanisms, name)))
    stops = next(c.stops for c in shown.subject.controls(shown.values) if c.name == "epsilon")
    spent = []
    for seq, epsilon in enumerate([*stops, *stops[::-1]], 1):
        begun = perf_counter()
        values = shown.values | dict(epsilon=epsilon)
        told = dict(kind="set", seq=seq, values=values, seed=0, bands=False, rest=False)
        shown._on_message(None, told, [])
        json.dumps(shown.view)
        spent.append(perf_counter() - begun)
    print(json.dumps([opened, spent[1:]]))


def _row(what: str, spent: list[float], most: float, peer: str = "") -> dict:
    typical = median(spent)
    ours = format_seconds(typical)
    if len(spent) > 1:
        ours += f", at most {format_seconds(max(spent))}"
    limit = f"≤ {format_seconds(most)}"
    return row(what, ours, peer, typical / most, limit, typical <= most)


def matplotlib_redraw() -> float:
    """Seconds to draw a panel's figure anew for the screen."""
    from io import BytesIO

    shown = widgets.panel(mechanisms.ThresholdSampling)

    def redraw():
        fig = shown.figure()
        fig.savefig(BytesIO(), format="png", dpi=100)
        plots.close(fig)

    return median_seconds(redraw, repeat=5)[0]


def in_a_browser() -> dict[str, list[float]]:
    """Seconds from a slider's event to the changed picture, by panel, in the dashboard."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    if not browser:
        return {}
    server = subprocess.Popen(
        [Path(sys.executable).with_name("workbench"), "explore", "--no-browser"]
        + ["--notebooks", str(project_folder() / "notebooks")],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        address = re.search(r"http://\S+", server.stdout.readline()).group()
        with sync_playwright() as play:
            chromium = play.chromium.launch(
                executable_path=browser, args=["--no-sandbox", "--disable-gpu"]
            )
            page = chromium.new_page()
            page.set_default_timeout(60_000)
            page.goto(address)
            drags = {}
            for name in NAMES:
                panel = page.locator(f"[data-panel={name}]").first
                panel.locator("figure").first.wait_for()
                drags[name] = page.evaluate(DRAGGED, panel.element_handle())
            chromium.close()
        return drags
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)
