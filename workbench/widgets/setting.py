"""A setting of a scene's controls: what it sets up, releases of it, and the text that makes it again."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from workbench.libraries import pd
from workbench.mechanism import Release
from workbench.noise import Aligned
from workbench.option_grammar import (
    parse_choice,
    parse_number,
    parse_switch,
    refuse_renamed,
    setting_text,
)
from workbench.plots import Panel
from workbench.widgets.controls import Control
from workbench.widgets.scenes import Picture, Scene, Setup, Values, loaded, public

SEED = Control("seed", 0, (0, 1), doc="of the noise")
SEEDS = Control("seeds", 1, (1, 20), doc="how many releases are drawn, by seed, seed + 1, …")


class Setting(NamedTuple):
    """What all controls of a scene say, with what it means, which is worked out once."""

    scene: Scene
    values: Values
    setup: Setup | None

    @classmethod
    def of(cls, scene: Scene, values: Values) -> Setting:
        """A ValueError if the scene cannot be set up like that."""
        return cls(scene, values, scene.setup(values))

    @property
    def dataset(self) -> Any:
        """What is released."""
        assert self.setup is not None  # there is something to release
        return self.setup.dataset

    @property
    def mechanism(self) -> Any:
        """What releases it."""
        assert self.setup is not None
        return self.setup.mechanism

    def draw(self, seed: int, exact: bool) -> tuple[Picture, Release | None]:
        """One picture, by noise that `seed` replays: simulated, never published."""
        if self.setup is None:
            return self.scene.picture(self, None, None, seed, exact), None
        data = loaded(self.dataset)
        if hasattr(self.scene, "release"):
            release = self.scene.release(self, seed)
        else:
            release = self.mechanism(data, Aligned(seed))
        picture = self.scene.picture(self, data, release, seed, exact)
        rows = picture.rows.assign(
            seed=seed,
            dataset=repr(self.dataset),
            truth_public=public(data),
            trial=repr(self.mechanism),
        )
        return picture._replace(rows=rows), release

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """How its rows are drawn."""
        return self.scene.panels(self, rows)

    def code(self, seed: int) -> str:
        """What to paste to get the release on the screen, noise and all."""
        dataset = qualified_text(self.dataset)
        mechanism = qualified_text(self.mechanism)
        lines = ["from workbench import *"]
        lines.append(f"release = {mechanism}({dataset}.load(), Aligned({seed}))")
        if hasattr(self.scene, "after"):
            lines.append(self.scene.after(self, seed))
        return "\n".join(lines)

    def command(self, seed: int, seeds: int) -> str:
        """What to type to get the figure on the screen as files; nothing if nothing typed does."""
        if not getattr(self.scene, "by_name", True):
            return ""
        words = [f"workbench export {self.scene.name}"]
        values = {**self.values, "seed": seed, "seeds": seeds}
        for control in (*self.scene.controls, SEED, SEEDS):
            x = values[control.name]
            if x != control.value or type(x) is not type(control.value):
                words.append(f"{control.name}={setting_text(x)}")
        return " ".join(words)


def parse_settings(scene: Scene, words: Sequence[str]) -> dict[str, Any]:
    """Settings as they are typed, `name=value` each; a ValueError names what is wrong."""
    controls = {control.name: control for control in (*scene.controls, SEED, SEEDS)}
    values = {}
    for word in words:
        name, equals, text = word.partition("=")
        refuse_renamed(name)
        if not equals or name not in controls:
            names = ", ".join(controls)
            raise ValueError(f"{word!r} is not allowed: need name=value, a name out of {names}")
        values[name] = controls[name].read(_parse(controls[name], text))
    return values


def _parse(control: Control, text: str) -> Any:
    if control.kind == "switch":
        return parse_switch(control.name, text)
    if control.kind == "choice":
        return parse_choice(control.stops, text)
    return parse_number(control.name, text)


def qualified_text(x: Any) -> str:
    """The text of a mechanism or dataset, and of those in it, with the rooms where they are.

    >>> from workbench.datasets import NetTraceTwin, Ranked
    >>> qualified_text(Ranked(NetTraceTwin()))
    'datasets.Ranked(dataset=datasets.NetTraceTwin())'
    """
    rooms = dict(_rooms(x))
    return re.sub(r"\b\w+(?=\()", lambda name: rooms.get(name[0], "") + name[0], repr(x))


def _rooms(x: Any) -> Iterator[tuple[str, str]]:
    """Classes of the workbench in a value, and their rooms."""
    package, *rooms = type(x).__module__.split(".")
    if package == "workbench" and rooms[:1] in (["mechanisms"], ["datasets"]):
        yield type(x).__name__, f"{rooms[0]}."
    for f in fields(x) if is_dataclass(x) else ():
        yield from _rooms(getattr(x, f.name))
