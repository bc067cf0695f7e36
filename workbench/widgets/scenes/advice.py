"""Advice: what to expect of a release, and what looks cost, where nothing may be looked at."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench.advice import Advice, CountModel, advise
from workbench.domain import Domain
from workbench.interactions import Interactions
from workbench.mechanism import release_options
from workbench.mechanisms import GeometricHistogram
from workbench.plots import Panel
from workbench.privacy import DP
from workbench.table import Bound
from workbench.value import value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Values, public
from workbench.widgets.scenes.fields import called
from workbench.widgets.scenes.summaries import sizes

BEST = 4  # summaries that are drawn, beside the full table
CURVE = 4  # sizes of ranges
LOOKS, TOLD = 10, (1, 2, 5, 10)
ERRORS, COST = "errors", "cost"
MODEL = "density", "mean", "spread"
WHY = (
    "This table does not say truth_public: a panel would compare with the truth, and every error is "
    "an exact function of private data. "
)


@value
class Advised:
    """All that is public of a table: where its counts may lie, and how far one unit moves them."""

    domain: Domain
    bound: Bound
    why: str = ""

    name: ClassVar[str] = "advice"
    by_name: ClassVar[bool] = False
    title: ClassVar[str] = "Advice without a look"
    noise_note: ClassVar[str] = ""  # nothing is drawn

    @property
    def words(self) -> str:
        """Why there is no more to see, and what moves."""
        return (
            f"{self.why}How far off ranges are expected to be is computed from the domain, the bound "
            "and what you believe of the table, which must not be read off it. Where nothing is "
            "believed the worst case decides. Every look at the table costs its ε again."
        )

    @cached_property
    def controls(self) -> tuple[Control, ...]:
        """The budget of a look, its size, and what is believed."""
        m, on = self.domain.size, ({"believed": (True,)},)
        sizes_ = decades(1, min(m, 10**7), whole=True)
        size = max(s for s in sizes_ if s <= max(1, m // 100))
        return (
            Control("epsilon", 0.1, decades(0.01, 10), label="ε", doc="privacy loss of a look"),
            Control("size", size, sizes_, label="size", unit="cells", doc="about, to release"),
            Control(
                "delta",
                0.0,
                decades(1e-12, 0.01, zero=True),
                label="δ",
                doc="failure probability, for a stability histogram",
            ),
            Control(
                "believed",
                False,
                kind="switch",
                label="something is believed",
                doc="of the table, from elsewhere; else the worst case decides",
            ),
            field_control(CountModel, "density", 0.1, decades(1e-6, 1.0), when=on),
            field_control(
                CountModel, "mean", 100.0, decades(1, 10_000), label="mean count", when=on
            ),
            field_control(CountModel, "spread", 20.0, decades(0.5, 10_000, zero=True), when=on),
        )

    @property
    def grid(self) -> dict[str, tuple]:
        """ε, some sizes, and whether anything is believed."""
        stops = next(c for c in self.controls if c.name == "size").stops
        at = np.unique(np.linspace(0, len(stops) - 1, 4).astype(int))
        epsilons = 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0
        return dict(epsilon=epsilons, size=tuple(stops[i] for i in at), believed=(False, True))

    def setup(self, values: Values) -> None:
        """Nothing is set up: there is no release."""
        return None

    def look(self, values: Values, data: Any, release: Any, seed: int, exact: bool) -> Picture:
        """Expected errors of the best summaries, and the price of looking."""
        advice = self.advice(values, quick=not exact)
        metric = "ExpectedError" if values["believed"] else "WorstRMSE"
        dense = next(o for o in advice.options if type(o.mechanism) is GeometricHistogram)
        best, rows = advice.ranked[:BEST], []
        for option in (*best, *([dense] if dense not in best else [])):
            row = dict(panel=ERRORS, series=called(option.mechanism), metric=metric)
            for off in option.query_errors:
                error = off.error if values["believed"] else off.worst
                rows.append(row | dict(query_size=off.query, value=error))
        totals = [DP(0.0)]
        for k in range(1, LOOKS + 1):
            totals.append(totals[-1] + advice.budget)
            row = dict(panel=COST, series="all looks together", metric="TotalEpsilon")
            rows.append(row | dict(looks=k, value=totals[-1].epsilon))
        rows = pd.DataFrame(rows)
        together = "; ".join(f"{k}: {_told(totals[k])}" for k in TOLD)
        found = [
            ("recommended" + ", trees aside" * (not exact), f"{advice.reason}."),
            ("looks together", together),
        ]
        asked = self._asked(values) | dict(bound=self.bound)
        words = ", ".join(f"{name}={x!r}" for name, x in asked.items())
        words += ", quick=True" * (not exact)
        code = f"from workbench import *\nadvise({self.domain!r}, {words})"
        b = self.bound
        asked |= dict(bound=(b.l0, b.linf, b.l1))
        told = [f"--{name} {_typed(x)}" for name, x in asked.items()]
        commands = [
            f"workbench advise --domain domain.json {' '.join(told)}",
            f"workbench release YOUR.csv … {release_options(advice.mechanism)}",
        ]
        return Picture(rows[np.isfinite(rows.value)], found, code, commands)

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """Error over size; ε over looks."""
        return [
            Panel("Error of ranges, expected", {"panel": ERRORS}, "query_size"),
            Panel("The cost of looking", {"panel": COST}, "looks", log=""),
        ]

    def advice(self, values: Values, quick: bool = False) -> Advice:
        """What `advise` says."""
        return advise(self.domain, bound=self.bound, quick=quick, **self._asked(values))

    def _asked(self, values: Values) -> dict[str, Any]:
        """What it is told, but for domain and bound."""
        every = sizes(self.domain.size)
        at = np.unique(np.linspace(0, len(every) - 1, CURVE).astype(int))
        names = ["epsilon", "size"] + ["delta"] * (values["delta"] != 0)
        names += MODEL * values["believed"]
        told = {name: values[name] for name in names}
        return told | dict(queries=tuple(every[i] for i in at))


def advice_scene(data: Any, bound: Bound | None = None, why: str = "") -> Advised:
    """The scene of a table, of a dataset of one, or of a domain: nothing else of it is read."""
    domain = data if isinstance(data, Domain) else getattr(data, "domain", None)
    known = getattr(data, "bound", Bound() if data is domain else None)
    bound = known if bound is None else bound
    if not isinstance(domain, Domain) or isinstance(data, Interactions):
        raise ValueError(
            f"{type(data).__name__} is not allowed: need a table, or a domain, whose counts closed "
            "forms are about"
        )
    if not isinstance(bound, Bound):
        raise ValueError(
            f"bound = {bound!r} is not allowed: need Bound(l0, linf), how far one unit moves the table"
        )
    return Advised(Domain(domain.attributes, domain.shape), bound, why)


def advice_instead(data: Any) -> Advised | None:
    """None where a panel may compare with the truth of `data`; else the scene to show instead.

    A ValueError for private records and interactions, of which nothing is known without a look.
    """
    if public(data):
        return None
    try:
        return advice_scene(data, why=WHY)
    except ValueError:
        raise ValueError(
            f"{type(data).__name__} does not say truth_public: a panel compares with the truth, and "
            "every error is an exact function of private data. Each look costs its ε again, k looks "
            "k·ε. What to expect is known without a look for tables alone, `widgets.advice(domain, "
            "bound)`: try records and interactions on a twin"
        ) from None


def _typed(x: Any) -> str:
    return ",".join(map(repr, x)) if isinstance(x, tuple) else repr(x)


def _told(budget: DP) -> str:
    """A budget, read at a glance.

    >>> _told(DP(0.1) + DP(0.2)), _told(DP(1.0, 1e-6))
    ('ε = 0.3', 'ε = 1, δ = 1e-06')
    """
    return f"ε = {budget.epsilon:.6g}" + f", δ = {budget.delta:g}" * bool(budget.delta)
