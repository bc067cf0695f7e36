"""What a batch runs: figures, each at the settings that were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from workbench import option_grammar, plugins
from workbench.figures import Figure, find_figure
from workbench.wording import did_you_mean

MANY = 200  # runs that are started without being asked for twice


@dataclass(frozen=True)
class Task:
    """One run of a figure's notebook.

    `name` is its folder among the profile's results, `parameters` what papermill sets beside `profile`
    and `results`; a figure of another package has no `path`, and the cells that every figure has.
    """

    id: str
    path: Path | None
    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


def tasks(
    ids: Sequence[str], paths: Mapping[str, Path], profile: str, settings: Sequence[str]
) -> list[Task]:
    """The runs of figures at every combination of what `settings` list.

    Parameters
    ----------
    ids : sequence of str
        Figures.
    paths : mapping
        Their notebooks.
    profile : str
        "quick" or "paper".
    settings : sequence of str
        `name=value`; several values stand between commas, several lists between semicolons.

    Raises
    ------
    ValueError
        If a figure lacks a parameter, or a value is not allowed for it.
    """
    for id in ids:
        if id not in paths and plugins.find("figures", id) is None:
            raise ValueError(f"no figure {id!r}{did_you_mean(id, paths)}")
    if not settings:
        return [Task(id, paths.get(id), id) for id in ids]
    runs = []
    for id in ids:
        cls = find_figure(id)
        figures = [cls.at(profile, **given) for given in grid(cls, settings)]
        for figure in dict.fromkeys(figures):
            given = {n: _plain(x) for n, x in figure.differences(profile).items()}
            runs.append(Task(id, paths.get(id), figure.name(profile), given))
    return runs


def grid(cls: type[Figure], settings: Sequence[str]) -> list[dict[str, Any]]:
    """Every combination of the values that `settings` list for a figure."""
    known = cls.parameters()
    values: dict[str, list[str]] = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise ValueError(f"-p {setting!r}: need name=value, as in -p epsilon=0.5")
        cls.refuse_unknown([name])
        if name in values:
            raise ValueError(f"-p {name} is given twice; several values stand between commas")
        between = ";" if known[name].metadata["many"] else ","
        values[name] = [part.strip() for part in text.split(between) if part.strip()]
        if not values[name]:
            raise ValueError(
                f"-p {name}: need at least one value; {option_grammar.parameter_help(known[name])}"
            )
    return [dict(zip(values, row, strict=True)) for row in product(*values.values())]


def _plain(x: Any) -> Any:
    """A value as papermill writes it: the text `none`, because a notebook's None is the profile's own."""
    return list(x) if isinstance(x, tuple) else "none" if x is None else x
