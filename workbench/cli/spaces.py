"""The space of points, strings or codes as it is stated on a command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from workbench.option_grammar import parse_box

if TYPE_CHECKING:
    from workbench.hierarchy import Hierarchy

MISSING = """\
the space of the records is missing: which points, strings or codes there can be. It is public knowledge
and is never learnt from the data; what lies outside is left out, and nobody is told how much. One of

  --box x=0..100,y=0..50               two columns (or one, or more) of numbers, both ends included
  --strings query --length 20          a column of strings, at most so long
  --taxonomy codes.csv --code icd      a column of codes; a line of the file is a code and its parent
  --domain domain.json                 columns with labels, one after another"""


@dataclass(frozen=True, kw_only=True)
class StatedSpace:
    """What a person typed of it; at most one of box, strings and taxonomy."""

    box: str | None = None
    levels: int = 20
    strings: str | None = None
    length: int = 20
    alphabet: str | None = None
    taxonomy: Path | None = None
    code: str = "code"

    def __post_init__(self) -> None:
        stated = {"--box": self.box, "--strings": self.strings, "--taxonomy": self.taxonomy}
        given = [name for name, x in stated.items() if x is not None]
        if len(given) > 1:
            raise ValueError(f"{' and '.join(given)}: need one of them")

    @property
    def is_stated(self) -> bool:
        """Whether there is one."""
        return (self.box, self.strings, self.taxonomy) != (None, None, None)

    def typed(self) -> str:
        """As it is typed."""
        if self.box is not None:
            return f"--box {quote(self.box)} --levels {self.levels}"
        if self.strings is not None:
            alphabet = f" --alphabet {quote(self.alphabet)}" if self.alphabet else ""
            return f"--strings {quote(self.strings)} --length {self.length}{alphabet}"
        return f"--taxonomy {quote(str(self.taxonomy))} --code {quote(self.code)}"

    def hierarchy(self) -> Hierarchy:
        """The space that is meant; a ValueError for what is none."""
        from workbench.hierarchy import SYMBOLS, Prefixes, Quadtree, Taxonomy

        if self.box is not None:
            sides = parse_box(self.box)
            low = tuple(low for low, _ in sides.values())
            high = tuple(high for _, high in sides.values())
            return Quadtree(len(sides), self.levels, low, high, tuple(sides))
        if self.strings is not None:
            alphabet = SYMBOLS if self.alphabet is None else self.alphabet
            return Prefixes(alphabet, self.length, self.strings)
        taxonomy: Any = self.taxonomy  # the one that is left
        return Taxonomy.read(taxonomy, self.code)
