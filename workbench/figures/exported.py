"""Figures and panels as files for a paper: flat in one folder, each saying where it comes from."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench import provenance
from workbench.datasets._kinds import kind_of
from workbench.figures import latex
from workbench.figures.figure import PROFILES, Figure
from workbench.figures.saved import (
    IMAGES,
    Description,
    describe_figure,
    make_record,
    refuse_private_truth,
    save_picture,
    write_atomically,
    write_json,
)
from workbench.wording import counted

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

FORMATS = (*IMAGES, "csv", "tex", "md")
BIBLIOGRAPHY = "workbench.bib"


@dataclass(frozen=True)
class Export:
    """What is written of one figure or panel.

    Parameters
    ----------
    draw : callable
        Gives the drawing, None of a table.
    rows : DataFrame
        What is drawn; with `truth_public`, as `save` takes them.
    description : Description
        What its files say of it; its command makes them again.
    profile : str
        "quick", "paper" or "explorer".
    tables : mapping
        Tables by their captions.
    caption : str
        What stands under the picture beside its title: where, on what data.
    cite : sequence of str
        Keys of `references.bib`.
    """

    draw: Callable[[], Drawing | None]
    rows: pd.DataFrame
    description: Description
    profile: str
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    caption: str = ""
    cite: Sequence[str] = ()


def parse_formats(text: str) -> tuple[str, ...]:
    """The kinds of files that a comma parts; a ValueError for one that there is not."""
    kinds = tuple(
        dict.fromkeys(part.strip().lower() for part in text.split(",") if part.strip())
    )
    for kind in kinds or ("",):
        if kind not in FORMATS:
            raise ValueError(
                f"--format {kind or text!r} is not allowed: need some of {','.join(FORMATS)}"
            )
    return kinds


def of_figure(figure: Figure, profile: str, store: Path) -> Export:
    """A figure of a paper, run as far as `store` does not hold its trials."""
    from workbench import claims

    rows, verdicts = figure.run(store)
    tables = {}
    if type(figure).comparison is not Figure.comparison or figure.off_paper():
        tables["The paper's numbers and ours"] = figure.compare_with_paper(rows)
    if verdicts:
        shown = {"says": "the paper says", "outcome": "verdict", "measured": "measured"}
        if any(verdict.strip for verdict in verdicts):
            shown["by_value"] = "by what is not printed"
        judged = claims.to_frame(verdicts)[[*shown]].rename(columns=shown)
        tables["What the paper says, judged"] = judged
    description = replace(
        describe_figure(figure, profile),
        command=figure.command(profile).replace(" reproduce ", " export ", 1),
    )
    datasets = [] if figure.no_data else figure.datasets_used()
    kinds = ", ".join(dict.fromkeys(f"{type(d).__name__} ({kind_of(d)})" for d in datasets))
    seeds = rows.seed.nunique() if "seed" in rows else 0
    parts = [
        figure.page,
        f"data: {kinds}" if kinds else "",
        f"{profile} profile{', ' + counted(seeds, 'seed') if seeds else ''}",
    ]
    cite = [figure.id.partition("_")[0], *(d.cite for d in datasets if hasattr(d, "cite"))]
    caption = "; ".join(filter(None, parts))
    draw = partial(figure.draw, rows)  # strips of what is not printed are the report's
    return Export(draw, rows, description, profile, tables, caption, cite)


def write(
    export: Export, to: Path, *, width: str | float, font: str, formats: Sequence[str]
) -> list[Path]:
    """Write an export's files for a page of that width.

    Parameters
    ----------
    export : Export
        What is written.
    to : path
        The folder; it is made if it is not there.
    width, font : str
        As `plots.on_page` takes them.
    formats : sequence of str
        Of `FORMATS`.

    Returns
    -------
    list of Path
        The files, of which `workbench whereis` says where they come from.

    Raises
    ------
    ValueError
        If rows compare with a truth that is not public.
    OSError
        If the folder cannot be written.
    """
    from workbench import plots

    refuse_private_truth(export.rows, export.description)
    with plots.on_page(width, font):
        fig = export.draw()
    try:
        to.mkdir(parents=True, exist_ok=True)
        return _Writer(export, to, width, font).write(fig, formats)
    finally:
        if fig is not None:
            plots.close(fig)


class _Writer:
    """The files of one export."""

    def __init__(self, export: Export, to: Path, width: str | float, font: str):
        self.export = export
        self.to = to
        self.stem = re.sub(r"[^\w.-]+", "-", export.description.name).strip("-.")
        self.wide = width == "page" or (width not in ("column", "slide") and float(width) > 12)
        command = f"{export.description.command} --width {width} --font {font}"
        description = replace(export.description, command=command)
        self.record = make_record(description, export.profile, export.rows)

    def write(self, fig: Drawing | None, formats: Sequence[str]) -> list[Path]:
        """Those of the formats that there are: a table has no picture."""
        files = []
        pictures = [kind for kind in formats if kind in IMAGES and fig is not None]
        for kind in pictures:
            path = self.to / f"{self.stem}.{kind}"
            save_picture(fig, path, kind, self.record)
            files.append(path)
        if "csv" in formats:
            files.append(self._write_rows())
        best = next((kind for kind in ("pdf", "png", "svg") if kind in pictures), "")
        if "tex" in formats:
            files += self._write_latex(best if best != "svg" else "")
        if "md" in formats:
            shown = next((kind for kind in ("svg", "png", "pdf") if kind in pictures), "")
            files.append(self._write_text("md", self._markdown(shown)))
        return files

    def _write_rows(self) -> Path:
        path = self.to / f"{self.stem}.csv"
        to_csv = partial(self.export.rows.to_csv, index=False, lineterminator="\n")
        sha256 = write_atomically(path, to_csv)
        write_json(provenance.sidecar(path), self.record | {"sha256": {path.name: sha256}})
        return path

    def _write_text(self, kind: str, text: str, suffix: str = "") -> Path:
        path = self.to / f"{self.stem}{suffix}.{kind}"
        lines = f"{text}\n\n{provenance.comment(kind, self.record)}\n"
        write_atomically(path, lambda draft: draft.write_text(lines, encoding="utf-8"))
        return path

    def _caption(self) -> str:
        """As LaTeX; it cites what the figure rests on."""
        known = latex.entries(self.export.cite)
        title = latex.escape(self.export.description.title.rstrip("."))
        rest = f" {latex.escape(self.export.caption)}." if self.export.caption else ""
        keys = [key for key in known if key != latex.OURS]
        cited = rf"~\cite{{{','.join(keys)}}}" if keys else ""
        noise = " Noise is simulated." if self.record["noise"] == "simulated" else ""
        return rf"{title}{cited}.{rest}{noise} Made with dp-workbench~\cite{{{latex.OURS}}}."

    def _write_latex(self, picture: str) -> list[Path]:
        head = (
            f"% Written by workbench export, which overwrites it. It needs graphicx,\n"
            f"% booktabs and array; \\bibliography{{{Path(BIBLIOGRAPHY).stem}}} has what it cites."
        )
        files = []
        if picture:
            float_ = latex.figure_float(
                f"{self.stem}.{picture}", self._caption(), self.stem, self.wide
            )
            files.append(self._write_text("tex", f"{head}\n{float_}"))
        if self.export.tables:
            title = latex.escape(self.export.description.title.rstrip("."))
            floats = [
                latex.table_float(
                    table, f"{latex.escape(name)}: {title}.", f"{self.stem}-{i}", self.wide
                )
                for i, (name, table) in enumerate(self.export.tables.items())
            ]
            files.append(self._write_text("tex", "\n\n".join([head, *floats]), "_tables"))
        path = self.to / BIBLIOGRAPHY
        known = latex.entries(self.export.cite)
        if path.is_file():
            known = latex.parse_entries(path.read_text(encoding="utf-8")) | known
        text = f"{provenance.comment('tex', self.record)}\n\n{latex.bibliography(known)}"
        write_atomically(path, lambda draft: draft.write_text(text, encoding="utf-8"))
        return [*files, path]

    def _markdown(self, picture: str) -> str:
        parts = [f"# {self.export.description.title}"]
        if picture:
            parts.append(f"![{self.export.description.title}]({self.stem}.{picture})")
        if self.export.caption:
            parts.append(f"{self.export.caption}.")
        for name, table in self.export.tables.items():
            parts += [f"## {name}", latex.markdown_table(table)]
        parts += ["Again:", f"    {self.record['command']}"]
        return "\n\n".join(parts)


def rows_again(record: Mapping[str, Any], store: Path) -> pd.DataFrame:
    """The rows of a figure, run again at the setting that a record says; nothing else of it is used.

    Parameters
    ----------
    record : mapping
        As `provenance.read` gives it.
    store : path
        An empty folder: a store that holds its trials would only be read.

    Raises
    ------
    ValueError
        If there is no such figure, or a parameter is not allowed.
    """
    from workbench.figures.project import find_figure

    profile = str(record.get("profile"))
    if profile not in PROFILES:
        raise ValueError(f"profile = {profile!r} is not allowed: need one of {PROFILES}")
    cls = find_figure(str(record.get("id")))
    setting = record.get("setting", {})
    cls.refuse_unknown(setting)
    return cls.at(profile, **setting).run(store)[0]
