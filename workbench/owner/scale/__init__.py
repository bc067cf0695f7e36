"""Rows beyond memory, beyond one core and beyond one machine: the same release, exactly."""

from workbench.owner.scale.release import release
from workbench.owner.scale.rows import Rows

__all__ = ["Rows", "release"]
