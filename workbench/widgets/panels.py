"""Panel with controls and a picture. While you move a slider, the picture is a rough preview. When you
release the slider, the panel draws the exact picture.

A separate process runs tasks that take long, and the Stop button ends this process. If you change a control
again, the result of the earlier change is dropped.
"""

from __future__ import annotations

import gc
import json
import re
import threading
import time
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import anywidget
import traitlets

from workbench import figures
from workbench.compiled import pd
from workbench.estimates.files import temporary_folder
from workbench.estimates.release import Release
from workbench.figures import Export, plots
from workbench.figures.exported import data_in_words
from workbench.value import counted, number
from workbench.widgets.chart import charts, marker_paths, shared_drawing
from workbench.widgets.controls import in_places, page_value
from workbench.widgets.subjects import Drawn, Subject
from workbench.widgets.worker import Ended, worker

SOON = 0.25  # seconds a rough picture may take for the exact one to be drawn here as well
PAUSE = 0.8  # seconds without a move before the full effort of a figure is spent
GIVE_WAY = "switch", "choice"  # controls that change where they exclude what was moved
HERE = Path(__file__).parent
SCRIPT = "".join((HERE / name).read_text() for name in ("charts.js", "panel.js"))


class Panel(anywidget.AnyWidget):
    """Interactive view of a mechanism, a figure or advice. It has controls and a picture, and works in
    JupyterLab and Voila.

    Parameters
    ----------
    subject : Subject
        Object that defines which controls there are, and draws the picture.
    **values : any
        Initial values of controls by name. Other controls begin at their default values.

    Attributes
    ----------
    values : dict
        Current values of all controls.
    rows : pandas.DataFrame
        Numbers that the picture shows, one per row.
    release : Release or None
        Release from which the numbers come, or the first of several. Its noise is simulated.
    """

    _esm = SCRIPT
    _css = HERE / "panel.css"
    spec = traitlets.Dict().tag(sync=True)
    view = traitlets.Dict().tag(sync=True, to_json=lambda view, _: json.dumps(view))
    progress = traitlets.Dict().tag(sync=True)
    drawing = anywidget.WidgetTrait().tag(sync=True)

    def __init__(self, subject: Subject, /, **values: Any):
        self.subject = subject
        self.values: dict[str, Any] = {}
        self.rows = pd.DataFrame()
        self.release: Release | None = None
        self._lock = threading.RLock()
        self._stopped = threading.Event()
        self._seq = 0  # the last question of the page that was taken up
        self._moved = ""  # the control that was moved last
        super().__init__(drawing=shared_drawing())
        self.on_msg(self._on_message)
        if subject.slow:  # in a batch nothing runs: no page says that it is ready
            read = self._read(values)
            self._show(read, [subject.saved(read)])
        else:
            self.set(**values)

    def __repr__(self) -> str:
        return f"the panel {self.subject.name} needs a kernel. {self._commands()[0]}".strip()

    def set(self, /, **values: Any) -> None:
        """Change values of controls, and draw the picture exactly. For a figure of a paper, this may take
        long, because the call waits until the figure has run.

        Parameters
        ----------
        **values : any
            New values of controls by name. Other controls keep their values. If `seeds` is 2 or more, the
            picture shows a band over several releases, whose seeds are `seed`, `seed` + 1 and so on.

        Raises
        ------
        ValueError
            If a value is invalid. The message names the control and its allowed values.
        """
        with self._lock:
            stopped = self._move_on()
            settings = self._read(values)
            draw = self.subject.draw
            if self.subject.slow:
                drawn = [self._work(settings, True, stopped)]
            else:
                drawn = [draw(each, True, None) for each in self.subject.each(settings)]
            self._show(settings, drawn)

    def _read(self, given: Mapping[str, Any], page: bool = False) -> dict[str, Any]:
        """Return all settings, updated by the given ones.

        A page sends all settings, also stale ones, and last the one that it moved. If two settings exclude
        each other, the one that moved is kept, and an optional one, a switch or a choice gives way.
        """
        read: dict[str, Any] = {}
        for _ in range(2):  # a choice may bring controls of its own
            controls = {c.name: c for c in self.subject.controls({**self.values, **read})}
            read = {
                name: controls[name].read(x) for name, x in given.items() if name in controls
            }
            moved = [n for n, x in read.items() if n not in self.values or x != self.values[n]]
            resets = {name: read[name] for name in moved if controls[name].resets}
            if resets and page:  # whose other settings are those of the subject before
                given = read = resets
        for name in given.keys() - controls.keys() if not page else ():
            raise ValueError(f"no control {name!r}. Controls: {', '.join(controls)}")
        if moved and page:
            moved = [*read][-1:]
        self._moved = ["", *moved][-1]
        base = {} if resets else self.values
        values = {name: base.get(name, c.value) for name, c in controls.items()}
        values |= read
        try:
            self.subject.check(values)
        except ValueError:
            for c in controls.values() if moved else ():
                gives_way = c.kind in GIVE_WAY and not c.resets
                choices = [None] if c.optional else c.stops if gives_way else []
                for other in (values | {c.name: x} for x in choices if c.name not in moved):
                    with suppress(ValueError, KeyError):
                        self.subject.check(other)
                        return other
            raise
        return values

    def _show(self, values: dict[str, Any], drawn: list[Drawn], note: str = "") -> None:
        """Update everything that is displayed at once, so that settings, rows and release belong
        together. Facts are those of the first picture.
        """
        subject, first = self.subject, drawn[0]
        self.values = values
        self.rows = pd.concat([one.rows for one in drawn], ignore_index=True)
        self.release = first.releases[0] if first.releases else None
        spec = dict(
            name=subject.name,
            title=subject.title,
            words=subject.words,
            noise_note=subject.noise_note,
            slow=subject.slow,
            controls=in_places(subject.controls(values)),
            markers=marker_paths(),
        )
        if spec != self.spec:
            self.spec = spec
        panels = subject.panels(values, self.rows) if len(self.rows) and not first.image else []
        self.view = dict(
            values={name: page_value(x) for name, x in values.items()},
            charts=charts(self.rows, panels),
            image=b64encode(first.image).decode(),
            table=first.table,
            lead=first.lead,
            facts=[list(fact) for fact in first.facts],
            code=subject.code(values),
            commands=[command for command in self._commands() if command],
            words=self._words(),
            exact=first.exact,
            old=first.old,
            seq=self._seq,
            note=note,
            error="",
            at="",
        )

    def _words(self) -> list[str]:
        """Return the settings that differ from the initial ones, each as a text `name=value`."""
        return [
            f"{c.name}={c.text(self.values[c.name])}"
            for c in self.subject.controls(self.values)
            if self.values[c.name] != c.value
        ]

    def _commands(self) -> list[str]:
        return self.subject.commands(self.values, self._words())

    def _move_on(self) -> threading.Event:
        """Drop the work for the previous setting. A task that has run for more than a second is ended."""
        self._stopped.set()
        self._stopped = threading.Event()
        self.progress = {}
        return self._stopped

    # what a page says

    def _on_message(self, _: Any, message: dict[str, Any], buffers: list[Any]) -> None:
        kind = message.get("kind")
        if kind == "ready":
            gc.freeze()  # what imports left is not looked through while somebody drags
            if self.subject.slow and not self.view["exact"]:
                self._answer(
                    lambda: self._refine(dict(self.values), self._move_on()), thread=True
                )
            else:
                threading.Thread(target=worker.start, daemon=True).start()
        elif kind == "stop":
            self._stopped.set()
        elif kind == "export":
            self._answer(self._export, thread=self.subject.slow)
        elif kind == "link":
            self._answer(lambda: self._follow(message["words"]))
        elif kind == "set":
            self._answer(lambda: self._move(message))

    def _answer(
        self,
        do: Callable[[], None],
        stopped: threading.Event | None = None,
        thread: bool = False,
    ) -> None:
        """Run `do`, and show any error as a sentence on the panel, including errors in mechanisms of other
        packages.
        """
        if thread:
            threading.Thread(target=self._answer, args=(do, stopped), daemon=True).start()
            return
        try:
            do()
        except Ended:
            pass
        except Exception as e:
            if stopped in (None, self._stopped):
                self.progress = {}
                named = [n for n in re.findall(r"\b(\w+) = ", str(e)) if n in self.values]
                at = [*named, self._moved][0]
                self.view = self.view | dict(error=_sentence(e), at=at, seq=self._seq)

    def _follow(self, words: Sequence[str]) -> None:
        """Draw with the settings of a link."""
        self._move(dict(seq=self._seq, values=settings_of(words), rest=True), page=False)

    def _move(self, message: dict[str, Any], page: bool = True) -> None:
        with self._lock:
            self._seq = int(message["seq"])
            stopped = self._move_on()
            values = self._read(message["values"], page)
            subject = self.subject
            if subject.slow:
                known = subject.saved(values)
                controls = subject.controls(values)
                if known.exact or any(c.resets and c.name == self._moved for c in controls):
                    self._show(values, [known])
                if known.exact:
                    return
            else:
                begun = time.perf_counter()
                each = subject.each(values)
                self._show(values, [subject.draw(each[0], False, None)])
                if not message["rest"]:
                    return
                if time.perf_counter() - begun < SOON and len(each) == 1:
                    return self._show(values, [subject.draw(each[0], True, None)])
        refine = lambda: self._refine(values, stopped)  # noqa: E731
        self._answer(refine, stopped, thread=True)

    def _refine(self, values: dict[str, Any], stopped: threading.Event) -> None:
        """Draw exactly, unless the settings have changed meanwhile. If the work is stopped, show the
        releases made so far.
        """
        drawn: list[Drawn] = []
        each = self.subject.each(values)
        with suppress(Ended):
            if self.subject.slow:
                rough = self._work(values, False, stopped)
                with self._lock:
                    if not stopped.is_set():
                        self._show(values, [rough])
                if rough.exact:
                    drawn.append(rough)
                elif stopped.wait(PAUSE):
                    raise Ended
            while len(drawn) < len(each):
                with self._lock:
                    if stopped.is_set():
                        break
                    self.progress = dict(done=len(drawn), of=len(each))
                drawn.append(self._work(each[len(drawn)], True, stopped))
        with self._lock:
            if self._stopped is not stopped:
                return
            self.progress = {}
            note = ""
            if len(drawn) < len(each):
                note = f"stopped after {len(drawn)} of {len(each)} seeds"
                if self.subject.slow:
                    note = "stopped; finished trials are kept"
            if drawn:
                self._show(values, drawn, note)
            else:
                self.view = self.view | dict(note=note)

    def _work(self, values: Mapping[str, Any], exact: bool, stopped: threading.Event) -> Drawn:
        """Return a picture that the worker process draws. Meanwhile, show the progress of a figure."""
        with temporary_folder() as folder:
            progress = folder / "progress"

            def show_progress() -> None:
                with suppress(OSError, ValueError):
                    done, of = json.loads(progress.read_text())
                    if not stopped.is_set():
                        self.progress = dict(done=done, of=of)

            given = self.subject.draw, values, exact, progress
            return worker.run(stopped, *given, meanwhile=show_progress)

    # files

    def figure(self) -> Any:
        """Return the displayed picture as a matplotlib figure. It has the style of saved figures."""
        panels = self.subject.panels(self.values, self.rows)
        return plots.grid(self.rows, panels, min(2, len(panels)), height=2.4)

    def save(
        self,
        results: str | Path | None = None,
        *,
        stem: str = "",
        title: str = "",
        profile: str = "explorer",
    ) -> Path:
        """Save the picture as PDF, SVG and PNG, together with its numbers and a manifest, which says how the
        picture was made.

        If the picture is a rough preview, it is first drawn exactly, so that the command in the manifest
        makes the same picture.

        Parameters
        ----------
        results : path, optional
            Folder for the results of all figures. Default: the project's folder of results.
        stem : str
            Name of the new folder. By default, it follows from the values of the controls.
        title : str
            Title of the picture. Default: the title of the panel.
        profile : str
            Name of the subfolder of `results` for the new folder.

        Returns
        -------
        Path
            Path of the new folder.
        """
        with self._lock:
            if self.subject.slow:
                return Path(worker.run(self._stopped, self.subject.save, self.values))
            if not self.view["exact"]:
                self.set()
            spec, rows = self._described(stem, title)
            fig = self.figure()
            try:
                folder = results or figures.results_folder()
                return figures.save(fig, rows, spec=spec, profile=profile, results=folder)
            finally:
                plots.close(fig)

    def _described(
        self, stem: str = "", title: str = ""
    ) -> tuple[figures.Description, pd.DataFrame]:
        """Return the description for the files, and the rows in the form in which they are saved."""
        command = self._commands()[0] or self.view["code"]
        name = stem or f"{self.subject.name}_{sha256(command.encode()).hexdigest()[:6]}"
        spec = figures.Description(
            name, title or self.subject.title, command, self.release is None
        )
        if self.release is None:
            return spec, self.rows
        return spec, self.rows.assign(simulated=self.release.simulated)

    def to_export(self) -> Export:
        """Return the content of the files that `workbench export` writes for a mechanism. Each part of the
        picture states the budget. The caption states the settings, the data and the number of seeds.
        """
        subject: Any = self.subject  # of a mechanism, which alone has a dataset
        set_to = {name: x for name, x in self.values.items() if type(x) in (int, float)}
        set_to.pop("seed")
        seeds = int(set_to.pop("seeds"))
        words = {
            name: f"{plots.SYMBOLS.get(name, name)} = {number(x)}" for name, x in set_to.items()
        }
        budget = [words[name] for name in ("epsilon", "rho", "delta") if set_to.get(name)]
        parts = [
            replace(part, title=", ".join([part.title, *budget]))
            for part in subject.panels(self.values, self.rows)
        ]
        spec, rows = self._described(title=subject.words.rstrip("."))
        data = data_in_words([subject.dataset])
        caption = ". ".join([", ".join(words.values()), *data, counted(seeds, "seed")])
        cite = getattr(self.release and self.release.mechanism, "cite", None)
        return Export(
            lambda: {"": plots.grid(rows, parts, min(2, len(parts)), height=2.4)},
            rows,
            spec,
            "explorer",
            caption=caption,
            cite=[cite] if cite else [],
        )

    def _export(self) -> None:
        folder = self.save()
        packed = BytesIO()
        with ZipFile(packed, "w") as archive:
            for path in sorted(folder.iterdir()):
                archive.write(path, f"{folder.name}/{path.name}")
        message = dict(kind="saved", path=str(folder), name=folder.name)
        self.send(message, [packed.getvalue()])


def settings_of(words: Sequence[str]) -> dict[str, str]:
    """Split words of the form `name=value`, and return a dictionary from names to values."""
    for word in words:
        if "=" not in word:
            raise ValueError(f"{word!r} is not allowed: need name=value")
    return dict(word.split("=", 1) for word in words)


def _sentence(error: Exception) -> str:
    """Return the sentence with which a panel shows an error."""
    if isinstance(error, MemoryError):
        return f"there is not enough memory for this {error}".strip()
    if isinstance(error, ValueError | OSError) and str(error):
        return str(error)
    return f"{type(error).__name__}: {error}"
