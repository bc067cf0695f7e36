"""Panels in one file: sliders that still move when the kernel is gone, over a grid drawn beforehand.

The page holds every picture of the grid as numbers, packed, and the same `panel.js` that draws a live
panel; it fetches nothing, and runs from a disk, a mail or a web server.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from html import escape
from itertools import product
from pathlib import Path
from typing import Any

from workbench.figures import write
from workbench.widgets import panel as panels
from workbench.widgets import scene as scenes
from workbench.widgets.scene import Scene

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
_WORDS = (
    "Sliders move over settings that were computed beforehand; all noise is simulated, and nothing "
    "here is a release to publish. Made by <code>workbench explore --html</code>."
)


def share(
    shown: Sequence[panels.Panel],
    path: str | Path,
    *,
    title: str = "The explorer",
    tell: Callable[[int, int], None] = lambda done, of: None,
) -> Path:
    """Write panels as one page whose sliders need no kernel; returns its path.

    Each moves over its scene's `grid`, from the settings that it has now, drawn once with its seed.
    The page appears whole or not at all. `tell` hears how many pictures of how many are done.
    """
    path, places = Path(path), []
    if not shown:
        raise ValueError("there are no panels to share: need one at least")
    of = sum(_many(panel.scene) for panel in shown)
    done = 0
    for panel in shown:
        packed = []
        for picture in _pictures(panel):
            packed.append(picture)
            done += 1
            tell(done, of)
        places.append(_place(panel, dict(packed)))
    here = panels.HERE
    script = (here / "panel.js").read_text().replace("export default { render };", "")
    page = _PAGE.format(
        title=escape(title),
        words=_WORDS,
        css=(here / "panel.css").read_text(),
        places="\n".join(places),
        script=script,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, lambda draft: draft.write_text(page, encoding="utf-8"))
    return path


def _stops(panel: panels.Panel) -> dict[str, list]:
    """The grid's settings, with the present one among those of a slider."""
    found, kinds = {}, {c.name: c.kind for c in panel.scene.controls}
    for name, stops in panel.scene.grid.items():
        now = panel.values[name]
        found[name] = list(stops)
        if now not in stops:
            found[name] = sorted([*stops, now]) if kinds[name] == "slider" else [*stops, now]
    return found


def _many(scene: Scene) -> int:
    """How many pictures a grid has, about."""
    count = 1
    for stops in scene.grid.values():
        count *= len(stops)
    return count


def _pictures(panel: panels.Panel) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every picture of the grid by its place; one that cannot be is its message."""
    scene, stops = panel.scene, _stops(panel)
    for place in product(*(range(len(s)) for s in stops.values())):
        chosen = {n: s[i] for (n, s), i in zip(stops.items(), place, strict=True)}
        values, key = panel.values | chosen, ",".join(map(str, place))
        try:
            done = [scenes.draw(scene, values, panel.seed, False)]
            told = panels.seen(scene, values, panel.seed, 1, done) | dict(exact=True)
        except ValueError as e:
            told = panel.view | dict(error=str(e))
        yield key, told


def _place(panel: panels.Panel, views: dict[str, Any]) -> str:
    """A panel's place on the page: its grid, packed, and what to say where no script runs."""
    stops, spec = _stops(panel), panels.about(panel.scene)
    for told in spec["controls"]:
        told["stops"] = stops.get(told["name"], [panel.values[told["name"]]])
        told["stops"] = [_shown(x) for x in told["stops"]]
    keys = [dict(name=name, stops=list(map(_shown, some))) for name, some in stops.items()]
    now = ",".join(str(some.index(panel.values[name])) for name, some in stops.items())
    spec |= dict(fixed=True, first=now)
    text = json.dumps(dict(spec=spec, keys=keys, views=views), separators=(",", ":"))
    packed = base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()
    off = f"<noscript>{escape(panel.scene.title)}: this needs JavaScript.</noscript>"
    return f'<div data-grid><script type="application/json">{packed}</script>{off}</div>'


def _shown(x: Any) -> Any:
    return x if x is None or isinstance(x, str | int | float) else repr(x)
