"""Panel that shows which errors to expect from a release, without access to the table."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import pd
from workbench.data import Bound, Interactions
from workbench.figures.plots import Panel
from workbench.mechanisms.options import bound_text, numbers_text
from workbench.mechanisms.protocol import series_name
from workbench.owner.advice import Advice, Beliefs, Row, advise
from workbench.spaces import Domain
from workbench.value import number, value
from workbench.widgets.controls import Control, decades
from workbench.widgets.subjects import Drawn, Subject, Values
from workbench.widgets.views import range_sizes

BEST = 5  # mechanisms that are drawn and listed
SECONDS, ROUGH = 4.0, 1.0  # of a simulation, when a slider rests and while it moves
SIZES = 4  # of ranges
MODEL = "density", "mean", "spread"


@value
class AdviceSubject(Subject):
    """Content of an advice panel. It is computed from a public description of a table: the domain (all
    possible cells) and the bound (largest change that one protected unit can cause).
    """

    domain: Domain
    bound: Bound

    name: ClassVar[str] = "advice"
    title: ClassVar[str] = "Advice without a look at the table"
    words: ClassVar[str] = (
        "The errors are simulated on a table that follows from the domain, the bound and what "
        "you believe from public knowledge. Advice is free, and each release costs its ε again."
    )

    def controls(self, values: Values) -> tuple[Control, ...]:
        """Return controls for the budget and the size of a release, and for beliefs about the table."""
        m = self.domain.size
        sizes = decades(1, min(m, 10**7), whole=True)
        size = max(s for s in sizes if s <= max(1, m // 10))
        delta = decades(1e-12, 0.01, zero=True)
        believed = "belief from public knowledge, never from the table: "
        spread = decades(0.5, 10_000, zero=True)
        empty = f"{believed}share of cells that are not empty"
        counts: dict[str, Any] = dict(unit="counts")
        return (
            Control("epsilon", 0.1, decades(0.01, 10), doc="privacy loss of a release"),
            Control("size", size, sizes, unit="cells", doc="about how many to release"),
            Control("density", 0.1, decades(1e-6, 1.0), doc=empty),
            Control(
                "mean", 100.0, decades(1, 10_000), doc=f"{believed}their mean count", **counts
            ),
            Control(
                "spread", 20.0, spread, doc=f"{believed}their standard deviation", **counts
            ),
            Control("delta", 0.0, delta, doc="failure probability, for Gaussian noise"),
        )

    def draw(self, values: Values, exact: bool, progress: Path | None) -> Drawn:
        """Draw the simulated errors of the best mechanisms, and the size of their releases."""
        advice = self.advice(values, SECONDS if exact else ROUGH)
        best: dict[str, Row] = {}
        for row in advice.rows:
            best.setdefault(series_name(row.mechanism), row)
        rows = []
        facts = []
        for name, row in [*best.items()][:BEST]:
            for query, error in zip(self._sizes, row.errors.values(), strict=True):
                if np.isfinite(error):
                    found = dict(panel="errors", series=name, metric="MeanAbsoluteError")
                    rows.append(found | dict(query_size=query, value=error))
            facts.append((name, _row_text(row)))
        facts.append(("about these numbers", " ".join(advice.notes)))
        return Drawn(pd.DataFrame(rows), facts, lead=advice.recommendation, exact=exact)

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """Return the description of one chart, which shows the error as a function of the size of a range."""
        return [Panel("Error of ranges where people are", {"panel": "errors"}, "query_size")]

    def advice(self, values: Values, seconds: float | None = None) -> Advice:
        """Return what the function `advise` recommends for these settings. `seconds` limits the time of its
        simulation. Default 4.
        """
        how = self._arguments(values)
        return advise(self._beliefs(values), **how, seconds=seconds or SECONDS)

    def check(self, values: Values) -> None:
        """Raise a ValueError for beliefs that contradict each other."""
        self._beliefs(values)

    def _beliefs(self, values: Values) -> Beliefs:
        model = [values[name] for name in MODEL]
        return Beliefs.of_counts(self.domain, *model, bound=self.bound)

    @property
    def _sizes(self) -> tuple[int, ...]:
        sizes = range_sizes(self.domain.size)
        places = np.unique(np.linspace(0, len(sizes) - 1, SIZES).astype(int))
        return tuple(sizes[i] for i in places)

    def _arguments(self, values: Values) -> dict[str, Any]:
        names = ["epsilon", "size", *(["delta"] if values["delta"] else [])]
        return {name: values[name] for name in names} | dict(task="ranges", queries=self._sizes)

    def code(self, values: Values) -> str:
        """Return lines of Python that give the same advice."""
        text = ", ".join(f"{name}={x!r}" for name, x in self._arguments(values).items())
        model = ", ".join(repr(values[name]) for name in MODEL)
        beliefs = f"Beliefs.of_counts({self.domain!r}, {model}, bound={self.bound!r})"
        return f"from workbench import *\nadvise({beliefs}, {text})"

    def commands(self, values: Values, words: Sequence[str]) -> list[str]:
        """Return "" and the command that prints the same advice. The first text is empty, because no command
        writes the picture to a file.
        """
        options = []
        for name, x in {**self._arguments(values), **{m: values[m] for m in MODEL}}.items():
            text = x if isinstance(x, str) else numbers_text(x if isinstance(x, tuple) else [x])
            options.append(f"--{name} {text}")
        options.append(f"--bound {bound_text(self.bound)}")
        return ["", f"workbench advise --domain domain.json {' '.join(options)}"]


def _row_text(row: Row) -> str:
    """Return a text that says how many cells a mechanism releases, and how many of these cells are pure
    noise.
    """
    text = f"{row.name} releases {number(round(row.cells))} cells"
    if isfinite(row.noise_cells):
        text += f", {number(round(row.noise_cells))} of them pure noise"
    return text


def advice_subject(data: Any, bound: Bound | None = None) -> AdviceSubject:
    """Return the content of an advice panel for a table, a dataset or a domain. Only the domain and the bound
    of the data are read.
    """
    domain = data if isinstance(data, Domain) else getattr(data, "domain", None)
    if not isinstance(domain, Domain) or isinstance(data, Interactions):
        raise ValueError(
            f"{type(data).__name__} is not allowed: need a table, or a domain, to simulate"
        )
    if bound is None:
        bound = Bound() if data is domain else getattr(data, "bound", None)
    if not isinstance(bound, Bound):
        raise ValueError(
            f"bound = {bound!r} is not allowed: need Bound(l0, linf), the largest change by one unit"
        )
    return AdviceSubject(Domain(domain.attributes, domain.shape), bound)
