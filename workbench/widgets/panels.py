"""One panel on a page: sliders that set up a scene, and what a draw of it shows.

Whatever a page sends is answered roughly at once; when a control comes to rest, the exact picture is
measured by a process of its own, which Stop ends. Answers that the page has moved past are dropped.
"""

from __future__ import annotations

import atexit
import gc
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zipfile import ZipFile

import anywidget
import pandas as pd
import traitlets

from workbench import figures, plots
from workbench.mechanism import Release
from workbench.mechanism import release_options as release_options
from workbench.privacy import compose
from workbench.widgets import scenes
from workbench.widgets.chart import charts
from workbench.widgets.controls import page_value
from workbench.widgets.scenes import Picture, Scene

SEEDS = 20  # releases behind a band
SOON = 0.03  # seconds a rough picture may take for the exact one to be drawn here as well
HERE = Path(__file__).parent
SIMULATED = "simulated: the seed replays this noise, so it is never to be published"


class Panel(anywidget.AnyWidget):
    """A scene under sliders, for JupyterLab, Voila and, over a grid, files without a kernel.

    `values` are the settings, `rows` what is on the screen, `release` the first draw of it, made by
    simulated noise. `set(theta=40.0)` moves sliders from Python; a ValueError is the mechanism's.
    """

    _esm = HERE / "panel.js"
    _css = HERE / "panel.css"
    spec = traitlets.Dict().tag(sync=True)
    view = traitlets.Dict().tag(sync=True)
    progress = traitlets.Dict().tag(sync=True)

    def __init__(self, scene: Scene, **values: Any):
        self.scene = scene
        self.values = {c.name: c.value for c in scene.controls}
        self.seed, self.seeds = 0, 1
        self.rows, self.release = pd.DataFrame(), None
        self._lock, self._stopped = threading.RLock(), threading.Event()
        self._seq = 0  # the last question of the page that was taken up
        super().__init__(spec=about(scene))
        self.on_msg(self._heard)
        self.set(**values)

    def set(self, *, seed: int | None = None, seeds: int | None = None, **values: Any) -> None:
        """Move sliders to `values` and draw exactly; several `seeds`, from `seed` on, make a band."""
        with self._lock:
            self._move_on()
            told = self._read(values)
            seed = self.seed if seed is None else seed
            seeds = self.seeds if seeds is None else seeds
            for name, x, least in (("seed", seed, 0), ("seeds", seeds, 1)):
                if not isinstance(x, int) or x < least:
                    raise ValueError(
                        f"{name} = {x!r} is not allowed: need a whole number >= {least}"
                    )
            done = [scenes.draw(self.scene, told, seed + i, True) for i in range(seeds)]
            self._show(told, seed, done, exact=True)

    def _read(self, values: Mapping[str, Any]) -> dict[str, Any]:
        known = {c.name: c for c in self.scene.controls}
        for name in values:
            scenes.refuse_renamed(name)
            if name not in known:
                raise ValueError(f"no control {name!r}; there are: {', '.join(known)}")
        return self.values | {name: known[name].read(x) for name, x in values.items()}

    def _show(self, values: dict, seed: int, done: list, exact: bool, note: str = "") -> None:
        """All that is said of the screen, at once: settings, draws, rows and release are of one."""
        view = seen(self.scene, values, seed, done)
        self.values, self.seed, self.seeds = values, seed, len(done)
        self.rows, self.release = joined(done), done[0][1]
        self.view = view | dict(exact=exact, seq=self._seq, note=note)

    def _move_on(self) -> threading.Event:
        """Leave the work that was for the setting before; a draw of more than a second is ended."""
        self._stopped.set()
        _worker.stop(self, after=1.0)
        self._stopped, self.progress = threading.Event(), {}
        return self._stopped

    # what a page says

    def _heard(self, _, told: dict[str, Any], buffers: list) -> None:
        kind = told.get("kind")
        if kind == "ready":
            gc.freeze()  # what imports left is not looked through while somebody drags
            threading.Thread(target=_worker.start, daemon=True).start()
        elif kind == "stop":
            self._stopped.set()
            _worker.stop(self)
        elif kind == "export":
            self._answer(self._export)
        elif kind == "set":
            self._answer(lambda: self._moved(told))

    def _answer(self, do: Callable[[], None], stopped: threading.Event | None = None) -> None:
        """Whatever goes wrong is a sentence on the panel, never a traceback.

        Also of mechanisms of other people, which may raise anything.
        """
        try:
            do()
        except Exception as e:
            if stopped in (None, self._stopped):
                known = isinstance(e, ValueError | OSError) and str(e)
                words = str(e) if known else f"{type(e).__name__}: {e}"
                if isinstance(e, MemoryError):
                    words = f"there is not enough memory for this {e}".strip()
                self.progress = {}
                self.view = self.view | dict(error=words, seq=self._seq)

    def _moved(self, told: dict[str, Any]) -> None:
        with self._lock:
            self._seq, stopped = int(told["seq"]), self._move_on()
            values, seed = self._read(told["values"]), int(told["seed"])
            begun = time.perf_counter()
            self._show(values, seed, [scenes.draw(self.scene, values, seed, False)], False)
            spent = time.perf_counter() - begun
        if not told["rest"]:
            return
        seeds = SEEDS if told["bands"] else 1
        if seeds == 1 and spent < SOON:
            return self._refine(values, seed, seeds, stopped, scenes.draw)
        draw = partial(_worker.draw, self, stopped)
        work = partial(self._refine, values, seed, seeds, stopped, draw)
        threading.Thread(target=self._answer, args=(work, stopped), daemon=True).start()

    def _refine(self, values: dict, seed: int, seeds: int, stopped, draw: Callable) -> None:
        """The exact picture, unless the page has moved on; so far as it is there when stopped."""
        done = []
        with suppress(_Ended):
            while len(done) < seeds:
                with self._lock:
                    if stopped.is_set():
                        break
                    self.progress = dict(done=len(done), of=seeds)
                done.append(draw(self.scene, values, seed + len(done), True))
        with self._lock:
            if self._stopped is not stopped:
                return
            self.progress = {}
            note = f"stopped after {len(done)} of {seeds} seeds" * (len(done) < seeds)
            if done:
                self._show(values, seed, done, True, note)
            else:
                self.view = self.view | dict(note=note)

    # files

    def figure(self) -> Any:
        """What is on the screen as a matplotlib figure, by the code of the batch."""
        wanted = self.scene.panels(self.values, self.rows)
        return plots.grid(self.rows, wanted, min(2, len(wanted)), height=2.4)

    def save(
        self,
        results: str | Path | None = None,
        *,
        stem: str = "",
        title: str = "",
        profile: str = "explorer",
    ) -> Path:
        """Write it as PDF, SVG and PNG, with its rows and manifest; returns the folder.

        Its name is `stem`, or else follows from the settings: another setting is another figure.
        What was drawn roughly is drawn exactly first, so that the manifest's command makes it again.
        """
        from workbench.reproduction import project_folder

        with self._lock:
            if not self.view["exact"]:
                self.set()
            return self._write(
                results or project_folder() / "experiments" / "results", stem, title, profile
            )

    def _write(self, results: str | Path, stem: str, title: str, profile: str) -> Path:
        told = scenes.command(self.scene, self.values, self.seed, self.seeds)
        told = told or self.view["code"]
        name = stem or f"{self.scene.name}_{sha256(told.encode()).hexdigest()[:6]}"
        title = title or self.scene.title
        no_data = self.release is None  # `scenes.draw` read no dataset
        spec = SimpleNamespace(__name__=name, TITLE=title, COMMAND=told, NO_DATA=no_data)
        fig, rows = self.figure(), self.rows
        if self.release is not None:
            rows = rows.assign(simulated=self.release.simulated)
        try:
            return figures.save(fig, rows, spec=spec, profile=profile, results=results)
        finally:
            plots.close(fig)

    def _export(self) -> None:
        folder, packed = self.save(), BytesIO()
        with ZipFile(packed, "w") as archive:
            for path in sorted(folder.iterdir()):
                archive.write(path, f"{folder.name}/{path.name}")
        self.send(dict(kind="saved", path=str(folder), name=folder.name), [packed.getvalue()])


def about(scene: Scene) -> dict[str, Any]:
    """What a page needs to know of a scene, once."""
    told = dict(
        name=scene.name, title=scene.title, words=scene.words, noise_note=scene.noise_note
    )
    return told | dict(controls=[c.told() for c in scene.controls], seeds=SEEDS)


def joined(done: list[tuple[Picture, Release]]) -> pd.DataFrame:
    """The rows of some draws."""
    return pd.concat([one.rows for one, _ in done], ignore_index=True)


def seen(scene: Scene, values, seed: int, done: list[tuple[Picture, Release | None]]) -> dict:
    """What a page shows of some draws of one setting; facts and guarantee are the first's."""
    (first, release), rows, seeds = done[0], joined(done), len(done)
    commands, facts = [scenes.command(scene, values, seed, seeds), *first.commands], []
    paid = dict(guarantee="0 spent: nothing was looked at", simulated="", ledger=[])
    if release is not None:
        held, of = len(release.estimate), getattr(release.estimate.domain, "size", 0)
        cells = f"{of:,}" if of < 1e15 else f"{of:.3g}"
        some = held < of and _unit(release) != "queries"
        share = f", {held / of:.3g} of a dense table's {cells}" if some else ""
        facts.append(["released", f"{held:,} {_unit(release)}{share}"])
        looks = *release.ledger, *first.ledger
        ledger = [
            [f"{n} × {name}" if n > 1 else name, str(cost) + ", each" * (n > 1), relation]
            for (name, cost, relation), n in Counter(
                (r.name, r.cost, r.relation) for r in looks
            ).items()
        ]
        paid = dict(guarantee=str(compose(looks)), simulated=SIMULATED, ledger=ledger)
        if told := release_options(release.mechanism):
            commands.append(f"workbench release YOUR.csv … {told}")
    return paid | dict(
        values={c.name: page_value(values[c.name]) for c in scene.controls},
        seed=seed,
        bands=seeds > 1,
        charts=charts(rows, scene.panels(values, rows)),
        facts=facts + [*map(list, first.facts)],
        code=first.code or scenes.code(scene, values, seed),
        commands=[*filter(None, commands)],
        note="",
        error="",
    )


def _unit(release: Release) -> str:
    return getattr(release.estimate, "holds", "numbers")


class _Ended(Exception):
    """The process was ended by Stop before it had drawn."""


class _Worker:
    """A process for long work, which can be ended at any moment; the next one starts when asked."""

    def __init__(self):
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._pool, self._of, self._since = None, None, 0.0  # for whom it works, since when
        atexit.register(self._end)

    def start(self) -> None:
        """Have the process ready."""
        with suppress(_Ended, MemoryError):
            self._run(None, threading.Event(), _warm)

    def stop(self, of: Any, after: float = 0.0) -> None:
        """End what it does for a panel, if that began more than `after` seconds ago."""
        with self._lock:
            ours = self._of is of and time.monotonic() - self._since >= after
        if ours:
            self._end()

    def _end(self) -> None:
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, kill_workers=True)

    def draw(self, of: Any, stopped: threading.Event, *task: Any) -> tuple[Picture, Release]:
        """`scenes.draw` for a panel, over there."""
        return self._run(of, stopped, scenes.draw, *task)

    def _run(self, of: Any, stopped: threading.Event, *task: Any) -> Any:
        """One task at a time; a MemoryError if the process died over it and nobody had ended it."""
        from concurrent.futures import BrokenExecutor, CancelledError

        from joblib.externals.loky.process_executor import (
            ProcessPoolExecutor,
            ShutdownExecutorError,
        )

        gone = BrokenExecutor, CancelledError, ShutdownExecutorError
        with self._turn:
            if stopped.is_set():
                raise _Ended
            for fresh in (False, True):  # one that died while it was idle is replaced
                with self._lock:
                    if fresh or self._pool is None:
                        self._pool = ProcessPoolExecutor(1, timeout=600)
                    pool, self._of, self._since = self._pool, of, time.monotonic()
                with suppress(gone):
                    done = pool.submit(*task)
                    break
            else:
                raise MemoryError("(no process starts)")
            try:
                return done.result()
            except gone:
                if stopped.is_set() or self._pool is not pool:
                    raise _Ended from None
                self._end()
                raise MemoryError("(the process that drew has died)") from None
            finally:
                with self._lock:
                    self._of = None


def _warm() -> None:
    """Import what draws need."""
    import workbench.mechanisms  # noqa: F401


_worker = _Worker()
