"""What generators of data share."""

from __future__ import annotations

from typing import Any

from workbench.value import parameter


def seed_field() -> Any:
    """The field that makes a generator replayable."""
    return parameter(0, 0, integer=True, doc="of the generator: the same seed, the same data")
