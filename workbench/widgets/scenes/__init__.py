"""What a panel shows: its controls, what they set up, and the rows that are measured and drawn."""

from __future__ import annotations

import dataclasses  # whose `fields` is the name of a scene's file
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import pandas as pd

from workbench.mechanism import Release
from workbench.metrics.refusal import refuse_private
from workbench.noise import Aligned
from workbench.plots import Panel
from workbench.privacy import Receipt
from workbench.table import PUBLIC
from workbench.widgets.controls import Control

Values = Mapping[str, Any]  # a setting of every control, by its name
SEED = Control("seed", 0, (0, 1), doc="of the noise")
SEEDS = Control("seeds", 1, (1, 20), doc="how many releases are drawn, by seed, seed + 1, …")
RENAMED = {"luck": "seed", "draws": "seeds"}


class Setup(NamedTuple):
    """What a setting of the controls means: text that can be pasted, and run by anybody."""

    dataset: Any
    mechanism: Any


class Picture(NamedTuple):
    """One draw: tidy rows with the columns that the panels know, and facts in words.

    `ledger` holds receipts of looks beside the release's. Where nothing is released, also the code
    that makes the rows, and commands to go on with.
    """

    rows: pd.DataFrame
    facts: Sequence[tuple[str, str]] = ()
    code: str = ""
    commands: Sequence[str] = ()
    ledger: Sequence[Receipt] = ()


class Scene(Protocol):
    """One panel of the explorer. A frozen value: workers and files are sent its text.

    `grid` says which settings a file that has no kernel can show; all others stay as they are. A
    scene without `noise_note` draws nothing at random; one that says `by_name = False` is not
    exported by its name.
    """

    name: str
    title: str
    words: str
    noise_note: str
    controls: tuple[Control, ...]
    grid: Mapping[str, tuple]

    def setup(self, values: Values) -> Setup | None:
        """The dataset and the mechanism; a ValueError, in the mechanism's words, if there is none.

        None where there is nothing to release: `look` then gets neither data nor release.
        """

    def look(
        self, values: Values, data: Any, release: Release, seed: int, exact: bool
    ) -> Picture:
        """Measure one release, roughly while somebody drags and else exactly."""

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """How the rows are drawn."""


@lru_cache(8)
def loaded(dataset: Any) -> Any:
    """A dataset's table; a ValueError unless both say that their truth may stand beside a release."""
    if not public(dataset):
        raise ValueError(
            f"{type(dataset).__name__} does not say truth_public: a panel compares with the truth, "
            "which would leave by a side door; `widgets.advice` works from public numbers alone"
        )
    data = dataset.load()
    refuse_private(data)
    return data


def public(data: Any) -> bool:
    """Whether a dataset or a table says that its truth is public; nothing else counts as saying so."""
    return (
        getattr(data, "truth_public", False) is True or getattr(data, "bound", None) is PUBLIC
    )


def draw(
    scene: Scene, values: Values, seed: int, exact: bool
) -> tuple[Picture, Release | None]:
    """One draw of what `values` set up, by noise that `seed` replays: simulated, never published."""
    if (setup := scene.setup(values)) is None:
        return scene.look(values, None, None, seed, exact), None
    dataset, mechanism = setup
    data = loaded(dataset)
    release = mechanism(data, Aligned(seed))
    seen = scene.look(values, data, release, seed, exact)
    about = dict(seed=seed, dataset=repr(dataset), truth_public=public(data))
    return seen._replace(rows=seen.rows.assign(**about, trial=repr(mechanism))), release


def code(scene: Scene, values: Values, seed: int) -> str:
    """What to paste to get the release on the screen, noise and all.

    Where a scene has `after(values, seed)`, its text follows: what is made of the release.
    """
    data, made = map(written, scene.setup(values))
    lines = ["from workbench import *"]
    lines.append(f"release = {made}({data}.load(), Aligned({seed}))")
    after = getattr(scene, "after", None)
    return "\n".join([*lines, after(values, seed)] if after else lines)


def written(x: Any) -> str:
    """The text of a mechanism or dataset, and of those in it, with the rooms where they are.

    >>> from workbench.datasets import NetTraceTwin, Ranked
    >>> written(Ranked(NetTraceTwin()))
    'datasets.Ranked(dataset=datasets.NetTraceTwin())'
    """
    rooms = dict(_rooms(x))
    return re.sub(r"\b\w+(?=\()", lambda name: rooms.get(name[0], "") + name[0], repr(x))


def _rooms(x: Any) -> Iterator[tuple[str, str]]:
    """Classes of the workbench in a value, and their rooms."""
    where = type(x).__module__.split(".")
    if where[0] == "workbench" and where[1:2] in (["mechanisms"], ["datasets"]):
        yield type(x).__name__, f"{where[1]}."
    for f in dataclasses.fields(x) if dataclasses.is_dataclass(x) else ():
        yield from _rooms(getattr(x, f.name))


def command(scene: Scene, values: Values, seed: int, seeds: int) -> str:
    """What to type to get the figure on the screen as files; nothing if no words do."""
    if not getattr(scene, "by_name", True):
        return ""
    words = [f"workbench export {scene.name}"]
    for control in scene.controls:
        if (x := values[control.name]) != control.value or type(x) is not type(control.value):
            words.append(f"{control.name}={_word(x)}")
    words += [f"seed={seed}"] * (seed != 0) + [f"seeds={seeds}"] * (seeds != 1)
    return " ".join(words)


def _word(x: Any) -> str:
    """A setting as it is typed.

    >>> _word(True), _word(0.1), _word("count sketch")
    ('on', '0.1', "'count sketch'")
    """
    from shlex import quote

    return {True: "on", False: "off"}[x] if isinstance(x, bool) else quote(str(x))


def typed(scene: Scene, words: Sequence[str]) -> dict[str, Any]:
    """Settings as they are typed, `name=value` each; a ValueError names what is wrong."""
    known, told = {c.name: c for c in scene.controls} | {"seed": SEED, "seeds": SEEDS}, {}
    for word in words:
        name, equals, text = word.partition("=")
        refuse_renamed(name)
        if not equals or name not in known:
            names = ", ".join(known)
            raise ValueError(f"{word!r} is not allowed: need name=value, a name out of {names}")
        told[name] = known[name].read(_read(known[name], text))
    return told


def refuse_renamed(name: str) -> None:
    """A ValueError for a setting that had another name."""
    if name in RENAMED:
        raise ValueError(f"{name!r} is not allowed: it is called {RENAMED[name]!r}")


def _read(control: Control, text: str) -> Any:
    if control.kind == "switch":
        if text not in ("on", "off"):
            raise ValueError(f"{control.name} = {text!r} is not allowed: need on or off")
        return text == "on"
    if control.kind == "choice":
        return next((s for s in control.stops if text in (str(s), repr(s))), text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
