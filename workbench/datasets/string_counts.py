"""StringCounts: a list of strings of your own, and how often there is each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, Public, Records
from workbench.data.columns import LabelledRows
from workbench.datasets.compressed import opened
from workbench.datasets.delimited import LONGEST_LINE, read_blocks
from workbench.datasets.own_file import OwnFile, bound_field
from workbench.spaces import OverHierarchy, Prefixes
from workbench.value import parameter, value


@value
class StringCounts(OverHierarchy, OwnFile):
    """Strings with counts, from a tab-separated file of your own, over their prefixes.

    Each line is a string, a tab, and how many records have it: a whole number >= 1. There is no
    line of names, unless `header` says that the first is one; it is passed over then, not read.
    The text is UTF-8. Spaces count, also at the ends, and quotes are symbols; nothing before the
    tab is the empty string. A string that stands twice has both counts.

    The alphabet and the depth are yours to choose, and public. What is longer, or has another
    symbol, is left out whole: nothing is cut or replaced, and `load().left_out` says how many
    records it was, and why. `lower` makes capitals small before that.

    One unit is whoever `bound` speaks of. A list of counts does not say whose they are, and cannot
    be bounded here, so that whoever made it must have, and you state how: Bound(5, 5, 5) where
    someone has up to 5 records, Bound(1) where each record is a unit of its own, or PUBLIC. The
    truth is not public unless you say so.
    """

    path: str
    bound: Bound | Public = bound_field("list")
    depth: int = parameter(20, 1, integer=True, unit="symbols", doc="longest string")
    alphabet: str = "abcdefghijklmnopqrstuvwxyz0123456789. "
    lower: bool = parameter(False, choices=(False, True), doc="capitals are made small")
    header: bool = parameter(False, choices=(False, True), doc="the first line is names")
    truth_public: bool = parameter(False, choices=(False, True), doc="counts may be shown")

    def __post_init__(self) -> None:
        _ = self.hierarchy

    @property
    def hierarchy(self) -> Prefixes:
        """All strings over the alphabet, whatever the file holds."""
        return Prefixes(self.alphabet, self.depth)

    def load(self) -> Records:
        """The records; a line that is not UTF-8, or no string and count, is a ValueError."""

        strings = [pl.Series(dtype=pl.String)]
        counts = [np.empty(0, np.int64)]
        for block in _utf8(self._find(), self.header):
            nul = block.frame["string"].str.contains("\0", literal=True).fill_null(False)
            block.refuse(nul, "string", "text, which has no such symbol")
            counts.append(block.positive_counts("count"))
            strings.append(block.frame["string"].fill_null(""))
        text = pl.concat(strings)
        return Records.from_values(
            self.hierarchy,
            text.str.to_lowercase() if self.lower else text,
            self.bound,
            counts=np.concatenate(counts),
            truth_public=self.truth_public,
        )


def _utf8(path: Path, header: bool) -> Iterator[LabelledRows]:
    """The lines as text; one that is no UTF-8 is a ValueError."""
    names = ("string", "count")
    for block in read_blocks(path, names, names, strip="\r", separator="\t"):
        if block.lines[0] == 1:
            block.frame = _without_mark(block.frame)
            if header:
                block = LabelledRows(path, block.lines[1:], block.frame[1:])
        if any(block.frame[name].str.contains("\ufffd", literal=True).any() for name in names):
            _refuse_other_than_utf8(path)  # what cannot be decoded is read as that symbol
        yield block


def _without_mark(frame: pl.DataFrame) -> pl.DataFrame:
    """Without the byte order mark that some programs begin UTF-8 with."""
    first = pl.int_range(pl.len()) == 0
    text = pl.col("string")
    return frame.with_columns(
        pl.when(first).then(text.str.strip_prefix("\ufeff")).otherwise(text)
    )


def _refuse_other_than_utf8(path: Path) -> None:
    with opened(path) as (stream, _):
        lines = iter(lambda: stream.readline(LONGEST_LINE), b"")
        for line, text in enumerate(lines, 1):
            try:
                text.decode()
            except UnicodeDecodeError as e:
                bad = text[e.start : e.end]
                raise ValueError(f"{path}, line {line}: {bad!r} is not UTF-8") from None
