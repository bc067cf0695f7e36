"""What a format of files is to those who damage them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from workbench import Domain

DOMAIN = Domain(("home", "hour"), (3, 24), (("Bern", "Genf", "Chur"), None))
Draw = Callable[[st.SearchStrategy], Any]


class Format(NamedTuple):
    """`write` puts a damaged file (or several) into a folder; `use` reads what is there, as a user does."""

    write: Callable[[Path, Draw], None]
    use: Callable[[Path], None]
    patch: Callable[[Any], None] = lambda monkeypatch: None
