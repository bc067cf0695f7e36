"""Export of figures and tables to files that you can use in your own paper, in LaTeX, Markdown and BibTeX."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.compiled import pd, project_folder
from workbench.estimates import files as provenance
from workbench.figures import plots
from workbench.figures.figure import SUPPLEMENT, Figure, data_used, find_figure
from workbench.figures.saved import (
    IMAGES,
    SIMULATED,
    Description,
    describe_figure,
    make_record,
    refuse_private_truth,
    save_picture,
    versions,
    write_csv,
    write_json,
    write_text,
)
from workbench.value import cell, counted, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


# Latex

OURS = "dpworkbench"  # the workbench's own key
_SPECIAL = {c: rf"\{c}" for c in "&%$#_{}"} | {
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}",
}
_ACCENTS = {"\u0302": "hat", "\u0303": "tilde", "\u0304": "bar"}
_GREEK = dict(
    zip(
        "αβγδεζηθκλμνξπρστφχψωΓΔΘΛΠΣΦΨΩ",
        "alpha beta gamma delta varepsilon zeta eta theta kappa lambda mu nu xi pi rho sigma tau "
        "varphi chi psi omega Gamma Delta Theta Lambda Pi Sigma Phi Psi Omega".split(),
        strict=True,
    )
)
_SIGNS = {
    "−": "-", "·": r"\cdot", "×": r"\times", "±": r"\pm", "≤": r"\le", "≥": r"\ge", "≈": r"\approx",
    "≠": r"\ne", "∞": r"\infty", "→": r"\to", "↔": r"\leftrightarrow", "√": r"\sqrt{}", "∝": r"\propto",
    "≡": r"\equiv", "ℓ": r"\ell", "⌈": r"\lceil", "⌉": r"\rceil", "⟨": r"\langle", "⟩": r"\rangle",
    "‖": r"\|", "∈": r"\in", "∑": r"\sum", "½": r"\frac12", "⅓": r"\frac13", "∂": r"\partial",
    "∫": r"\int", "′": "'",    "⌊": r"\lfloor", "⌋": r"\rfloor",
}  # fmt: skip
_WORDS = {
    "✓": "yes",
    "✗": "no",
    "◐": "in part",
    "…": r"\dots{}",
    "–": "--",
    "—": "---",
    "’": "'",
}
_LATEX = _SPECIAL | _WORDS | {c: f"${sign}$" for c, sign in _SIGNS.items()}
_LATEX |= {c: f"$\\{name}$" for c, name in _GREEK.items()}
_LONG = 20  # letters from which a column of a table is broken into lines
_LINES = 45  # of a table on one page
_COLUMN = 66  # letters of a line of a column, with the room between columns


def escape(text: Any) -> str:
    """Return text with special characters escaped for LaTeX. The result also works with plain pdflatex.

    >>> escape("ε ≤ 0.5 & 10⁻³"), escape("S̃ᵣ"), escape("a_b")
    ('$\\\\varepsilon$ $\\\\le$ 0.5 \\\\& 10$^{-3}$', '$\\\\tilde{S}$$_{r}$', 'a\\\\_b')
    """
    parts = re.findall("\\w[\u0302-\u0304]|[⁻⁰¹²³⁴-⁹]+|.", str(text), re.DOTALL)
    return "".join(map(_escape_part, parts))


def _escape_part(part: str) -> str:
    if part[1:] in _ACCENTS:
        return f"$\\{_ACCENTS[part[1:]]}{{{part[0]}}}$"
    if part in _LATEX:
        return _LATEX[part]
    if part.isascii():
        return " " if part.isspace() else part
    plain = unicodedata.normalize("NFKD", part).replace("−", "-")
    kind = unicodedata.decomposition(part[0]).partition(" ")[0]
    if kind in ("<super>", "<sub>") and plain.isascii():
        return f"${'^' if kind == '<super>' else '_'}{{{plain}}}$"
    if part <= "ÿ":
        return part  # LaTeX knows all of Latin-1
    return plain if plain.isascii() else f"[U+{ord(part[0]):04X}]"


def _float(kind: str, wide: bool, *lines: str) -> str:
    """Return the LaTeX environment of a figure or table. If `wide` is True, the figure or table covers both
    columns of a page.
    """
    name = f"{kind}*" if wide else kind
    inside = "\n  ".join([rf"\begin{{{name}}}", r"\centering", *lines])
    return f"{inside}\n\\end{{{name}}}"


def table_float(table: pd.DataFrame, caption: str, label: str, wide: bool) -> str:
    """Return a LaTeX table, which uses the package booktabs. The table covers both columns of a page if
    `wide` is True, or if one column is too narrow.

    Columns of long texts share the width that is left by other columns. Their texts may take several lines.
    """
    names, rows = _cells(table)
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    columns = "".join(
        r">{\raggedright\arraybackslash}X" if width > _LONG else "l" for width in widths
    )
    room = sum(min(width, _LONG) + 2 for width in widths)
    kind, size = ("tabularx", r"{\linewidth}") if "X" in columns else ("tabular", "")
    head, *body = [" & ".join(map(escape, row)) + r" \\" for row in [names, *rows]]
    return _float(
        "table",
        wide or room > _COLUMN,
        rf"\footnotesize\caption{{{caption}}}\label{{tab:{label}}}",
        rf"\begin{{{kind}}}{size}{{{columns}}}",
        rf"\toprule {head} \midrule",
        *body,
        rf"\bottomrule \end{{{kind}}}",
    )


def markdown_table(table: pd.DataFrame) -> str:
    """Return a table as Markdown."""
    names, rows = _cells(table)
    lines = [names, ["---"] * len(names), *rows]
    clean = [[cell.replace("|", r"\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in clean)


def _cells(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """Return the texts of a table, with its index if the index has a name."""
    if any(table.index.names):
        table = table.reset_index()
    names = [" ".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in table.columns]
    rows = [[plots.in_words(cell(x)) for x in row] for row in table.itertuples(index=False)]
    return names, rows


# ---- what is cited


def entries(keys: Iterable[str]) -> dict[str, str]:
    """Return the BibTeX entries of the given keys and of the workbench. Keys that are not in the file
    `references.bib` are left out.
    """
    known = {OURS: _own_entry()}
    for folder in (Path(__file__).resolve().parents[2], project_folder()):
        with suppress(FileNotFoundError):
            known |= parse_entries((folder / "references.bib").read_text(encoding="utf-8"))
    return {key: known[key] for key in dict.fromkeys([*keys, OURS]) if key in known}


def parse_entries(text: str) -> dict[str, str]:
    """Return BibTeX entries by key. Each entry begins at the start of a line."""
    parts = re.split(r"^(?=@\w+\{)", text, flags=re.MULTILINE)
    found = ((re.match(r"@\w+\{([^,\s]+),", part), part.strip()) for part in parts)
    return {match[1]: part for match, part in found if match}


def _own_entry() -> str:
    return (
        f"@misc{{{OURS},\n"
        "  author  = {{The dp-workbench authors}},\n"
        "  title   = {{dp-workbench}: a research workbench for differential privacy},\n"
        f"  note    = {{Version {versions()['workbench']}}},\n"
        "  year    = {2026},\n"
        "}"
    )


# Exported

FORMATS = (*IMAGES, "csv", "tex", "md")
BIBLIOGRAPHY = "workbench.bib"
_LISTED = 5  # values that a caption lists
_SIZES = ("m", "cells", "users", "items", "records")  # fields that say how large data are
_KINDS = {"generator": "simulated data", "twin": "stand-in data", "real file": "real data"}
_PROFILES = {"quick": "Reduced size (quick profile)", "paper": "Size of the paper"}


@dataclass(frozen=True)
class Export:
    """Content of the files that the workbench exports for one figure or one interactive panel.

    Parameters
    ----------
    draw : callable
        Function that draws the pictures and returns them as a dictionary. A key is the suffix of a picture's
        file name. The dictionary is empty if the figure is a table.
    rows : DataFrame
        Results that the pictures show, one per row. The column `truth_public` says whether the true data are
        public.
    description : Description
        Description that the files contain. The description includes the command with which you can make the
        files again.
    profile : str
        Name of the setting of all parameters: "quick", "paper", or "explorer" for an interactive panel.
    tables : mapping
        Tables to export, by their captions.
    caption : str
        Text below the picture. The text names the place of the figure in the paper, and the data.
    cite : sequence of str
        Keys of the cited sources in the file `references.bib`.
    """

    draw: Callable[[], Mapping[str, Drawing]]
    rows: pd.DataFrame
    description: Description
    profile: str
    tables: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    caption: str = ""
    cite: Sequence[str] = ()


def parse_formats(text: str) -> tuple[str, ...]:
    """Read comma-separated file formats from a text, for example "pdf,csv". Raise a ValueError for an unknown
    format.
    """
    kinds = tuple(dict.fromkeys(re.findall(r"[^,\s]+", text.lower())))
    for kind in kinds or (text,):
        if kind not in FORMATS:
            raise ValueError(
                f"--format {kind!r} is not allowed: need some of {','.join(FORMATS)}"
            )
    return kinds


def of_figure(figure: Figure, profile: str, store: Path, panels: str = "") -> Export:
    """Return the content of the files that are exported for a figure, or for some of its panels. Trials whose
    results are not in the folder `store` are run first.
    """
    from workbench.figures.entries import Line
    from workbench.trials import claims

    rows, verdicts = figure.run(store)
    tables = {}
    if type(figure).comparison is not Figure.comparison or figure.off_paper():
        tables["The paper's numbers and ours"] = figure.compare_with_paper(rows)
    if verdicts and profile != "quick":  # a quick run does not judge
        found = claims.to_frame(verdicts).itertuples()
        lines = [Line(verdict.id, verdict.says, here=verdict) for verdict in found]
        told = [(line.says, line.counted_as, line.number, line.reason) for line in lines]
        columns = ["the paper says", "outcome", "measured", "why"]
        tables["What the paper says, and what we found"] = pd.DataFrame(told, columns=columns)
    description = replace(
        describe_figure(figure, profile),
        command=figure.command(profile).replace(" reproduce ", " export ", 1)
        + (f" --panels {panels}" if panels else ""),
    )
    shown = figure.rows_shown(rows, panels) if panels else rows
    datasets = [] if figure.no_data else figure.datasets_used(shown)
    seeds = rows.seed.nunique() if "seed" in rows else 0
    parts = [
        figure.page[:1].upper() + figure.page[1:],
        _epsilons(shown),
        *data_in_words(datasets),
        f"{_PROFILES[profile]}{', ' + counted(seeds, 'seed') if seeds else ''}",
    ]
    cite = [figure.id.partition("_")[0], *(d.cite for d in datasets if hasattr(d, "cite"))]
    caption = ". ".join(filter(None, parts))
    draw = partial(figure.drawings, rows, panels)
    return Export(draw, rows, description, profile, tables, caption, cite)


def _epsilons(rows: pd.DataFrame) -> str:
    """Return the privacy losses of rows, in words."""
    values = rows.epsilon[np.isfinite(rows.epsilon)] if "epsilon" in rows else ()
    every = [number(x) for x in sorted({*values})]
    if len(every) > _LISTED:
        return f"ε from {every[0]} to {every[-1]}"
    return f"ε = {', '.join(every)}" if every else ""


def data_in_words(datasets: Sequence[Any]) -> list[str]:
    """Return one sentence per class of datasets. The sentence states the data, their size, and whether they
    are real.
    """
    sentences = []
    by_text = {repr(dataset): dataset for dataset in datasets}
    for used in data_used(by_text, datasets):
        own = by_text[used.configurations[0]]
        sizes = [(name, getattr(own, name, None)) for name in _SIZES]
        large = ", ".join(f"{name} = {number(x)}" for name, x in sizes if isinstance(x, int))
        words = used.words.replace("`", "").partition(". ")[0].rstrip(".")
        kind = _KINDS.get(used.kind, used.kind).capitalize()
        original = re.split("[:;]", used.original.replace("`", ""))[0]
        if original and original != "data of your own":
            kind += f" for {original}"
        sentences.append(f"{kind}: {words}{f' ({large})' if large else ''}")
    return sentences


def write(
    export: Export, to: Path, *, width: str | float, font: str, formats: Sequence[str]
) -> list[Path]:
    """Write the files of an export. The pictures are drawn for a page of the given width.

    Parameters
    ----------
    export : Export
        Content of the files, from `of_figure` or from the method `to_export` of a panel.
    to : path
        Folder for the files. It is created if it does not exist.
    width, font : str
        Width of the page and font of the pictures, the same as for `plots.on_page`.
    formats : sequence of str
        Formats to write, which must be in `FORMATS`.

    Returns
    -------
    list of Path
        Paths of the files. The command `workbench whereis` shows how each file was made.

    Raises
    ------
    ValueError
        If the results were computed from true data that are not public.
    OSError
        If files cannot be written to the folder.
    """
    described = export.description
    refuse_private_truth(export.rows, described)
    command = f"{described.command} --width {width} --font {font}"
    record = make_record(replace(described, command=command), export.profile, export.rows)
    stem = _stem(described)
    wide = width == "page" or (width not in ("column", "slide") and float(width) > 12)
    with plots.on_page(width, font):
        drawings = export.draw()
    pictures: dict[str, list[Path]] = {kind: [] for kind in IMAGES if kind in formats}
    shown = _series(drawings.values())
    try:
        to.mkdir(parents=True, exist_ok=True)
        for kind, (suffix, fig) in product(pictures, drawings.items()):
            pictures[kind].append(to / f"{stem}{suffix}.{kind}")
            save_picture(fig, pictures[kind][-1], kind, record)
    finally:
        for fig in drawings.values():
            plots.close(fig)
    files = [*chain.from_iterable(pictures.values())]
    if "csv" in formats:
        files.append(to / f"{stem}.csv")
        sha256 = {files[-1].name: write_csv(files[-1], export.rows)}
        write_json(provenance.sidecar(files[-1]), record | {"sha256": sha256})
    texts: dict[str, str] = {}
    if "tex" in formats:
        best = pictures.get("pdf", pictures.get("png", []))
        texts |= _latex(export, record, shown, wide, best)
        texts[BIBLIOGRAPHY] = _bibliography(to / BIBLIOGRAPHY, export.cite, record)
    if "md" in formats:
        best = next((pictures[kind] for kind in ("svg", "png", "pdf") if kind in pictures), [])
        texts[f"{stem}.md"] = _markdown(export, record, best)
    for name, text in texts.items():
        write_text(to / name, text)
    return files + [to / name for name in texts]


def _stem(description: Description) -> str:
    """Return the first part of the names of files and labels."""
    return re.sub(r"[^\w.-]+", "-", description.name).strip("-.")


def _latex(
    export: Export, record: Mapping[str, Any], shown: str, wide: bool, pictures: Sequence[Path]
) -> dict[str, str]:
    """Return the LaTeX files of pictures and tables, by their names."""
    head = (
        "% Written by workbench export, which overwrites it. It needs graphicx,\n"
        f"% booktabs and tabularx; \\bibliography{{{Path(BIBLIOGRAPHY).stem}}} has what it cites."
    )
    stem = _stem(export.description)
    title = escape(export.description.title.rstrip("."))
    keys = [key for key in entries(export.cite) if key != OURS]
    cited = rf"~\cite{{{','.join(keys)}}}" if keys else ""
    rest = "".join(f" {escape(x)}." for x in (shown, export.caption) if x)
    noise = " Noise is simulated." if record["noise"] == SIMULATED else ""
    caption = rf"{title}{cited}.{rest}{noise} Made with dp-workbench~\cite{{{OURS}}}."
    floats = {
        f"{stem}.tex": [
            _float(
                "figure",
                wide,
                rf"\includegraphics[width=\linewidth]{{{picture.name}}}",
                rf"\caption{{{'Supplement: ' * picture.stem.endswith(SUPPLEMENT)}{caption}}}"
                rf"\label{{fig:{picture.stem}}}",
            )
            for picture in pictures
        ],
        f"{stem}_tables.tex": [
            table_float(
                table[start : start + _LINES],
                f"{escape(name)}{', continued' * (start > 0)}: {title}.",
                f"{stem}-{i}{f'-{start}' * (start > 0)}",
                wide,
            )
            for i, (name, table) in enumerate(export.tables.items())
            for start in range(0, len(table), _LINES)
        ],
    }
    tail = provenance.comment("tex", dict(record))
    files = {name: [head, *each, tail] for name, each in floats.items() if each}
    return {name: "\n\n".join(parts) + "\n" for name, parts in files.items()}


def _bibliography(file: Path, cite: Sequence[str], record: Mapping[str, Any]) -> str:
    """Return the text of a BibTeX file: the entries that it contains now, and the cited entries."""
    known = entries(cite)
    if file.is_file():
        known = parse_entries(file.read_text(encoding="utf-8")) | known
    own = provenance.comment("tex", dict(record))
    return "\n\n".join([own, *(known[key] for key in sorted(known))]) + "\n"


def _markdown(export: Export, record: Mapping[str, Any], pictures: Sequence[Path]) -> str:
    title = export.description.title
    parts = [f"# {title}", *(f"![{title}]({picture.name})" for picture in pictures)]
    if export.caption:
        parts.append(f"{export.caption}.")
    for name, table in export.tables.items():
        parts += [f"## {name}", markdown_table(table)]
    parts += ["Again:", f"    {record['command']}", provenance.comment("md", dict(record))]
    return "\n\n".join(parts) + "\n"


def _series(drawings: Iterable[Drawing]) -> str:
    """Return a text that lists the names of the series (curves) in the pictures."""
    panels = (panel for drawing in drawings for panel in plots.aggregates(drawing))
    names = dict.fromkeys(each["name"] for panel in panels for each in panel["series"])
    words = "; ".join(plots.in_words(name) for name in names if name != "paper")
    return f"Series: {words}" if words else ""


def rows_again(record: Mapping[str, Any], store: Path) -> pd.DataFrame:
    """Run a figure again with the setting that a record states, and return its rows. Nothing else in the
    record is used.

    Parameters
    ----------
    record : mapping
        Record that says how a file was made, from `provenance.read`.
    store : path
        Empty folder for trials. If trials were in it, they would only be read, and not run again.

    Raises
    ------
    ValueError
        If there is no such figure, or a parameter is not allowed.
    """
    cls = find_figure(str(record.get("id")))
    setting = record.get("setting", {})
    cls.refuse_unknown(setting)
    return cls.at(str(record.get("profile")), **setting).run(store)[0]
