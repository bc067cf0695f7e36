"""The mistakes of `mistakes.toml`: where each is planted, and what must see it."""

import tomllib
from pathlib import Path
from typing import NamedTuple


class Mistake(NamedTuple):
    name: str
    where: str
    old: str
    new: str
    test: str
    why: str
    by: str
    number: int | None  # of its class of bugs
    quick: bool


def _read(entry):
    """One entry, whose keys are those of the file."""
    renamed = {"where": entry.pop("in"), "number": entry.pop("class", None)}
    return Mistake(**renamed, quick=entry.pop("quick", False), **entry)


_TABLE = Path(__file__).with_name("mistakes.toml").read_text(encoding="utf-8")
MISTAKES = tuple(map(_read, tomllib.loads(_TABLE)["mistake"]))
