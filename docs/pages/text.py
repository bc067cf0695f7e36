"""Docstrings, which are plain text, as Markdown."""

from __future__ import annotations

import re

SPECIAL = re.compile(r"([\\*_<>\[\]|$#{}~])")
COLUMNS = re.compile(r"\n +\S+(?:, \S+)* {2,}\S")
TERM = re.compile(r"`\w+`  +\S")
SECTION = re.compile(r"\n(?=(?:Source|Differs|Cost)  )")
ERRATUM = re.compile(r"docs/errata\.md\\(#[\w-]+)")


def markdown(text: str) -> str:
    """Paragraphs of a docstring as Markdown; terms become a list, and what is set in columns stays."""
    parted = SECTION.sub("\n\n", text.strip())
    return "\n\n".join(map(_paragraph, re.split(r"\n\s*\n", parted)))


def _paragraph(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    if all(TERM.match(line) for line in lines):
        terms = [line.split("  ", 1) for line in lines]
        return "\n".join(f"- {term}: {escape(meaning.strip())}" for term, meaning in terms)
    if COLUMNS.search(text):
        return f"```text\n{text}\n```"
    return ERRATUM.sub(r"[erratum](\1)", escape(" ".join(lines)))


def escape(text: str) -> str:
    """Text in which nothing but `code` is markup."""
    parts = text.split("`")
    parts[::2] = [SPECIAL.sub(r"\\\1", part) for part in parts[::2]]
    return "`".join(parts)


def cell(text: str) -> str:
    """Text that can stand in a table: a bar that is not escaped would end its cell."""
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))


def capitalised(text: str) -> str:
    """With a capital letter at its head, unless that is a symbol."""
    return text[:1].upper() + text[1:] if text[:1].isascii() else text
