"""Panels: sliders on every mechanism, in JupyterLab, as a dashboard, and in a file that can be mailed.

A panel computes nothing of its own: it sets up a dataset and a mechanism, releases by simulated noise,
and draws the rows that metrics measure. Each is a frozen scene under one `Panel`.
"""

from __future__ import annotations

from workbench.widgets.panel import Panel as Panel
from workbench.widgets.shared import share as share
from workbench.widgets.summaries import Summaries


def summaries(**values) -> Panel:
    """Filter, threshold and priority sampling of a sparse table: ε, θ, τ, size, dyadic, consistent."""
    return Panel(Summaries(), **values)
