"""Rows beyond memory, beyond one core and beyond one machine: the same release, exactly."""

from workbench.scale.release import release
from workbench.scale.rows import Rows

__all__ = ["Rows", "release"]
