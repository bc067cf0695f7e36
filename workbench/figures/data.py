"""Which data the figures of papers use now, and what would make it the paper's own."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench import plugins
from workbench.datasets._kinds import GENERATOR, TWIN, kind_of, remarks_on
from workbench.figures.project import find_figure, find_notebooks
from workbench.project import project_folder

if TYPE_CHECKING:
    from workbench.figures.figure import Figure

OWN = "it is the paper's own"
_PAPER = re.compile(r"[a-z]+\d{4}")
_LONGEST = 40  # characters of a configuration that is shown whole


class DataUse(NamedTuple):
    """A dataset of a figure: what it is, and what would make it the paper's own."""

    figure: str
    dataset: str
    kind: str
    remedy: str


def data_in_use() -> Iterator[DataUse]:
    """The datasets of every figure of a paper in this project, as its paper profile runs on them."""
    for id in find_notebooks(project_folder() / "notebooks"):
        if not _PAPER.fullmatch(id.partition("_")[0]):
            continue
        with suppress(ValueError):  # a notebook without a figure
            figure = find_figure(id)
            if not figure.no_data:
                yield from uses_of(figure())


def uses_of(figure: Figure) -> list[DataUse]:
    """The datasets of one figure; of several that say the same of themselves, the first."""
    paper = figure.id.partition("_")[0]
    try:
        used = figure.datasets_used()
    except (FileNotFoundError, ValueError) as e:
        return [DataUse(figure.id, "none", "nothing at hand", str(e))]
    uses: dict[tuple[Any, ...], DataUse] = {}
    for dataset in used:
        remedy = _remedy(dataset, paper)
        name = type(dataset).__name__
        shown = repr(dataset) if len(repr(dataset)) <= _LONGEST else f"{name}(…)"
        use = DataUse(figure.id, shown, kind_of(dataset), remedy)
        uses.setdefault((name, remedy), use)
    return [*uses.values()]


def other_dataset(name: str) -> Any:
    """A dataset of another package by its name, or None if there is none.

    Raises
    ------
    ValueError
        If it does not state that its truth is public: a figure compares with it.
    """
    dataset = plugins.find("datasets", name)
    if isinstance(dataset, type):
        dataset = dataset()
    if dataset is not None and not getattr(dataset, "truth_public", False):
        raise ValueError(
            f"dataset {name!r} does not state that its truth is public (truth_public = True): a figure "
            "shows how far releases are from it"
        )
    return dataset


def _remedy(dataset: Any, paper: str) -> str:
    kind = kind_of(dataset)
    if kind == TWIN:
        return f"it stands in for {dataset.original}"
    if paper in getattr(dataset, "papers", ()):
        return "; ".join([OWN, *remarks_on(dataset)])
    if kind == GENERATOR:
        return "made for the figure"
    return "; ".join(["real data of the kind, beside the paper's", *remarks_on(dataset)])
