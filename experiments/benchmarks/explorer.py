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

from experiments.benchmarks import _timing as timing
from workbench import plots, widgets
from workbench.reproduction import project_folder

PAINT, DRAG = 1.0, 0.15  # seconds
OPEN = """
import json, time
from workbench import widgets
begun = time.perf_counter()
shown = widgets.{name}()
opened = time.perf_counter() - begun
stops = next(c.stops for c in shown.scene.controls if c.name == "epsilon")
spent = []
for seq, epsilon in enumerate([*stops, *stops[::-1]], 1):
    begun = time.perf_counter()
    told = dict(kind="set", seq=seq, values=dict(epsilon=epsilon), seed=0, bands=False, rest=False)
    shown._on_message(None, told, [])
    json.dumps(shown.view)
    spent.append(time.perf_counter() - begun)
print(json.dumps([opened, spent[1:]]))
"""
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
    """Five panels at their default size, and the redrawing of a figure by matplotlib beside them."""
    rows, redraw = [], timing.format_seconds(matplotlib_redraw())
    for name in widgets.ALL:
        code = OPEN.format(name=name)
        opened = [json.loads(_told(code)) for _ in range(3)]
        first, spent = median(o for o, _ in opened), sum((s for _, s in opened), [])
        rows += [_row(f"{name}: opened", [first], PAINT)]
        rows += [_row(f"{name}: a drag of ε, drawn and told", spent, DRAG) | {"peer": redraw}]
    for name, spent in in_a_browser().items():
        rows.append(_row(f"{name}: a drag of ε, seen in a browser", spent, DRAG))
    return timing.to_frame(rows)


def _told(code: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    ).stdout


def _row(what: str, spent: list[float], most: float) -> dict:
    own = median(spent)
    told = timing.format_seconds(own)
    told += f", at most {timing.seconds(max(spent))}" * (len(spent) > 1)
    limit = f"≤ {timing.seconds(most)}"
    return dict(what=what, ours=told, peer="", ratio=own / most, limit=limit, met=own <= most)


def matplotlib_redraw() -> float:
    """Seconds to draw the summaries' figure anew for the screen."""
    from io import BytesIO

    shown = widgets.summaries()

    def redraw():
        fig = shown.figure()
        fig.savefig(BytesIO(), format="png", dpi=100)
        plots.close(fig)

    return timing.median_seconds(redraw, repeat=5)[0]


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
            found = {}
            for name in widgets.ALL:
                panel = page.locator(f"[data-panel={name}]")
                panel.locator("figure").first.wait_for()
                found[name] = page.evaluate(DRAGGED, panel.element_handle())
            chromium.close()
        return found
    finally:
        server.send_signal(signal.SIGINT)
        server.communicate(timeout=30)
