"""A mistake, where it is planted, and what must see it."""

from typing import NamedTuple


class Mistake(NamedTuple):
    name: str
    where: str
    old: str
    new: str
    test: str
    why: str
