"""What is drawn of Figure 5."""

from __future__ import annotations

from functools import partial

from experiments.cormode2012.fig5_checks import PAPER, of_regions
from experiments.cormode2012.fig5_theory import expected_dyadic_error
from experiments.cormode2012.shared import ABSOLUTE, CUT, format_size, metric_panel
from workbench.figures.plots import Panel


def panels(m: int, epsilon: float, regions: int) -> list[Panel]:
    """Errors, what consistency cuts, and throughput."""
    error = partial(expected_dyadic_error, m=m, epsilon=epsilon)
    law = dict(theory=("geometric, dyadic: theory", error))
    part = dict(log="x")
    times = f"throughput, uniform data, m = {format_size(m)}"
    b, c = (of_regions(panel, regions) for panel in "bc")
    return [
        metric_panel("(a) uniform data", "a", ABSOLUTE, printed=PAPER["a"], **law),
        metric_panel("(b) skewed data", b, ABSOLUTE, **law),
        metric_panel("(c) skewed data, consistency", c, ABSOLUTE),
        metric_panel("(c) what it cuts", c, CUT, printed=PAPER["c"], **part),
        metric_panel("uniform data, consistency", "uniform", ABSOLUTE, log="x"),
        metric_panel("what it cuts", "uniform", CUT, printed=PAPER["uniform"], **part),
        metric_panel("section 3: other bases, uniform data", "bases", ABSOLUTE),
        Panel(times, {"panel": "throughput"}, "density"),
    ]
