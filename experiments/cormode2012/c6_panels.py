"""What is drawn of the count sketch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from experiments.cormode2012.c6_claims import HELD, SQUARED, held
from experiments.cormode2012.shared import ABSOLUTE, metric_panel
from workbench.figures.plots import Panel


def panels(widths: Sequence[int], theory: Callable[[str, int], Callable]) -> list[Panel]:
    """Squared errors of single cells with their theory; absolute ones by size and by range."""
    places = [*product(HELD, widths)]
    titles = [f"({chr(97 + i)}) one cell, {held(*place)}" for i, place in enumerate(places)]
    last = chr(97 + len(places)), chr(98 + len(places))
    return [
        *(
            metric_panel(
                title,
                held(*x),
                SQUARED,
                "depth",
                log="xy",
                theory=("mean, theory", theory(*x)),
            )
            for title, x in zip(titles, places, strict=True)
        ),
        metric_panel(f"({last[0]}) one cell, d = 1", "size", ABSOLUTE, "released", at="target"),
        metric_panel(f"({last[1]}) ranges, d = 1", "range", ABSOLUTE, "query_size"),
    ]
