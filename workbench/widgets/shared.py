"""Panels in one file: sliders that still move when the kernel is gone, over pictures drawn beforehand.

A scene's main controls, those of its `grid`, move together; every other one moves alone, from the
settings that the panel has. The page holds every picture as numbers, packed, each list of numbers once,
and the scripts of a live panel, once; it fetches nothing, and runs from a disk, a
mail or a web server.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.figures import write_atomically
from workbench.widgets.chart import packed, packed_script
from workbench.widgets.controls import Control, page_value
from workbench.widgets.panels import HERE, SCRIPT, Panel
from workbench.widgets.scenes import Scene
from workbench.widgets.view import Setting, page_view, scene_spec

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
globalThis.workbenchVega = vegaFrom("{vega}");
for (const place of document.querySelectorAll("[data-pictures]")) {{
  const packed = JSON.parse(await unpacked(place.querySelector("script").textContent.trim()));
  const {{ spec, lists, main, others, pictures, present }} = packed;
  const whole = (x) => {{
    if (typeof x === "string" && x[0] === "\\0") return whole(lists[+x.slice(1)]);
    if (Array.isArray(x)) return x.map(whole);
    if (x === null || typeof x !== "object") return x;
    return Object.fromEntries(Object.entries(x).map(([name, part]) => [name, whole(part)]));
  }};
  const picture = (values) => {{
    const other = others.find((control) => values[control.name] !== present[control.name]);
    if (other) return other.pictures[other.stops.indexOf(values[other.name])];
    const places = main.controls.map((control) => control.stops.indexOf(values[control.name]));
    return main.pictures[places.reduce((at, place, i) => at * main.controls[i].stops.length + place, 0)];
  }};
  // A control that moves alone takes all others back, and any other takes it back.
  const allowed = (values, before) => {{
    const moved = spec.controls.find((control) => values[control.name] !== before[control.name]);
    if (!moved) return values;
    const alone = others.some((control) => control.name === moved.name);
    if (alone) return {{ ...present, [moved.name]: values[moved.name] }};
    return {{ ...values, ...Object.fromEntries(others.map(({{ name }}) => [name, present[name]])) }};
  }};
  const shown = (values) => ({{ ...whole(pictures[picture(values)]), values }});
  const listeners = {{}};
  const model = {{
    view: shown(present),
    get(name) {{ return name === "spec" ? spec : name === "view" ? JSON.stringify(this.view) : {{}}; }},
    on(name, f) {{ listeners[name] = f; }}, off() {{}},
    send(message) {{
      this.view = {{ ...shown(allowed(message.values, this.view.values)), seq: message.seq }};
      listeners["change:view"]();
    }},
  }};
  render({{ model, el: place }});
}}
</script></body></html>
"""
_CHUNK = 12  # pictures that a process draws before it says so
_WORDS = (
    "Sliders move over settings that were computed beforehand: in every panel the main ones all "
    "together, each of the others alone. All noise is simulated, and nothing here is a release to "
    "publish. Made by <code>workbench explore --html</code>."
)
_MAIN, _ALONE, _FIXED = (
    "Move together",
    "Move one at a time: all else goes back to where this page began",
    "Stay as they are on this page",
)
_OTHER_STOPS = 5  # of a slider that moves alone, besides its present one


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

    The main controls of each, those of its scene's `grid`, move together, and every other one that is
    used moves alone, from the settings that the panel has now; drawn once with its seed. The page
    appears whole or not at all.

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
    views: list[dict[str, Any]] = []
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
        script=SCRIPT.replace("export default { render };", ""),
        vega=packed_script(),
    )
    write_atomically(path, lambda draft: draft.write_text(page, encoding="utf-8"))
    return path


def save_panels(
    shown: Sequence[Panel], stem: str, title: str, *, profile: str, results: str | Path
) -> None:
    """Write the first panel as the figure `stem`, and all of them beside it as one page.

    Not where a notebook is served as a dashboard: nobody waits for files there. In a notebook that
    somebody has open the page is drawn in the background, so that sliders go on moving, and appears
    when it is whole.

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
    from workbench.trials.running import BATCH

    if "VOILA_KERNEL_ID" in os.environ:
        return
    folder = shown[0].save(results, stem=stem, title=title, profile=profile)
    most = 1 if profile == "quick" else None  # beside the present one
    draw = partial(share, shown, folder / "explorer.html", title=title, most=most)
    if BATCH in os.environ:
        draw()
    else:  # one process leaves a core to whoever moves a slider meanwhile
        threading.Thread(target=draw, kwargs=dict(workers=1), daemon=True).start()


class _Grid(NamedTuple):
    """What a page can show: stops of the main controls and of the others, and pictures of them.

    `main` has the number of a picture for each place of the grid, and `others` for each stop of a
    control that moves alone; settings that differ in what is not used have one picture.
    """

    present: dict[str, Any]
    main_stops: dict[str, list[Any]]
    other_stops: dict[str, list[Any]]
    main: list[int]
    others: dict[str, list[int]]
    settings: list[dict[str, Any]]


def _grid(panel: Panel, most: int | None) -> _Grid:
    present = panel.values
    controls = {control.name: control for control in panel.scene.controls}
    main_stops = {}
    for name, stops in panel.scene.grid.items():
        main_stops[name] = _stops(controls[name], stops, present[name], most)
    other_stops = {}
    for name, control in controls.items():
        if name not in main_stops and control.used(present):
            count = min(most or _OTHER_STOPS, _OTHER_STOPS)
            other_stops[name] = _stops(control, control.stops, present[name], count)
    numbers: dict[str, int] = {}  # of pictures
    settings: list[Any] = []

    def number(values: dict[str, Any]) -> int:
        """Of the picture of a setting; what is not used is as it is now."""
        used = {name: values[name] for name, c in controls.items() if c.used(values)}
        key = repr(used)
        if key not in numbers:
            numbers[key] = len(settings)
            settings.append(present | used)
        return numbers[key]

    places = product(*main_stops.values())
    main = [number(present | dict(zip(main_stops, place, strict=True))) for place in places]
    others = {}
    for name, own in other_stops.items():
        others[name] = [number(present | {name: stop}) for stop in own]
    return _Grid(present, main_stops, other_stops, main, others, settings)


def _stops(
    control: Control, choices: Sequence[Any], present: Any, most: int | None
) -> list[Any]:
    """Some of the choices of a slider, evenly, with its present one; all of any other control."""
    if control.kind != "slider":
        return list(dict.fromkeys([*choices, present]))
    count = min(most or len(choices), len(choices))
    chosen = [choices[round(i)] for i in np.linspace(0, len(choices) - 1, count)]
    return sorted({present, *chosen})


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


def _place(panel: Panel, grid: _Grid, views: list[Any]) -> str:
    """A panel's place on the page: its pictures, packed, and what to say where no script runs."""
    grid = _without_refused(grid, views)
    spec = scene_spec(panel.scene)
    groups: dict[str, list[Any]] = {_MAIN: [], _ALONE: [], _FIXED: []}
    for control in spec["controls"]:
        name = control["name"]
        group = _FIXED
        for heading, stops in ((_MAIN, grid.main_stops), (_ALONE, grid.other_stops)):
            if name in stops:
                group = heading
                control["stops"] = [page_value(stop) for stop in stops[name]]
        if group == _FIXED:
            control["stops"] = [page_value(grid.present[name])]
        groups[group].append(control | dict(group=group))
    spec |= dict(fixed=True, controls=[control for part in groups.values() for control in part])
    stops = {control["name"]: control["stops"] for control in spec["controls"]}
    lists: dict[str, int] = {}
    pictures = [_with_lists_once(view, lists) for view in views]
    content = json.dumps(
        dict(
            spec=spec,
            main=dict(
                controls=[dict(name=name, stops=stops[name]) for name in grid.main_stops],
                pictures=grid.main,
            ),
            others=[
                dict(name=name, stops=stops[name], pictures=grid.others[name])
                for name in grid.other_stops
            ],
            present={name: page_value(x) for name, x in grid.present.items()},
            pictures=pictures,
            lists=[json.loads(text) for text in lists],
        ),
        separators=(",", ":"),
    )
    fallback = f"<noscript>{escape(panel.scene.title)}: this needs JavaScript.</noscript>"
    return (
        f'<div data-pictures><script type="application/json">{packed(content.encode())}</script>'
        f"{fallback}</div>"
    )


def _without_refused(grid: _Grid, views: list[Any]) -> _Grid:
    """Without stops of controls that move alone at which there is nothing to see."""
    stops = {}
    pictures = {}
    for name, numbers in grid.others.items():
        seen = [i for i, number in enumerate(numbers) if not views[number].get("error")]
        stops[name] = [grid.other_stops[name][i] for i in seen]
        pictures[name] = [numbers[i] for i in seen]
    return grid._replace(other_stops=stops, others=pictures)


def _with_lists_once(x: Any, lists: dict[str, int]) -> Any:
    """The same, with the number of each list in place of it; `lists` has their texts in this order."""
    if isinstance(x, dict):
        return {name: _with_lists_once(part, lists) for name, part in x.items()}
    if not isinstance(x, list | tuple) or len(x) < 2:
        return x
    text = json.dumps([_with_lists_once(part, lists) for part in x], separators=(",", ":"))
    return f"\0{lists.setdefault(text, len(lists))}"
