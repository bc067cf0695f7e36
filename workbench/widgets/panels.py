"""One panel on a page: sliders that set up a scene, and pictures of what it releases.

Whatever a page sends is answered roughly at once; when a control comes to rest, the exact picture is
measured by a process of its own, which Stop ends. Answers that the page has moved past are dropped.
"""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import anywidget
import traitlets

from workbench import figures
from workbench.compiled import pd
from workbench.figures import Export, plots
from workbench.mechanisms.options import refuse_renamed
from workbench.widgets.chart import shared_drawing
from workbench.widgets.figure_panel import Ended, worker
from workbench.widgets.scenes import Scene
from workbench.widgets.view import BAND_SEEDS, Setting, joined_rows, page_view, scene_spec

SOON = 0.03  # seconds a rough picture may take for the exact one to be drawn here as well
HERE = Path(__file__).parent
SCRIPT = "".join((HERE / name).read_text() for name in ("charts.js", "panel.js"))


class Panel(anywidget.AnyWidget):
    """A scene under sliders, for JupyterLab and Voila.

    Parameters
    ----------
    scene
        What can be moved, what it sets up and what is drawn.
    **values
        Settings of its controls, by their names; others start where the scene says.

    Attributes
    ----------
    values : dict
        The setting of every control.
    rows : pandas.DataFrame
        What is on the screen, one row a number.
    release : Release or None
        The first one behind it, made by simulated noise.
    """

    _esm = SCRIPT
    _css = HERE / "panel.css"
    spec = traitlets.Dict().tag(sync=True)
    view = traitlets.Dict().tag(sync=True, to_json=lambda view, _: json.dumps(view))
    progress = traitlets.Dict().tag(sync=True)
    drawing = anywidget.WidgetTrait().tag(sync=True)

    def __init__(self, scene: Scene, **values: Any):
        self.scene = scene
        self.values = {c.name: c.value for c in scene.controls}
        self.setting: Setting
        self.seed = 0
        self.seeds = 1
        self.rows = pd.DataFrame()
        self.release = None
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._seq = 0  # the last question of the page that was taken up
        super().__init__(spec=scene_spec(scene), drawing=shared_drawing())
        self.on_msg(self._on_message)
        self.set(**values)

    def set(self, *, seed: int | None = None, seeds: int | None = None, **values: Any) -> None:
        """Move sliders and draw exactly.

        Parameters
        ----------
        seed
            Of the noise; as before, if not given.
        seeds
            How many releases are drawn, by `seed`, `seed` + 1, …; two and more make a band.
        **values
            Settings of controls, by their names; others stay.

        Raises
        ------
        ValueError
            The mechanism's own, or one that names a control and what it takes.
        """
        with self._lock:
            self._move_on()
            settings = self._read(values)
            seed = self.seed if seed is None else seed
            seeds = self.seeds if seeds is None else seeds
            for name, x, least in (("seed", seed, 0), ("seeds", seeds, 1)):
                if not isinstance(x, int) or x < least:
                    raise ValueError(
                        f"{name} = {x!r} is not allowed: need a whole number >= {least}"
                    )
            setting = Setting.of(self.scene, settings)
            drawn = [setting.draw(seed + i, True) for i in range(seeds)]
            self._show(setting, seed, drawn, exact=True)

    def _read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        controls = {c.name: c for c in self.scene.controls}
        for name in values:
            refuse_renamed(name)
            if name not in controls:
                raise ValueError(f"no control {name!r}; there are: {', '.join(controls)}")
        return self.values | {name: controls[name].read(x) for name, x in values.items()}

    def _show(
        self, setting: Setting, seed: int, drawn: list[Any], exact: bool, note: str = ""
    ) -> None:
        """All that is said of the screen, at once: settings, rows and release are of one setting."""
        view = page_view(setting, seed, drawn)
        self.setting = setting
        self.values = {**setting.values}
        self.seed = seed
        self.seeds = len(drawn)
        self.rows = joined_rows(drawn)
        self.release = drawn[0][1]
        self.view = view | dict(exact=exact, seq=self._seq, note=note)

    def _move_on(self) -> threading.Event:
        """Leave the work that was for the setting before; a draw of more than a second is ended."""
        self._stopped.set()
        worker.stop(self, after=1.0)
        self._stopped = threading.Event()
        self.progress = {}
        return self._stopped

    # what a page says

    def _on_message(self, _: Any, message: dict[str, Any], buffers: list[Any]) -> None:
        kind = message.get("kind")
        if kind == "ready":
            gc.freeze()  # what imports left is not looked through while somebody drags
            threading.Thread(target=worker.start, daemon=True).start()
        elif kind == "stop":
            self._stopped.set()
            worker.stop(self)
        elif kind == "export":
            self._answer(self._export)
        elif kind == "set":
            self._answer(lambda: self._move(message))

    def _answer(self, do: Callable[[], None], stopped: threading.Event | None = None) -> None:
        """Whatever goes wrong is a sentence on the panel, never a traceback.

        Also of mechanisms of other people, which may raise anything.
        """
        try:
            do()
        except Exception as e:
            if stopped in (None, self._stopped):
                self.progress = {}
                self.view = self.view | dict(error=_sentence(e), seq=self._seq)

    def _move(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._seq = int(message["seq"])
            stopped = self._move_on()
            values = self._read(message["values"])
            seed = int(message["seed"])
            begun = time.perf_counter()
            setting = Setting.of(self.scene, values)
            self._show(setting, seed, [setting.draw(seed, False)], exact=False)
            spent = time.perf_counter() - begun
        if not message["rest"]:
            return
        seeds = BAND_SEEDS if message["bands"] else 1
        if seeds == 1 and spent < SOON:
            return self._refine(setting, seed, seeds, stopped, setting.draw)
        draw = partial(worker.run, self, stopped, setting.draw)
        work = partial(self._refine, setting, seed, seeds, stopped, draw)
        threading.Thread(target=self._answer, args=(work, stopped), daemon=True).start()

    def _refine(
        self,
        setting: Setting,
        seed: int,
        seeds: int,
        stopped: threading.Event,
        draw: Callable[..., Any],
    ) -> None:
        """The exact picture, unless the page has moved on; so far as it is there when stopped."""
        drawn: list[Any] = []
        with suppress(Ended):
            while len(drawn) < seeds:
                with self._lock:
                    if stopped.is_set():
                        break
                    self.progress = dict(done=len(drawn), of=seeds)
                drawn.append(draw(seed + len(drawn), True))
        with self._lock:
            if self._stopped is not stopped:
                return
            self.progress = {}
            note = ""
            if len(drawn) < seeds:
                note = f"stopped after {len(drawn)} of {seeds} seeds"
            if drawn:
                self._show(setting, seed, drawn, exact=True, note=note)
            else:
                self.view = self.view | dict(note=note)

    # files

    def figure(self) -> Any:
        """What is on the screen as a matplotlib figure, by the code of the batch."""
        panels = self.setting.panels(self.rows)
        return plots.grid(self.rows, panels, min(2, len(panels)), height=2.4)

    def save(
        self,
        results: str | Path | None = None,
        *,
        stem: str = "",
        title: str = "",
        profile: str = "explorer",
    ) -> Path:
        """Write it as PDF, SVG and PNG, with its rows and manifest.

        What was drawn roughly is drawn exactly first, so that the manifest's command makes it again.

        Parameters
        ----------
        results
            The folder of all figures; the project's, if not given.
        stem
            The figure's name; without one it follows from the settings, so that another setting is
            another figure.
        title
            Of the figure, in place of the scene's.
        profile
            The folder in `results`.

        Returns
        -------
        Path
            The folder that was written.
        """
        from workbench.figures import results_folder

        with self._lock:
            if not self.view["exact"]:
                self.set()
            return self._write(results or results_folder(), stem, title, profile)

    def _write(self, results: str | Path, stem: str, title: str, profile: str) -> Path:
        spec, rows = self._described(stem, title)
        fig = self.figure()
        try:
            return figures.save(fig, rows, spec=spec, profile=profile, results=results)
        finally:
            plots.close(fig)

    def _described(
        self, stem: str = "", title: str = ""
    ) -> tuple[figures.Description, pd.DataFrame]:
        """What its files say of it, and its rows as they hold them."""
        command = self.setting.command(self.seed, self.seeds) or self.view["code"]
        name = stem or f"{self.scene.name}_{sha256(command.encode()).hexdigest()[:6]}"
        no_data = self.release is None
        spec = figures.Description(name, title or self.scene.title, command, no_data)
        if self.release is None:
            return spec, self.rows
        return spec, self.rows.assign(simulated=self.release.simulated)

    def to_export(self) -> Export:
        """What `workbench export` writes of it."""
        spec, rows = self._described()
        mechanism = getattr(self.setting.setup, "mechanism", None)
        cite = getattr(mechanism, "cite", None)
        return Export(
            lambda: {"": self.figure()}, rows, spec, "explorer", cite=[cite] if cite else []
        )

    def _export(self) -> None:
        folder = self.save()
        packed = BytesIO()
        with ZipFile(packed, "w") as archive:
            for path in sorted(folder.iterdir()):
                archive.write(path, f"{folder.name}/{path.name}")
        message = dict(kind="saved", path=str(folder), name=folder.name)
        self.send(message, [packed.getvalue()])


def _sentence(error: Exception) -> str:
    """What a panel says of an error; of one of ours its own words."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this {error}".strip()
    if isinstance(error, ValueError | OSError) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error}"
