"""A setting of controls, and what a page is sent for it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

from workbench.compiled import pd
from workbench.estimates.release import Release
from workbench.figures.plots import Panel
from workbench.mechanisms.options import (
    parse_choice,
    parse_number,
    parse_switch,
    refuse_renamed,
    release_options,
    setting_text,
)
from workbench.noise import Aligned
from workbench.privacy import ZCDP, Receipt, compose, guarantee
from workbench.value import stated_at_most
from workbench.widgets.chart import charts, marker_paths
from workbench.widgets.controls import Control, page_value
from workbench.widgets.scenes import Picture, Scene, Setup, Values, loaded, public

# Setting

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


# View

BAND_SEEDS = 20  # releases behind a band
STATED_DELTA = 1e-6  # at which a ρ is stated as an ε as well
SIMULATED = "simulated: the seed replays this noise, so it is never to be published"


def scene_spec(scene: Scene) -> dict[str, Any]:
    """What a page needs to know of a scene, once."""
    return dict(
        name=scene.name,
        title=scene.title,
        words=scene.words,
        noise_note=scene.noise_note,
        controls=[control.to_dict() for control in scene.controls],
        seeds=BAND_SEEDS,
        markers=marker_paths(),
    )


def joined_rows(drawn: Sequence[tuple[Picture, Release | None]]) -> pd.DataFrame:
    """The rows of several pictures."""
    return pd.concat([picture.rows for picture, _ in drawn], ignore_index=True)


def page_view(
    setting: Setting, seed: int, drawn: Sequence[tuple[Picture, Release | None]]
) -> dict[str, Any]:
    """What a page shows of pictures of one setting, by `seed` and those after it.

    Facts and guarantee are the first's.
    """
    picture, release = drawn[0]
    rows = joined_rows(drawn)
    facts = [list(fact) for fact in picture.facts]
    commands = [setting.command(seed, len(drawn)), *picture.commands]
    paid: dict[str, Any] = dict(
        guarantee="0 spent: nothing was looked at", simulated="", ledger=[]
    )
    if release is not None:
        facts = [["released", _size_text(release)], *facts]
        ledger = (*release.ledger, *picture.ledger)
        paid = dict(
            guarantee=_guarantee_text(ledger), simulated=SIMULATED, ledger=_ledger_rows(ledger)
        )
        if options := release_options(release.mechanism):
            commands.append(f"workbench release YOUR.csv … {options}")
    return paid | dict(
        values={c.name: page_value(setting.values[c.name]) for c in setting.scene.controls},
        seed=seed,
        bands=len(drawn) > 1,
        charts=charts(rows, setting.panels(rows)),
        facts=facts,
        code=picture.code or setting.code(seed),
        commands=[command for command in commands if command],
        note="",
        error="",
    )


def _guarantee_text(ledger: Sequence[Receipt]) -> str:
    """What was spent; of a ρ also the (ε, δ) that follows at the δ that is named there."""
    cost = compose(ledger)
    if not isinstance(cost, ZCDP):
        return str(cost)
    epsilon = guarantee(ledger, STATED_DELTA).epsilon
    return f"{cost}: ({stated_at_most(epsilon)}, δ)-DP at δ = {STATED_DELTA:g}"


def _size_text(release: Release) -> str:
    """How much is released; a part of a table's cells also as their share."""
    estimate = release.estimate
    held = len(estimate)
    cells = getattr(estimate.domain, "size", 0)
    unit = getattr(estimate, "contents", "numbers")
    if held >= cells or unit == "queries":
        return f"{held:,} {unit}"
    cells_text = f"{cells:,}" if cells < 1e15 else f"{cells:.3g}"
    return f"{held:,} {unit}, {held / cells:.3g} of a dense table's {cells_text}"


def _ledger_rows(ledger: Iterable[Receipt]) -> list[list[str]]:
    """Name, cost and neighbours of each measurement; those alike in one row."""
    rows = []
    alike = Counter((r.description, r.cost, r.relation) for r in ledger)
    for (name, cost, relation), count in alike.items():
        if count > 1:
            rows.append([f"{count} × {name}", f"{cost}, each", relation])
        else:
            rows.append([name, str(cost), relation])
    return rows
