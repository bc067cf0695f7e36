"""How plots look: sizes, fonts, and what is drawn how."""

from __future__ import annotations

import matplotlib as mpl

COLUMN_WIDTH = 3.4  # inches: one column of a paper
PAGE_WIDTH = 7.0  # and both

RC_PARAMS = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "pdf.fonttype": 42,
}

COLORMAP = "cividis_r"  # of cells

MAX_MARKERS = 60  # points of a curve, from which marks would hide it

THEORY_DASHES = ((5, 2), (1.5, 1.5), (8, 2, 1.5, 2), (3, 4))

with_style = mpl.rc_context(RC_PARAMS)
