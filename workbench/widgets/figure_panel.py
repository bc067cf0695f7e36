"""Sliders on a figure of a paper, which runs again in a process of its own.

A move runs the figure roughly at once and, after a pause, at the effort that its controls say; a process of
its own does it, which Stop ends. Trials that the store holds are not run again. Nothing runs before a
control has moved, so that a notebook that shows one costs a batch nothing.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import Field, replace
from html import escape
from io import BytesIO
from pathlib import Path
from typing import Any

import ipywidgets

from workbench import figures
from workbench.estimates.files import temporary_folder
from workbench.figures import EFFORT, Figure, FigureRun
from workbench.mechanisms import options as option_grammar
from workbench.widgets.controls import controls_of_field

# Worker


class Ended(Exception):
    """The process was ended by Stop before it was done."""


class Worker:
    """One process, which does one task at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._pool: Any = None
        self._client = None  # for whom it works
        self._since = 0.0  # since when
        atexit.register(self._end)

    def start(self) -> None:
        """Have the process ready."""
        with suppress(Ended, MemoryError):
            self.run(None, threading.Event(), _warm)

    def stop(self, client: Any, after: float = 0.0) -> None:
        """End what it does for `client`, if that began more than `after` seconds ago."""
        with self._lock:
            ours = self._client is client and time.monotonic() - self._since >= after
        if ours:
            self._end()

    def _end(self) -> None:
        with self._lock:
            pool = self._pool
            self._pool = None
        if pool is not None:
            pool.shutdown(wait=False, kill_workers=True)

    def run(
        self, client: Any, stopped: threading.Event, task: Callable[..., Any], *args: Any
    ) -> Any:
        """`task(*args)` over there, for `client`; Ended if that is stopped first.

        A MemoryError if the process died over it and nobody had ended it.
        """
        from concurrent.futures import BrokenExecutor, CancelledError

        from joblib.externals.loky.process_executor import (
            ProcessPoolExecutor,
            ShutdownExecutorError,
        )

        gone = BrokenExecutor, CancelledError, ShutdownExecutorError
        with self._turn:
            if stopped.is_set():
                raise Ended
            for fresh in (False, True):  # one that died while it was idle is replaced
                with self._lock:
                    if fresh or self._pool is None:
                        self._pool = ProcessPoolExecutor(1, timeout=600)
                    pool = self._pool
                    self._client = client
                    self._since = time.monotonic()
                with suppress(*gone):
                    future = pool.submit(task, *args)
                    break
            else:
                raise MemoryError("(no process starts)")
            try:
                return future.result()
            except gone:
                if stopped.is_set() or self._pool is not pool:
                    raise Ended from None
                self._end()
                raise MemoryError("(the process that drew has died)") from None
            finally:
                with self._lock:
                    self._client = None


def _warm() -> None:
    """Import what pictures need."""
    import workbench.mechanisms  # noqa: F401


worker = Worker()


# Figure panel

PAUSE = 0.8  # seconds without a move before the full effort is spent
_LABEL = {"description_width": "9rem"}


class FigurePanel(ipywidgets.VBox):
    """A figure under its own parameters.

    Parameters
    ----------
    figure : Figure
        Where it starts.
    results : path, optional
        The folder of results, whose store is used; the project's unless it is given.

    Attributes
    ----------
    figure : Figure
        What the controls say.
    """

    def __init__(self, figure: Figure, results: str | Path | None = None):
        self.figure = figure
        self.results = Path(results or figures.results_folder()).resolve()
        self._stopped = threading.Event()
        self._editors = {
            name: _Editor(f, getattr(figure, name), self._move)
            for name, f in figure.parameters().items()
        }
        self._message = ipywidgets.HTML()
        self._picture = ipywidgets.Image(
            format="png", layout=ipywidgets.Layout(max_width="100%")
        )
        self._bar = ipywidgets.IntProgress(layout=ipywidgets.Layout(visibility="hidden"))
        self._stop = ipywidgets.Button(description="Stop", disabled=True)
        self._export = ipywidgets.Button(description="Export")
        self._reset = ipywidgets.Button(description="Paper's setting")
        self._stop.on_click(lambda _: self.stop())
        self._export.on_click(lambda _: self._start(self._save))
        self._reset.on_click(lambda _: self.set(**_paper_values(figure)))
        buttons = ipywidgets.HBox([self._stop, self._reset, self._export, self._bar])
        editors = sorted(self._editors.values(), key=lambda editor: editor.kind == EFFORT)
        columns = ipywidgets.GridBox(
            [editor.box for editor in editors],
            layout=ipywidgets.Layout(
                grid_template_columns="repeat(auto-fill, minmax(27rem, 1fr))"
            ),
        )
        super().__init__([columns, buttons, self._message, self._picture])
        self._show_saved()

    def _show_saved(self) -> None:
        """The picture that a batch has left, or else what to do."""
        folder = figures.figure_folder(self.results, "quick", self.figure.name("quick"))
        saved = folder / f"{self.figure.id}.png"
        if saved.is_file():
            self._picture.value = saved.read_bytes()
            self._say("as it was saved; move something to run it again")
        else:
            self._say("move something to run it")

    def __repr__(self) -> str:
        return (
            f"widgets.figure({self.figure.id!r}) needs a kernel; from the command line: "
            f"{self.figure.command('quick')}"
        )

    def set(self, **values: Any) -> None:
        """Move controls, and run.

        Raises
        ------
        ValueError
            If there is no such parameter, or a value is out of its range.
        """
        current = {name: getattr(self.figure, name) for name in self._editors}
        figure = type(self.figure).at("paper", **(current | values))
        for name, editor in self._editors.items():
            editor.show(getattr(figure, name))
        self.figure = figure
        self._start(self._run)

    def stop(self) -> None:
        """End what runs; what the store holds by then stays."""
        self._stopped.set()
        worker.stop(self)
        self._rest("stopped; finished trials are kept")

    def _move(self) -> None:
        """A control has moved."""
        try:
            values = {name: editor.value for name, editor in self._editors.items()}
            self.figure = type(self.figure).at("paper", **values)
        except ValueError as e:
            self._stopped.set()
            worker.stop(self)
            return self._rest(str(e), wrong=True)
        self._start(self._run)

    def _start(self, work: Callable[[Figure, threading.Event], None]) -> None:
        """Leave what runs, and have a thread begin `work`."""
        self._stopped.set()
        worker.stop(self)
        stopped = self._stopped = threading.Event()
        self._stop.disabled = False
        self._bar.layout.visibility = "visible"
        self._bar.value = 0
        arguments = (work, self.figure, stopped)
        threading.Thread(target=self._guarded, args=arguments, daemon=True).start()

    def _guarded(
        self, work: Callable[..., Any], figure: Figure, stopped: threading.Event
    ) -> None:
        try:
            work(figure, stopped)
        except Ended:
            pass
        except Exception as e:  # of a mechanism, in its words
            if not stopped.is_set():
                self._rest(str(e) or type(e).__name__, wrong=True)

    def _run(self, figure: Figure, stopped: threading.Event) -> None:
        rough = rough_figure(figure)
        if rough != figure:
            self._say("rough")
            self._picture.value = self._draw(rough, stopped)
            self._say("rough; the full effort follows")
            if stopped.wait(PAUSE):
                return
        picture = self._draw(figure, stopped)
        if not stopped.is_set():
            self._picture.value = picture
            self._rest(figure.command("quick"))

    def _draw(self, figure: Figure, stopped: threading.Event) -> bytes:
        """The picture, from the process that works; its progress is read meanwhile."""
        with temporary_folder() as folder:
            progress = folder / "progress"
            done = threading.Event()
            watcher = threading.Thread(target=self._watch, args=(progress, done), daemon=True)
            watcher.start()
            try:
                arguments = (figure.id, _values(figure), self.results / "store", progress)
                return worker.run(self, stopped, _draw_figure, *arguments)
            finally:
                done.set()
                watcher.join()

    def _watch(self, progress: Path, done: threading.Event) -> None:
        while not done.wait(0.2):
            try:
                count, of = progress.read_text().split()
            except (OSError, ValueError):
                continue
            self._bar.max = int(of)
            self._bar.value = int(count)

    def _save(self, figure: Figure, stopped: threading.Event) -> None:
        self._say("exporting")
        folder = worker.run(
            self, stopped, _save_figure, figure.id, _values(figure), self.results
        )
        self._rest(f"{folder} — {figure.command('quick')}")

    def _say(self, text: str, wrong: bool = False) -> None:
        color = "color: var(--jp-error-color1, #b3261e)" if wrong else ""
        off = figures.describe(self.figure.off_paper())
        note = f"<br>not {self.figure.usual}: {escape(off)}" if off else ""
        self._message.value = f'<span style="{color}">{escape(text)}</span>{note}'

    def _rest(self, text: str, wrong: bool = False) -> None:
        self._say(text, wrong)
        self._stop.disabled = True
        self._bar.layout.visibility = "hidden"


class FigurePanels(ipywidgets.VBox):
    """Every figure of the project under its sliders, one at a time."""

    children: tuple[Any, ...]

    def __init__(self) -> None:
        ids = [id for id in figures.find_notebooks(figures.project_folder() / "notebooks")]
        chosen = ipywidgets.Dropdown(
            options=[("choose a figure", ""), *ids], description="Figure"
        )
        chosen.observe(self._choose, "value")
        super().__init__([chosen])

    def _choose(self, change: dict[str, Any]) -> None:
        for panel in self.children[1:]:
            panel.stop()
        if not change["new"]:
            self.children = self.children[:1]
            return
        try:
            panel = FigurePanel(figures.find_figure(change["new"]).at("quick"))
        except ValueError as e:
            panel = ipywidgets.HTML(escape(str(e)))
        self.children = (self.children[0], panel)


class _Editor:
    """The controls of one parameter, and the value that they say."""

    def __init__(self, f: Field[Any], value: Any, moved: Callable[[], None]):
        self.kind = f.metadata["kind"]
        self._field = f
        self._moved = moved
        self._quiet = False
        help_text = option_grammar.parameter_help(f)
        choices = f.metadata["choices"]
        described = dict(description=f.name, tooltip=help_text, style=_LABEL)
        if choices and f.metadata["many"]:
            self._widget = ipywidgets.SelectMultiple(
                options=[*dict.fromkeys([*choices, *value])],  # a name of another package too
                value=value,
                rows=min(len(choices), 4),
                **described,
            )
        elif choices:
            self._widget = ipywidgets.Dropdown(options=choices, value=value, **described)
        else:
            text = option_grammar.parameter_text(value)
            self._widget = ipywidgets.Text(value=text, continuous_update=False, **described)
        self.box = self._widget
        self._slider = None
        stops = () if choices or f.metadata["many"] else _stops(f, value)
        if stops:
            self._slider = ipywidgets.SelectionSlider(
                options=stops,
                value=value,
                readout=False,
                continuous_update=False,
                layout={"width": "9rem"},
            )
            self._slider.observe(self._slid, "value")
            self._widget.layout.width = "17rem"
            self.box = ipywidgets.HBox([self._widget, self._slider])
        self._widget.observe(self._changed, "value")

    @property
    def value(self) -> Any:
        """As the figure takes it."""
        return self._widget.value

    def show(self, value: Any) -> None:
        """Another value, without a move."""
        self._quiet = True
        try:
            text = isinstance(self._widget, ipywidgets.Text)
            self._widget.value = option_grammar.parameter_text(value) if text else value
            self._follow()
        finally:
            self._quiet = False

    def _slid(self, change: dict[str, Any]) -> None:
        if not self._quiet:
            self._widget.value = option_grammar.parameter_text(change["new"])

    def _changed(self, _: Any) -> None:
        if not self._quiet:
            self._quiet = True
            try:
                self._follow()
            finally:
                self._quiet = False
            self._moved()

    def _follow(self) -> None:
        """The slider goes where the box is, which may hold any number."""
        if self._slider is None:
            return
        try:
            value = option_grammar.parse_parameter(self._field, self._widget.value)
        except ValueError:
            return
        if value not in self._slider.options and isinstance(value, int | float):
            self._slider.options = sorted({*self._slider.options, value})
        if value in self._slider.options:
            self._slider.value = value


def _stops(f: Field[Any], value: Any) -> tuple[Any, ...]:
    """Where a slider of a number stops."""
    controls = controls_of_field(f, value)
    return controls[-1].stops if controls and value in controls[-1].stops else ()


def _paper_values(figure: Figure) -> dict[str, Any]:
    """The paper's settings, at the effort of a quick run."""
    return _values(type(figure).at("quick"))


def _values(figure: Figure) -> dict[str, Any]:
    """Its parameters, as a process that finds it by its id needs them."""
    return {name: getattr(figure, name) for name in figure.parameters()}


def rough_figure(figure: Figure) -> Figure:
    """The figure with as little effort as a first picture needs."""
    known = figure.parameters()
    effort = {
        name: min(x, getattr(figure, name)) for name, x in figure.rough.items() if name in known
    }
    return replace(figure, **effort)


def _draw_figure(id: str, values: dict[str, Any], store: Path, progress: Path) -> bytes:
    """The picture as PNG, in the process that works."""
    from workbench.figures import plots
    from workbench.trials import watched

    def tell(done: int, of: int) -> None:
        draft = progress.with_suffix(".new")
        draft.write_text(f"{done} {of}")
        os.replace(draft, progress)

    figure = figures.find_figure(id)(**values)
    with watched(tell):
        rows = figure.rows(store)
    drawing = figure.draw(rows)
    if drawing is None:
        raise ValueError("this figure is a table: run its notebook, or export it")
    file = BytesIO()
    drawing.savefig(file, format="png", dpi=110)
    plots.close(drawing)
    return file.getvalue()


def _save_figure(id: str, values: dict[str, Any], results: Path) -> str:
    """The folder that a batch would write, in the process that works."""
    figure = figures.find_figure(id)(**values)
    run = FigureRun(figure, "quick", results)
    rows, verdicts = figure.run(run.store)
    return os.fspath(run.save(figure.draw(rows, verdicts), rows, verdicts))
