"""A page a paper: what it says, statement by statement, and what our runs found."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd

from docs.pages.gallery import PAPERS, ids, picture
from docs.pages.text import escape
from experiments import verdicts
from workbench import figures
from workbench.trials import claims

SHORT = 240  # characters of what was measured that are shown at once


def write(folder: Path) -> None:
    """Write `<paper>.md` for each paper."""
    for paper in PAPERS:
        (folder / f"{paper}.md").write_text(page(paper, folder.parent / "gallery"), "utf-8")


def page(paper: str, pictures: Path) -> str:
    """The page of a paper."""
    root = figures.project_folder()
    found = verdicts.committed(paper)
    opening = nbformat.read(root / "notebooks" / paper / "index.ipynb", as_version=4)
    parts = [
        opening.cells[0].source,
        f"## What we found\n\n{summary(paper, found)}\n\nWhat the paper prints wrongly or "
        f"ambiguously, with what is right: [errata](/errata.md#{heading(PAPERS[paper])}).",
    ]
    for id in ids(paper):
        parts += figure_section(id, found[found.figure == id], pictures)
    return "\n\n".join(parts) + "\n"


def heading(text: str) -> str:
    """What a heading is called in links to it."""
    return re.sub(r"[^\w -]", "", text.lower()).replace(" ", "-")


def summary(paper: str, found: pd.DataFrame) -> str:
    """The findings of the paper, and how many statements ended how."""
    lines = verdicts.findings_table(paper).splitlines()[2:]
    counts = claims.count_outcomes(found)
    lines += ["", "| statements | |", "|---|---:|"]
    lines += [f"| {name} | {n} |" for name, n in counts.items() if n]
    return "\n".join([*lines, "", f"Of all, {claims.share_that_holds(counts)}."])


def figure_section(id: str, found: pd.DataFrame, pictures: Path) -> Iterator[str]:
    """The parts of one figure: its picture, how to run it, and what the paper says of it."""
    figure = figures.find_figure(id)
    page = f"{figure.page[0].upper()}{figure.page[1:]}. " if figure.page else ""
    notebook = f"notebooks/{id.replace('_', '/', 1)}.ipynb"
    yield f"({id})=\n## {escape(figure.title)}"
    if (pictures / f"{id}.png").exists():
        yield picture(id, escape(figure.title))
    yield f"{escape(page)}Notebook: `{notebook}`. Run it again: `workbench reproduce {id}`."
    by_id = {verdict.id: verdict for verdict in found.itertuples()}
    for claim in figure.claims:
        yield quotation(claim)
        yield "\n".join(statement(each, by_id.get(each.id)) for each in claim.statements)


def quotation(claim: claims.Claim) -> str:
    """The sentence of a claim, and where it stands."""
    sentence = escape(" ".join(claim.sentence.split()))
    return f"> {sentence}\n>\n> — {escape(claim.page)}" if claim.page else f"> {sentence}"


def statement(each: claims.Statement, verdict: Any) -> str:
    """A statement and its verdict, as an entry of a list."""
    outcome = verdict.outcome if verdict else claims.NOT_JUDGED
    mark = f", {verdict.mark}" if verdict and verdict.mark else ""
    head = f"- **{claims.TICKS[outcome]} {outcome}{mark}** {escape(each.says)} (`{each.id}`)"
    told = [verdict.measured, verdict.why] if verdict else []
    measured = "; ".join(text.rstrip(".") for text in told if text)
    if not measured:
        return head
    shown = escape(measured) + "."
    if len(measured) <= SHORT:
        return f"{head}\n\n  *{shown}*\n"
    opened = "<details><summary>measured</summary>"
    return f"{head}\n\n  {opened}\n\n  {shown}\n\n  </details>\n"
