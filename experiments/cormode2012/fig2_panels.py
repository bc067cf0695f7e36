"""What is drawn of Figure 2, and beside it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from experiments.cormode2012.fig2_rows import OVER, PAPER
from experiments.cormode2012.shared import (
    ABSOLUTE,
    RELATIVE,
    expected_geometric_error,
    metric_panel,
)
from workbench.figures.plots import Panel


def panels(length: int, epsilon: float) -> list[Panel]:
    """Absolute errors above relative ones; below what 2.1 and C.2 say in words."""
    law = partial(expected_geometric_error, epsilon=epsilon)
    negatives = dict(theory=("geometric, theory", law))
    there = {"query_size": length}

    def panel(title: str, name: str, metric: str, x: str, **how) -> Panel:
        drawn = metric_panel(title, name, metric, x, **how)
        return replace(drawn, where=drawn.where | there)

    return [
        panel("(a) filters", "a", ABSOLUTE, "released", at="theta"),
        panel("(b) sampling", "b", ABSOLUTE, "released", at="target"),
        metric_panel("(c) filter-priority", "c", ABSOLUTE, "theta", log="y"),
        panel("(a) relative", "a", RELATIVE, "released", at="theta", printed=PAPER["a"]),
        panel("(b) relative", "b", RELATIVE, "released", at="target", printed=PAPER["b"]),
        metric_panel("(c) relative", "c", RELATIVE, "theta", log="y", printed=PAPER["c"]),
        panel("share of over-estimates", "a", OVER, "theta", log=""),
        metric_panel("§2.1: are negatives kept?", "sides", ABSOLUTE, "query_size", **negatives),
        metric_panel("C.2: weights on one cell", "weights", ABSOLUTE, "released", at="target"),
    ]
