"""Pictures of figures, small enough for a page of them."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from workbench.figures import write_atomically

WIDTH = 480  # pixels, at most
_TALL = 0.66  # of the width; of what is taller the top is shown
_COLOURS = 64


class Thumbnail(NamedTuple):
    """A small picture: its file's name, and its size in pixels."""

    name: str
    width: int
    height: int


def write_thumbnail(picture: Path, file: Path) -> Thumbnail:
    """A PNG, smaller, in `file`, unless it is there and no older; its name and size."""
    from PIL import Image

    if not file.exists() or file.stat().st_mtime < picture.stat().st_mtime:
        with Image.open(picture) as image:
            small = image.convert("RGB")
        small = small.crop((0, 0, small.width, min(small.height, round(_TALL * small.width))))
        small.thumbnail((WIDTH, WIDTH))
        few = small.quantize(_COLOURS, Image.Quantize.FASTOCTREE)
        write_atomically(file, lambda draft: few.save(draft, "PNG"))
    with Image.open(file) as image:
        return Thumbnail(file.name, *image.size)
