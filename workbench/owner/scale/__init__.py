"""Releases from tables larger than memory, on several cores or machines, with exactly the same distribution."""

from workbench.owner.scale.release import release
from workbench.owner.scale.rows import Rows

__all__ = ["Rows", "release"]
