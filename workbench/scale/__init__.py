"""Rows beyond memory, beyond one core and beyond one machine: the same release, exactly."""

from workbench.processes import Workers
from workbench.scale.release import release, release_to_file
from workbench.scale.rows import Rows

__all__ = ["Rows", "Workers", "release", "release_to_file"]
