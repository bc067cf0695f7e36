"""What a dataset is, in words: a real file, a twin, or a generator; the one attribute `kind`."""

from __future__ import annotations

REAL_FILE = "real file"
TWIN = "twin"  # made up, with the published statistics of data that it stands in for
GENERATOR = "generator"  # made up by a law that is stated
