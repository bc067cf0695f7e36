"""What is drawn of Figure 3."""

from __future__ import annotations

from functools import partial

from experiments.cormode2012.fig3_checks import PAPER
from experiments.cormode2012.shared import (
    ABSOLUTE,
    RELATIVE,
    expected_geometric_error,
    format_size,
    metric_panel,
)
from workbench.datasets import GaussianSparse
from workbench.figures.plots import Panel


def panels(
    data: GaussianSparse,
    wide: GaussianSparse,
    sparse: GaussianSparse,
    size: int,
    epsilon: float,
) -> list[Panel]:
    """Absolute errors of all, with s = `size` on sparse counts; relative ones in (a) and (b)."""
    counts = f"(μ = {data.mean:g}, σ = {data.std:g}, ρ = {data.density:g})"
    of_sparse = f"(d) ρ = {sparse.density:g}, s = {format_size(size)}"
    law = ("geometric, theory", partial(expected_geometric_error, epsilon=epsilon))
    return [
        metric_panel(f"(a) small subsets\n{counts}", "a", ABSOLUTE, theory=law),
        metric_panel(f"(b) large subsets\n{counts}", "b", ABSOLUTE, theory=law),
        metric_panel(f"(c) σ = {wide.std:g}", "c", ABSOLUTE, theory=law, printed=PAPER["c"]),
        metric_panel(of_sparse, "d", ABSOLUTE, theory=law),
        metric_panel("(a) relative", "a", RELATIVE, printed=PAPER["a"]),
        metric_panel("(b) relative", "b", RELATIVE),
    ]
