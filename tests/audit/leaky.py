"""Functions that a test audits from the command line."""

from __future__ import annotations

import os


def coin(table) -> int:
    """Nothing of the table."""
    return os.urandom(1)[0] & 1


def cells(table) -> int:
    """How many cells are occupied."""
    return len(table)


def refuses(table) -> int:
    """Raises whatever it is given."""
    raise ValueError("not this table")


def raises_for_one(table) -> int:
    """Raises where a second cell is occupied."""
    if len(table) > 1:
        raise KeyError("a second cell")
    return os.urandom(1)[0] & 1
