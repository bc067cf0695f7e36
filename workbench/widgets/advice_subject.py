"""Advice: what to expect of a release where nobody may look at the table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import pd
from workbench.data import Bound, Interactions
from workbench.figures.plots import Panel
from workbench.mechanisms import GeometricHistogram
from workbench.mechanisms.options import bound_text, numbers_text, release_options
from workbench.mechanisms.protocol import series_name
from workbench.owner.advice import Advice, Option, advise
from workbench.spaces import Domain
from workbench.value import format_number, number, value
from workbench.widgets.controls import Control, decades
from workbench.widgets.subjects import Drawn, Subject, Values, public
from workbench.widgets.views import range_sizes

BEST = 4  # options that are drawn and listed, besides the full table
SIZES = 4  # of ranges
MODEL = "density", "mean", "spread"
WHY = (
    "This table does not state truth_public. A panel would compare with the truth, and every error is "
    "an exact function of private data. "
)


@value
class AdviceSubject(Subject):
    """What is public of a table: where its counts may lie, and how far one unit moves them."""

    domain: Domain
    bound: Bound
    why: str = ""

    name: ClassVar[str] = "advice"
    title: ClassVar[str] = "Advice without a look at the table"

    @property
    def words(self) -> str:
        """Why there is no more to see, and what the advice rests on."""
        return (
            f"{self.why}Expected errors follow from the domain, the bound and what you know from "
            "elsewhere. Without such knowledge the worst case decides. Advice is free, and each release "
            "costs its ε again."
        )

    def controls(self, values: Values) -> tuple[Control, ...]:
        """The budget of a release, its size, and what is known of the table."""
        m = self.domain.size
        sizes = decades(1, min(m, 10**7), whole=True)
        size = max(s for s in sizes if s <= max(1, m // 100))
        delta = decades(1e-12, 0.01, zero=True)
        epsilon = Control("epsilon", 0.1, decades(0.01, 10), doc="privacy loss of a release")
        known = "from elsewhere, never from the table itself"
        controls = [
            epsilon,
            Control("size", size, sizes, label="size", unit="cells", doc="about, to release"),
            Control(
                "believed", False, kind="switch", label="I know roughly how it looks", doc=known
            ),
            Control("delta", 0.0, delta, doc="failure probability, for a stability histogram"),
        ]
        if values.get("believed"):
            density = decades(1e-6, 1.0)
            spread = decades(0.5, 10_000, zero=True)
            controls += [
                Control("density", 0.1, density, doc="share of cells that are not empty"),
                Control("mean", 100.0, decades(1, 10_000), label="mean count", unit="counts"),
                Control(
                    "spread", 20.0, spread, unit="counts", doc="standard deviation of counts"
                ),
            ]
        return tuple(controls)

    def draw(self, values: Values, seed: int, exact: bool, progress: Path | None) -> Drawn:
        """Expected errors of the best options, and what each of them releases."""
        advice = self.advice(values, quick=not exact)
        believed = values["believed"]
        metric = "ExpectedError" if believed else "WorstRMSE"
        rows = []
        facts = []
        for option in _shown_options(advice):
            name = series_name(option.mechanism) + ("" if option.fits else ", too large")
            errors = [e.error if believed else e.worst for e in option.query_errors]
            for query, error in zip(option.query_errors, errors, strict=True):
                if np.isfinite(error):
                    row = dict(panel="errors", series=name, metric=metric)
                    rows.append(row | dict(query_size=query.query, value=error))
            facts.append((name, _option_text(option, errors)))
        trees = "" if exact else " Trees are compared when the slider rests."
        lead = (
            f"Recommended: {series_name(advice.mechanism)}. {_sentence(advice.reason)}{trees}"
        )
        return Drawn(pd.DataFrame(rows), facts, lead=lead)

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """Error by the size of a range."""
        kind = "expected" if values["believed"] else "at worst"
        return [Panel(f"Error of ranges, {kind}", {"panel": "errors"}, "query_size")]

    def advice(self, values: Values, quick: bool = False) -> Advice:
        """The advice of `advise`."""
        return advise(self.domain, bound=self.bound, quick=quick, **self._arguments(values))

    def _arguments(self, values: Values) -> dict[str, Any]:
        names = ["epsilon", "size"]
        if values["delta"] != 0:
            names.append("delta")
        if values["believed"]:
            names += MODEL
        sizes = range_sizes(self.domain.size)
        places = np.unique(np.linspace(0, len(sizes) - 1, SIZES).astype(int))
        queries = tuple(sizes[i] for i in places)
        return {name: values[name] for name in names} | dict(queries=queries)

    def code(self, values: Values, seed: int, exact: bool) -> str:
        """The lines that give the same advice."""
        arguments = self._arguments(values) | dict(bound=self.bound)
        if not exact:
            arguments["quick"] = True
        text = ", ".join(f"{name}={x!r}" for name, x in arguments.items())
        return f"from workbench import *\nadvise({self.domain!r}, {text})"

    def more_commands(self, values: Values) -> list[str]:
        """The command of the same advice, and of the release that it recommends."""
        words = []
        for name, x in self._arguments(values).items():
            words.append(f"--{name} {numbers_text(x if isinstance(x, tuple) else [x])}")
        asked = f"{' '.join(words)} --bound {bound_text(self.bound)}"
        release = release_options(self.advice(values, quick=True).mechanism)
        return [
            f"workbench advise --domain domain.json {asked}",
            f"workbench release YOUR.csv … {release}",
        ]


def _shown_options(advice: Advice) -> Sequence[Option]:
    """The best options, and the full table for comparison."""
    full_table = next(o for o in advice.options if type(o.mechanism) is GeometricHistogram)
    options = [*advice.ranked[:BEST]]
    return options if full_table in options else [*options, full_table]


def _option_text(option: Option, errors: Sequence[float]) -> str:
    """How much an option releases, and how far its answers are off."""
    cells = f"releases {number(round(option.cells))} cells"
    if not option.fits:
        cells += ", more than the size asked for"
    queries = option.query_errors
    off = [
        f"±{format_number(errors[i])} on {number(queries[i].query)}"
        for i in sorted({0, len(queries) - 1})
    ]
    return f"{cells}; ranges of cells: {', '.join(off)}"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


def advice_subject(data: Any, bound: Bound | None = None, why: str = "") -> AdviceSubject:
    """The subject of a table, a dataset of one, or a domain: nothing else of it is read."""
    domain = data if isinstance(data, Domain) else getattr(data, "domain", None)
    if not isinstance(domain, Domain) or isinstance(data, Interactions):
        raise ValueError(
            f"{type(data).__name__} is not allowed: need a table, or a domain, whose counts closed "
            "forms are about"
        )
    if bound is None:
        bound = Bound() if data is domain else getattr(data, "bound", None)
    if not isinstance(bound, Bound):
        raise ValueError(
            f"bound = {bound!r} is not allowed: need Bound(l0, linf), how far one unit moves the table"
        )
    return AdviceSubject(Domain(domain.attributes, domain.shape), bound, why)


def advice_instead(data: Any) -> AdviceSubject | None:
    """None where a panel may compare with the truth of `data`, else the advice to show instead.

    Raises
    ------
    ValueError
        For private records and interactions, for which there is no closed form.
    """
    if public(data):
        return None
    try:
        return advice_subject(data, why=WHY)
    except ValueError:
        raise ValueError(
            f"{type(data).__name__} does not state truth_public. A panel compares with the truth, and "
            "every error is an exact function of private data. `widgets.advice(domain, bound)` knows "
            "tables alone, so try records and interactions on a synthetic stand-in"
        ) from None
