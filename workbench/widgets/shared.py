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
from typing import Any

import numpy as np

from workbench.figures import write_atomically
from workbench.widgets import panels, scenes
from workbench.widgets.controls import page_value
from workbench.widgets.scenes import Scene

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
  const heard = {{}};
  const model = {{
    view: views[spec.first],
    get(name) {{ return name === "spec" ? spec : name === "view" ? this.view : {{}}; }},
    on(name, f) {{ heard[name] = f; }}, off() {{}},
    send(told) {{
      const key = keys.map((k) => k.stops.indexOf(told.values[k.name])).join();
      this.view = {{ ...views[key], seq: told.seq }};
      heard["change:view"]();
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
    shown: Sequence[panels.Panel],
    path: str | Path,
    *,
    title: str = "The explorer",
    most: int | None = None,
    workers: int | None = None,
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> Path:
    """Write panels as one page whose sliders need no kernel; returns its path.

    Each moves over its scene's `grid`, with `most` stops of a slider at most, from the settings that
    it has now, drawn once with its seed, by `workers` processes (all cores, if not given). The page
    appears whole or not at all. `tell` hears how many pictures of how many are done.
    """
    from joblib import Parallel, cpu_count, delayed

    path, workers = Path(path), workers or cpu_count()
    if not shown:
        raise ValueError("there are no panels to share: need one at least")
    path.parent.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    grids = [_grid(panel, most) for panel in shown]
    tasks = [
        (panel.scene, settings[at : at + _CHUNK], panel.seed)
        for panel, (_, settings) in zip(shown, grids, strict=True)
        for at in range(0, len(settings), _CHUNK)
    ]
    views, of = [], sum(len(settings) for _, settings in grids)
    run = Parallel(n_jobs=workers, return_as="generator")
    for some in run(delayed(_pictures)(*task) for task in tasks):
        views += some
        tell(len(views), of)
    places, left = [], iter(views)
    for panel, (stops, settings) in zip(shown, grids, strict=True):
        places.append(_place(panel, stops, list(islice(left, len(settings)))))
    here = panels.HERE
    script = (here / "panel.js").read_text().replace("export default { render };", "")
    page = _PAGE.format(
        title=escape(title),
        words=_WORDS,
        css=(here / "panel.css").read_text(),
        places="\n".join(places),
        script=script,
    )
    write_atomically(path, lambda draft: draft.write_text(page, encoding="utf-8"))
    return path


def save_panels(
    shown: Sequence[panels.Panel], stem: str, title: str, *, profile: str, results: str | Path
) -> None:
    """Write the first panel as the figure `stem`, and all of them beside it as one page.

    Not where a notebook is served as a dashboard: nobody waits for files there.
    """
    if "VOILA_KERNEL_ID" not in os.environ:
        folder = shown[0].save(results, stem=stem, title=title, profile=profile)
        most = 1 if profile == "quick" else None  # beside the present one
        share(shown, folder / "explorer.html", title=title, most=most)


def _grid(
    panel: panels.Panel, most: int | None
) -> tuple[dict[str, list], list[dict[str, Any]]]:
    """The grid's stops, the present ones among them, and the settings at all their places."""
    stops, kinds = {}, {c.name: c.kind for c in panel.scene.controls}
    for name, some in panel.scene.grid.items():
        now = panel.values[name]
        if kinds[name] == "slider":
            few = np.linspace(0, len(some) - 1, min(most or len(some), len(some)))
            stops[name] = sorted({now, *(some[round(i)] for i in few)})
        else:
            stops[name] = list(dict.fromkeys([*some, now]))
    places = product(*stops.values())
    return stops, [panel.values | dict(zip(stops, place, strict=True)) for place in places]


def _pictures(scene: Scene, settings: list[dict[str, Any]], seed: int) -> list[dict[str, Any]]:
    """What the page shows at each setting; where there is nothing to see, why."""
    told = []
    for values in settings:
        try:
            done = [scenes.draw(scene, values, seed, True)]
            told.append(panels.seen(scene, values, seed, done) | dict(exact=True))
        except ValueError as e:
            told.append(dict(error=str(e)))
    return told


def _place(panel: panels.Panel, stops: dict[str, list], views: list) -> str:
    """A panel's place on the page: its grid, packed, and what to say where no script runs."""
    spec = panels.about(panel.scene)
    for told in spec["controls"]:
        told["stops"] = list(
            map(page_value, stops.get(told["name"], [panel.values[told["name"]]]))
        )
    keys = [dict(name=name, stops=list(map(page_value, some))) for name, some in stops.items()]
    names = [
        ",".join(map(str, place)) for place in product(*(range(len(s)) for s in stops.values()))
    ]
    now = ",".join(str(some.index(panel.values[name])) for name, some in stops.items())
    spec |= dict(fixed=True, first=now)
    told = dict(spec=spec, keys=keys, views=dict(zip(names, views, strict=True)))
    text = json.dumps(told, separators=(",", ":"))
    packed = base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
    off = f"<noscript>{escape(panel.scene.title)}: this needs JavaScript.</noscript>"
    return f'<div data-grid><script type="application/json">{packed}</script>{off}</div>'
