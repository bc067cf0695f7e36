"""What a dataset is, in words: a real file, a twin, or a generator; the one attribute `kind`."""

from __future__ import annotations

from collections.abc import Mapping

REAL_FILE = "real file"
TWIN = "twin"  # made up, with the published statistics of data that it stands in for
GENERATOR = "generator"  # made up by a law that is stated


def differences(ours: Mapping[str, int], published: Mapping[str, int]) -> tuple[str, ...]:
    """Which numbers of a file are others than those that are published of it, in words.

    >>> differences({"users": 3, "records": 8}, {"users": 6040, "records": 8})
    ('3 users (published: 6,040)',)
    """
    names = (name for name in published if ours[name] != published[name])
    return tuple(f"{ours[name]:,} {name} (published: {published[name]:,})" for name in names)
