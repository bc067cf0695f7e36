"""All figures as small pictures, of the runs that this machine has."""

from __future__ import annotations

from pathlib import Path

from docs.pages.text import escape
from workbench import figures
from workbench.figures.entries import natural_order, write_thumbnail

PAPERS = {
    "cormode2012": "Cormode et al. 2012",
    "hay2010": "Hay et al. 2010",
    "adaptive2009": "Adaptive histograms, 2009",
    "fan2015": "Fan & Jin 2015",
    "chen2012": "Chen et al. 2012",
}
TEXT = """\
# Gallery

Every figure that is reproduced. A picture is that of the paper profile where it has run on this machine,
else of the quick profile. Each leads to what the paper says of the figure and what we found.
"""


def write(folder: Path, results: Path) -> None:
    """Write `<figure>.png` for each figure that is drawn, and the page that shows all."""
    parts = [TEXT]
    for paper, name in PAPERS.items():
        cards = [card(id, draw(id, results, folder / f"{id}.png")) for id in ids(paper)]
        parts += [f"## {name}", "::::{container} gallery", *cards, "::::"]
    (folder / "index.md").write_text("\n\n".join(parts) + "\n", "utf-8")


def ids(paper: str) -> list[str]:
    """The figures of a paper that have a notebook, in the order of their names."""
    every = figures.find_notebooks(figures.project_folder() / "notebooks")
    return sorted((id for id in every if id.startswith(f"{paper}_")), key=natural_order)


def card(id: str, profile: str) -> str:
    """A figure's entry in the gallery: its picture, and its title, which leads to its section."""
    title = escape(figures.find_figure(id).title)
    shown = picture(id, title) if profile else ""
    how = f"{profile} profile" if profile else f"not run here: `workbench reproduce {id}`"
    return f":::{{container}} card\n{shown}[{title}](#{id})<br>{how}\n:::"


def picture(id: str, title: str) -> str:
    """The small picture of a figure, from any page; it leads to the figure's section."""
    link = f"../papers/{id.partition('_')[0]}.html#{id.replace('_', '-')}"
    return f"```{{image}} /gallery/{id}.png\n:alt: {title}\n:target: {link}\n```\n\n"


def draw(id: str, results: Path, path: Path) -> str:
    """Write the small picture of a figure; returns the profile of its run, nothing without one."""
    path.unlink(missing_ok=True)
    for profile in reversed(figures.PROFILES):
        drawn = figures.figure_folder(results, profile, id) / f"{id}.png"
        if drawn.exists():
            write_thumbnail(drawn, path)
            return profile
    return ""
