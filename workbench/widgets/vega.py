"""Vega, which draws the charts of panels: its script, packed, which all panels of a page share."""

from __future__ import annotations

import base64
import gzip
from functools import cache
from importlib.resources import files

import ipywidgets
import traitlets

_SCRIPT = (
    "static/js_lib_vega_embed/vega5.js"  # in a package that also holds a Django application
)


class Drawing(ipywidgets.Widget):
    """The script in a page; one a kernel, so that no panel sends or saves a copy of its own."""

    script = traitlets.Unicode().tag(sync=True)


_drawings: list[Drawing] = []


def shared_drawing() -> Drawing:
    """The one that panels refer to; another where somebody has closed it."""
    if not _drawings or _drawings[0].comm is None:
        _drawings[:] = [Drawing(script=packed_script())]
    return _drawings[0]


@cache
def packed_script() -> str:
    """Vega's own script, packed."""
    return packed((files("js_lib_vega_embed") / _SCRIPT).read_bytes())


def packed(content: bytes) -> str:
    """Compressed, as text without characters that HTML knows."""
    return base64.b64encode(gzip.compress(content, 9, mtime=0)).decode()
