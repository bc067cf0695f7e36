"""The figures as part of the page, while there is room."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from workbench.report.entries import Entry

LARGEST_SVG = 600_000  # bytes; a larger drawing is shown as PNG
ROOM = 10_000_000  # bytes of pictures; what does not fit is linked
_MIME_TYPES = {"svg": "image/svg+xml", "png": "image/png"}


def embed(entries: list[Entry]) -> dict[str, str]:
    """The figures as data, by stem: SVG where it is small, else PNG, while there is room."""
    shown = {}
    left = ROOM
    for entry in entries:
        images = entry.figure.images if entry.figure else {}
        for kind, mime_type in _MIME_TYPES.items():
            if kind not in images:
                continue
            size = images[kind].stat().st_size
            if size <= min(left, LARGEST_SVG if kind == "svg" else left):
                data = base64.b64encode(images[kind].read_bytes()).decode()
                shown[entry.stem] = f"data:{mime_type};base64,{data}"
                left -= size
                break
    return shown
