"""Figures and tables as a paper has them: LaTeX with a caption and its citations, Markdown, BibTeX."""

from __future__ import annotations

import importlib.metadata
import re
import unicodedata
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.project import project_folder

if TYPE_CHECKING:
    import pandas as pd

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
_MATH = {c: f"\\{name}" for c, name in _GREEK.items()} | _SIGNS
_WORDS = {
    "✓": "yes",
    "✗": "no",
    "◐": "in part",
    "…": r"\dots{}",
    "–": "--",
    "—": "---",
    "’": "'",
}
_WIDE = 60  # letters from which a column is broken into lines
_COLUMN = 48  # letters of a line of a column, and of a page
_PAGE = 100


def escape(text: Any) -> str:
    """Text as LaTeX sets it, also with a plain pdflatex.

    >>> escape("ε ≤ 0.5 & 10⁻³"), escape("S̃ᵣ"), escape("a_b")
    ('$\\\\varepsilon$ $\\\\le$ 0.5 \\\\& 10$^{-3}$', '$\\\\tilde{S}$$_{r}$', 'a\\\\_b')
    """
    parts = re.findall("\\w[\u0302-\u0304]|[⁻⁰¹²³⁴-⁹]+|.", str(text), re.DOTALL)
    return "".join(map(_escape_part, parts))


def _escape_part(part: str) -> str:
    if part[1:] in _ACCENTS:
        return f"$\\{_ACCENTS[part[1:]]}{{{part[0]}}}$"
    if part in _SPECIAL:
        return _SPECIAL[part]
    if part in _MATH:
        return f"${_MATH[part]}$"
    if part in _WORDS:
        return _WORDS[part]
    if part.isascii():
        return " " if part.isspace() else part
    plain = unicodedata.normalize("NFKD", part).replace("−", "-")
    kind = unicodedata.decomposition(part[0]).partition(" ")[0]
    if kind in ("<super>", "<sub>") and plain.isascii():
        return f"${'^' if kind == '<super>' else '_'}{{{plain}}}$"
    if part <= "ÿ":
        return part  # LaTeX knows all of Latin-1
    return plain if plain.isascii() else f"[U+{ord(part[0]):04X}]"


def figure_float(picture: str, caption: str, label: str, wide: bool) -> str:
    """A figure, over both columns where it is `wide`."""
    star = "*" if wide else ""
    return "\n".join(
        [
            rf"\begin{{figure{star}}}",
            r"  \centering",
            rf"  \includegraphics[width=\linewidth]{{{picture}}}",
            rf"  \caption{{{caption}}}",
            rf"  \label{{fig:{label}}}",
            rf"\end{{figure{star}}}",
        ]
    )


def table_float(table: pd.DataFrame, caption: str, label: str, wide: bool) -> str:
    """A table ruled by booktabs, over both columns where it is `wide`, or its words fit no column."""
    names, rows = _cells(table)
    wide = wide or _free(names, rows, _COLUMN) < 0
    star = "*" if wide else ""
    lines = [" & ".join(map(escape, row)) + r" \\" for row in [names, *rows]]
    return "\n".join(
        [
            rf"\begin{{table{star}}}",
            r"  \centering\footnotesize",
            rf"  \caption{{{caption}}}",
            rf"  \label{{tab:{label}}}",
            rf"  \begin{{tabular}}{{{_columns(names, rows, _PAGE if wide else _COLUMN)}}}",
            r"    \toprule",
            f"    {lines[0]}",
            r"    \midrule",
            *(f"    {line}" for line in lines[1:]),
            r"    \bottomrule",
            r"  \end{tabular}",
            rf"\end{{table{star}}}",
        ]
    )


def _columns(names: list[str], rows: list[list[str]], letters: int) -> str:
    """How columns are set: as wide as they are, or broken into lines where all are too wide."""
    columns = list(zip(names, *rows, strict=True))
    widths = [min(max(map(len, column)), _WIDE) for column in columns]
    if sum(widths) + 2 * len(widths) <= letters:
        return "l" * len(widths)
    free = max(_free(names, rows, letters), 0)
    shares = [
        share + free * width / sum(widths)
        for share, width in zip(_least(names, rows, letters), widths, strict=True)
    ]
    broken = [rf">{{\raggedright\arraybackslash}}p{{{x:.3f}\linewidth}}" for x in shares]
    return "".join(["@{}", *broken, "@{}"])


def _least(names: list[str], rows: list[list[str]], letters: int) -> list[float]:
    """Of a line of so many letters, what the longest word of each column takes."""
    words = [" ".join(column).split() or [""] for column in zip(names, *rows, strict=True)]
    return [min(max(map(len, column)) + 1, _WIDE / 3) / letters for column in words]


def _free(names: list[str], rows: list[list[str]], letters: int) -> float:
    """Of a line of so many letters, what words and the gaps between columns leave."""
    return 1 - 2.6 * (len(names) - 1) / letters - sum(_least(names, rows, letters))


def markdown_table(table: pd.DataFrame) -> str:
    """A table of Markdown."""
    names, rows = _cells(table)
    lines = [names, ["---"] * len(names), *rows]
    clean = [[cell.replace("|", r"\|").replace("\n", " ") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in clean)


def _cells(table: pd.DataFrame) -> tuple[list[str], list[list[str]]]:
    """The words of a table, with its index where that has a name."""
    from workbench.wording import cell

    if any(table.index.names):
        table = table.reset_index()
    names = [" ".join(map(str, c)) if isinstance(c, tuple) else str(c) for c in table.columns]
    rows = [[cell(x) for x in row] for row in table.itertuples(index=False)]
    return names, rows


# ---- what is cited


def entries(keys: Iterable[str]) -> dict[str, str]:
    """The BibTeX of the workbench, and of those keys that the project's `references.bib` has."""
    known = {OURS: _own_entry()}
    folders = (project_folder(), Path(__file__).resolve().parents[2])
    file = next(
        (f / "references.bib" for f in folders if (f / "references.bib").is_file()), None
    )
    if file is not None:
        known |= parse_entries(file.read_text(encoding="utf-8"))
    return {key: known[key] for key in dict.fromkeys([*keys, OURS]) if key in known}


def parse_entries(text: str) -> dict[str, str]:
    """Entries of BibTeX by their keys; each begins a line."""
    parts = re.split(r"^(?=@\w+\{)", text, flags=re.MULTILINE)
    found = ((re.match(r"@\w+\{([^,\s]+),", part), part.strip()) for part in parts)
    return {match[1]: part for match, part in found if match}


def bibliography(known: Mapping[str, str]) -> str:
    """Entries as a file, by their keys."""
    return "\n\n".join(known[key] for key in sorted(known)) + "\n"


def _own_entry() -> str:
    version = importlib.metadata.version("dp-workbench")
    return (
        f"@misc{{{OURS},\n"
        "  author  = {{The dp-workbench authors}},\n"
        "  title   = {{dp-workbench}: a research workbench for differential privacy},\n"
        f"  note    = {{Version {version}}},\n"
        "  year    = {2026},\n"
        "}"
    )
