"""Advice: what to expect of a release, and what looks cost, where nothing may be looked at."""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from workbench.compiled import pd
from workbench.data import Bound, Interactions
from workbench.figures.plots import Panel
from workbench.mechanisms import GeometricHistogram
from workbench.mechanisms.options import bound_text, numbers_text, release_options
from workbench.mechanisms.protocol import series_name
from workbench.owner.advice import Advice, CountModel, advise
from workbench.privacy import DP
from workbench.spaces import Domain
from workbench.value import value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Values, public
from workbench.widgets.scenes.summaries import range_sizes
from workbench.widgets.view import Setting

BEST = 4  # summaries that are drawn, beside the full table
SIZES = 4  # of ranges
MEASUREMENTS = 10  # whose cost is drawn
LISTED = 1, 2, 5, 10  # of them, in words
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
        m = self.domain.size
        believed = ({"believed": (True,)},)
        sizes = decades(1, min(m, 10**7), whole=True)
        size = max(s for s in sizes if s <= max(1, m // 100))
        return (
            Control("epsilon", 0.1, decades(0.01, 10), label="ε", doc="privacy loss of a look"),
            Control("size", size, sizes, label="size", unit="cells", doc="about, to release"),
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
            field_control(CountModel, "density", 0.1, decades(1e-6, 1.0), when=believed),
            field_control(
                CountModel, "mean", 100.0, decades(1, 10_000), label="mean count", when=believed
            ),
            field_control(
                CountModel, "spread", 20.0, decades(0.5, 10_000, zero=True), when=believed
            ),
        )

    def setup(self, values: Values) -> None:
        """Nothing is set up: there is no release."""
        return None

    def picture(
        self, setting: Setting, data: Any, release: Any, seed: int, exact: bool
    ) -> Picture:
        """Expected errors of the best summaries, and the price of looking."""
        values = setting.values
        advice = self.advice(values, quick=not exact)
        totals = [DP(0.0)]
        for _ in range(MEASUREMENTS):
            totals.append(totals[-1] + advice.budget)
        errors = _error_rows(advice, values["believed"])
        costs = pd.DataFrame(
            dict(
                panel=COST,
                series="all looks together",
                metric="TotalEpsilon",
                looks=k,
                value=totals[k].epsilon,
            )
            for k in range(1, MEASUREMENTS + 1)
        )
        rows = pd.concat([errors, costs], ignore_index=True)
        recommended = "recommended" if exact else "recommended, trees aside"
        facts = [
            (recommended, f"{advice.reason}."),
            ("looks together", "; ".join(f"{k}: {_budget_text(totals[k])}" for k in LISTED)),
        ]
        arguments = self._arguments(values)
        commands = [
            f"workbench advise --domain domain.json {_options(arguments, self.bound)}",
            f"workbench release YOUR.csv … {release_options(advice.mechanism)}",
        ]
        code = self._code(arguments, quick=not exact)
        return Picture(rows[np.isfinite(rows.value)], facts, code, commands)

    def panels(self, setting: Setting, rows: pd.DataFrame) -> list[Panel]:
        """Error over size; ε over looks."""
        return [
            Panel("Error of ranges, expected", {"panel": ERRORS}, "query_size"),
            Panel("The cost of looking", {"panel": COST}, "looks", log=""),
        ]

    def advice(self, values: Values, quick: bool = False) -> Advice:
        """What `advise` says."""
        return advise(self.domain, bound=self.bound, quick=quick, **self._arguments(values))

    def _arguments(self, values: Values) -> dict[str, Any]:
        """Those of `advise`, but for domain and bound."""
        names = ["epsilon", "size"]
        if values["delta"] != 0:
            names.append("delta")
        if values["believed"]:
            names += MODEL
        sizes = range_sizes(self.domain.size)
        places = np.unique(np.linspace(0, len(sizes) - 1, SIZES).astype(int))
        queries = tuple(sizes[i] for i in places)
        return {name: values[name] for name in names} | dict(queries=queries)

    def _code(self, arguments: dict[str, Any], quick: bool) -> str:
        """What to paste to be advised alike."""
        arguments = arguments | dict(bound=self.bound)
        if quick:
            arguments["quick"] = True
        text = ", ".join(f"{name}={x!r}" for name, x in arguments.items())
        return f"from workbench import *\nadvise({self.domain!r}, {text})"


def _error_rows(advice: Advice, believed: bool) -> pd.DataFrame:
    """Errors of the best summaries and of the full table: expected, or the worst."""
    full_table = next(o for o in advice.options if type(o.mechanism) is GeometricHistogram)
    options = [*advice.ranked[:BEST]]
    if full_table not in options:
        options.append(full_table)
    rows = []
    for option in options:
        for error in option.query_errors:
            rows.append(
                dict(
                    panel=ERRORS,
                    series=series_name(option.mechanism),
                    metric="ExpectedError" if believed else "WorstRMSE",
                    query_size=error.query,
                    value=error.error if believed else error.worst,
                )
            )
    return pd.DataFrame(rows)


def _options(arguments: dict[str, Any], bound: Bound) -> str:
    """Arguments of `advise` as options of the command."""
    words = []
    for name, x in arguments.items():
        words.append(f"--{name} {numbers_text(x if isinstance(x, tuple) else [x])}")
    return " ".join([*words, f"--bound {bound_text(bound)}"])


def advice_scene(data: Any, bound: Bound | None = None, why: str = "") -> Advised:
    """The scene of a table, of a dataset of one, or of a domain: nothing else of it is read."""
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


def _budget_text(budget: DP) -> str:
    """A budget, read at a glance.

    >>> _budget_text(DP(0.1) + DP(0.2)), _budget_text(DP(1.0, 1e-6))
    ('ε = 0.3', 'ε = 1, δ = 1e-06')
    """
    if budget.delta:
        return f"ε = {budget.epsilon:.6g}, δ = {budget.delta:g}"
    return f"ε = {budget.epsilon:.6g}"
