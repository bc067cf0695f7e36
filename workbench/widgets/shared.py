"""Panels in one file: sliders that still move when the kernel is gone, over a grid drawn beforehand.

The page holds every picture of the grid as numbers, packed, and the same `panel.js` that draws a live
panel; it fetches nothing, and runs from a disk, a mail or a web server.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
from collections.abc import Callable, Sequence
from html import escape
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.figures import write_atomically
from workbench.widgets.controls import page_value
from workbench.widgets.panels import HERE, Panel
from workbench.widgets.scenes import Scene
from workbench.widgets.setting import Setting
from workbench.widgets.view import page_view, scene_spec

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body {{ margin: 0 auto; padding: 16px; max-width: 1240px; background: #fff; color: #1a1a1a;
font: 14px/1.5 system-ui, "DejaVu Sans", sans-serif }} h1 {{ font-size: 20px }}
{css}</style></head>
<body><h1>{title}</h1><p>{words}</p>
{places}
<script type="module">
{script}
async function unpacked(text) {{
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}}
for (const place of document.querySelectorAll("[data-grid]")) {{
  const {{ spec, keys, views }} = await unpacked(place.querySelector("script").textContent.trim());
  const listeners = {{}};
  const model = {{
    view: views[spec.first],
    get(name) {{ return name === "spec" ? spec : name === "view" ? this.view : {{}}; }},
    on(name, f) {{ listeners[name] = f; }}, off() {{}},
    send(message) {{
      const key = keys.map((k) => k.stops.indexOf(message.values[k.name])).join();
      this.view = {{ ...views[key], seq: message.seq }};
      listeners["change:view"]();
    }},
  }};
  render({{ model, el: place }});
}}
</script></body></html>
"""
_CHUNK = 12  # pictures that a process draws before it says so
_WORDS = (
    "Sliders move over settings that were computed beforehand; all noise is simulated, and nothing "
    "here is a release to publish. Made by <code>workbench explore --html</code>."
)


def share(
    shown: Sequence[Panel],
    path: str | Path,
    *,
    title: str = "The explorer",
    most: int | None = None,
    workers: int | None = None,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> Path:
    """Write panels as one page whose sliders need no kernel.

    Each moves over its scene's `grid`, from the settings that it has now, drawn once with its seed.
    The page appears whole or not at all.

    Parameters
    ----------
    shown
        The panels, in their order on the page.
    path
        The file to write (HTML); its folder is made.
    title
        Of the page.
    most
        At most so many stops of a slider, besides its present one.
    workers
        Processes that draw; one a core, if not given.
    tell
        Hears how many pictures of how many are done.

    Returns
    -------
    Path
        The file.
    """
    from joblib import Parallel, cpu_count, delayed

    path = Path(path)
    if not shown:
        raise ValueError("there are no panels to share: need one at least")
    path.parent.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    grids = [_grid(panel, most) for panel in shown]
    tasks = [
        (panel.scene, grid.settings[start : start + _CHUNK], panel.seed)
        for panel, grid in zip(shown, grids, strict=True)
        for start in range(0, len(grid.settings), _CHUNK)
    ]
    pictures = sum(len(grid.settings) for grid in grids)
    views: list[dict] = []
    run = Parallel(n_jobs=workers or cpu_count(), return_as="generator")
    for chunk in run(delayed(_views)(*task) for task in tasks):
        views += chunk
        tell(len(views), pictures)
    rest = iter(views)
    places = [
        _place(panel, grid, list(islice(rest, len(grid.settings))))
        for panel, grid in zip(shown, grids, strict=True)
    ]
    page = _PAGE.format(
        title=escape(title),
        words=_WORDS,
        css=(HERE / "panel.css").read_text(),
        places="\n".join(places),
        script=(HERE / "panel.js").read_text().replace("export default { render };", ""),
    )
    write_atomically(path, lambda draft: draft.write_text(page, encoding="utf-8"))
    return path


def save_panels(
    shown: Sequence[Panel], stem: str, title: str, *, profile: str, results: str | Path
) -> None:
    """Write the first panel as the figure `stem`, and all of them beside it as one page.

    Not where a notebook is served as a dashboard: nobody waits for files there.

    Parameters
    ----------
    shown
        The panels, in their order on the page.
    stem
        The figure's name.
    title
        Of the figure and of the page.
    profile
        The folder in `results`; of the profile "quick" the page has few stops.
    results
        The folder of all figures.
    """
    if "VOILA_KERNEL_ID" not in os.environ:
        folder = shown[0].save(results, stem=stem, title=title, profile=profile)
        most = 1 if profile == "quick" else None  # beside the present one
        share(shown, folder / "explorer.html", title=title, most=most)


class _Grid(NamedTuple):
    """The stops of the controls that a page can move, the present ones among them; all its settings."""

    stops: dict[str, list]
    settings: list[dict[str, Any]]


def _grid(panel: Panel, most: int | None) -> _Grid:
    kinds = {control.name: control.kind for control in panel.scene.controls}
    stops = {}
    for name, choices in panel.scene.grid.items():
        present = panel.values[name]
        if kinds[name] == "slider":
            count = min(most or len(choices), len(choices))
            chosen = [choices[round(i)] for i in np.linspace(0, len(choices) - 1, count)]
            stops[name] = sorted({present, *chosen})
        else:
            stops[name] = list(dict.fromkeys([*choices, present]))
    places = product(*stops.values())
    settings = [panel.values | dict(zip(stops, place, strict=True)) for place in places]
    return _Grid(stops, settings)


def _views(scene: Scene, settings: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """What the page shows at each setting; where there is nothing to see, why."""
    views = []
    for values in settings:
        try:
            setting = Setting.of(scene, values)
            view = page_view(setting, seed, [setting.draw(seed, True)])
            views.append(view | dict(exact=True))
        except ValueError as e:
            views.append(dict(error=str(e)))
    return views


def _place(panel: Panel, grid: _Grid, views: list) -> str:
    """A panel's place on the page: its grid, packed, and what to say where no script runs."""
    spec = scene_spec(panel.scene)
    for control in spec["controls"]:
        name = control["name"]
        stops = grid.stops.get(name, [panel.values[name]])
        control["stops"] = [page_value(stop) for stop in stops]
    keys = [
        dict(name=name, stops=list(map(page_value, stops)))
        for name, stops in grid.stops.items()
    ]
    places = product(*(range(len(stops)) for stops in grid.stops.values()))
    names = [",".join(map(str, place)) for place in places]
    present = [stops.index(panel.values[name]) for name, stops in grid.stops.items()]
    spec |= dict(fixed=True, first=",".join(map(str, present)))
    packed = _packed(dict(spec=spec, keys=keys, views=dict(zip(names, views, strict=True))))
    fallback = f"<noscript>{escape(panel.scene.title)}: this needs JavaScript.</noscript>"
    return f'<div data-grid><script type="application/json">{packed}</script>{fallback}</div>'


def _packed(data: dict[str, Any]) -> str:
    """JSON, compressed, as text without characters that HTML knows."""
    text = json.dumps(data, separators=(",", ":"))
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
