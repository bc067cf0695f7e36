"""Loops that cannot be arrays are compiled, and kept with the virtual environment."""

import os
import sys
from pathlib import Path

if sys.prefix != sys.base_prefix:
    os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(sys.prefix) / "var" / "numba"))

from numba import njit as njit  # noqa: E402  (reads the environment when imported)
