"""Releases from tables that are larger than memory, computed on several cores or machines. The noisy results
have exactly the same distribution as the results of a release in memory.
"""

from workbench.owner.scale.release import release
from workbench.owner.scale.rows import Rows

__all__ = ["Rows", "release"]
