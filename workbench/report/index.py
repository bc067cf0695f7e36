"""The figures of one paper at a glance: pictures where they have run, and links to their notebooks."""

from __future__ import annotations

import base64
from collections import Counter
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory

from workbench import figures
from workbench.report.entries import natural_order
from workbench.report.passages import read_passages
from workbench.report.thumbnails import write_thumbnail

_WIDTH = 320  # pixels of a thumbnail
_CARD = """<a href="{link}" style="display: block; width: {width}px; margin: 0 1rem 1rem 0;
color: inherit; text-decoration: none">
<div style="background: #fff; border: 1px solid #8888; min-height: 8rem">{picture}</div>
<b>{title}</b><br><small>{verdicts}</small></a>
"""


@dataclass(frozen=True)
class Index:
    """The figures of a paper, shown by a notebook as cards that link to theirs.

    Parameters
    ----------
    paper : str
        Its folder among the notebooks, as "cormode2012".
    results : path, optional
        The folder of results; the project's unless it is given.
    """

    paper: str
    results: Path | None = None

    def __post_init__(self) -> None:
        if not self.notebooks():
            raise ValueError(f"paper = {self.paper!r} is not allowed: it has no notebooks here")

    def notebooks(self) -> dict[str, Path]:
        """The paper's notebooks by the ids of their figures."""
        every = figures.find_notebooks(figures.project_folder() / "notebooks")
        own = [id for id, path in every.items() if path.parent.name == self.paper]
        return {id: every[id] for id in sorted(own, key=natural_order)}

    def _repr_html_(self) -> str:
        cards = [self._card(id, path) for id, path in self.notebooks().items()]
        return f'<div style="display: flex; flex-wrap: wrap">{"".join(cards)}</div>'

    def _card(self, id: str, path: Path) -> str:
        saved = self._saved(id)
        picture = "<p style='padding: 1rem; color: #555'>not run yet</p>"
        verdicts = ""
        title, _ = read_passages(path)
        if saved is not None:
            counts = Counter(saved.verdicts.outcome)
            verdicts = ", ".join(f"{outcome} {n}" for outcome, n in counts.items())
            verdicts = f"{saved.manifest['profile']} profile: {verdicts}"
            picture = "<p style='padding: 1rem; color: #555'>a table</p>"
            if "png" in saved.images:
                picture = f'<img alt="" src="{_thumbnail(saved.images["png"])}">'
        return _CARD.format(
            link=escape(path.name),
            width=_WIDTH,
            picture=picture,
            title=escape(title or path.stem),
            verdicts=escape(verdicts),
        )

    def _saved(self, id: str) -> figures.SavedFigure | None:
        """What the paper profile left, or else the quick one."""
        results = self.results or figures.results_folder()
        for profile in reversed(figures.PROFILES):
            folder = figures.figure_folder(results, profile, id)
            if (folder / "manifest.json").exists():
                return figures.load(folder)
        return None


def _thumbnail(path: Path) -> str:
    """A PNG, smaller, as a data address."""
    with TemporaryDirectory() as folder:
        small = Path(folder) / path.name
        write_thumbnail(path, small)
        return f"data:image/png;base64,{base64.b64encode(small.read_bytes()).decode()}"
