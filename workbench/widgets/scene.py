"""What a panel shows: its controls, what they set up, and the rows that are measured and drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd

from workbench.mechanism import Release
from workbench.plots import Panel
from workbench.widgets.controls import Control

Values = Mapping[str, Any]  # a setting of every control, by its name


class Setup(NamedTuple):
    """What a setting of the controls means: text that can be pasted, and run by anybody."""

    dataset: Any
    mechanism: Any


class Seen(NamedTuple):
    """One draw: tidy rows with the columns that the panels know, and facts in words."""

    rows: pd.DataFrame
    facts: Sequence[tuple[str, str]] = ()


class Scene(Protocol):
    """One panel of the explorer. A frozen value: workers and files are sent its text.

    `grid` says which settings a file that has no kernel can show; all others stay as they are.
    """

    name: str
    title: str
    words: str
    luck: str
    controls: tuple[Control, ...]
    grid: Mapping[str, tuple]

    def setup(self, values: Values) -> Setup:
        """The dataset and the mechanism; a ValueError, in the mechanism's words, if there is none."""

    def look(self, values: Values, data: Any, release: Release, seed: int, exact: bool) -> Seen:
        """Measure one release, roughly while somebody drags and else exactly."""

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """How the rows are drawn."""


@lru_cache(8)
def loaded(dataset: Any) -> Any:
    """A dataset's table; a ValueError unless its truth may stand beside a release."""
    if not getattr(dataset, "truth_public", False):
        raise ValueError(
            f"{dataset!r} does not say truth_public: a panel compares with the truth, which would "
            "leave by a side door; `widgets.advice` works from public numbers alone"
        )
    return dataset.load()


def draw(scene: Scene, values: Values, seed: int, exact: bool) -> tuple[Seen, Release]:
    """One draw of what `values` set up, by noise that `seed` replays: simulated, never published."""
    dataset, mechanism = scene.setup(values)
    data = loaded(dataset)
    release = mechanism(data, np.random.default_rng(seed))
    seen = scene.look(values, data, release, seed, exact)
    about = dict(seed=seed, dataset=repr(dataset), truth_public=True, trial=repr(mechanism))
    return Seen(seen.rows.assign(**about), seen.facts), release


def code(scene: Scene, values: Values, seed: int) -> str:
    """What to paste to get the release on the screen, noise and all."""
    dataset, mechanism = scene.setup(values)
    made, data = (
        f"{room}.{x!r}" for room, x in (("mechanisms", mechanism), ("datasets", dataset))
    )
    lines = ["from workbench import *", "import numpy as np"]
    return "\n".join(
        [*lines, f"release = {made}({data}.load(), np.random.default_rng({seed}))"]
    )


def command(scene: Scene, values: Values, seed: int, draws: int) -> str:
    """What to type to get the figure on the screen as files."""
    words = [f"workbench export {scene.name}"]
    for control in scene.controls:
        if (x := values[control.name]) != control.value or type(x) is not type(control.value):
            words.append(f"{control.name}={_word(x)}")
    words += [f"luck={seed}"] * (seed != 0) + [f"draws={draws}"] * (draws != 1)
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
    known, told = {c.name: c for c in scene.controls}, {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or name not in known:
            raise ValueError(
                f"{word!r} is not allowed: need name=value with a name out of {', '.join(known)}"
            )
        control = known[name]
        told[name] = control.read(_read(control, text))
    return told


def _read(control: Control, text: str) -> Any:
    if control.kind == "switch":
        return {"on": True, "off": False}.get(text, text)
    if control.kind == "choice":
        return next((s for s in control.stops if text in (str(s), repr(s))), text)
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
