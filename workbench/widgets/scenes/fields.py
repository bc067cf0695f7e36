"""Fields: any mechanism under sliders that are made of its fields, on data that it suits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import Field, fields, is_dataclass, replace
from functools import cached_property
from inspect import getdoc
from typing import Any, ClassVar

import numpy as np

from workbench import mechanisms
from workbench.compiled import pd
from workbench.data import Interactions, Records, SparseTable
from workbench.datasets import (
    GaussianSparse,
    InteractionsTwin,
    IPUMSTwin,
    Projected,
    SocialNetworkTwin,
    Towns,
)
from workbench.estimates.release import Release
from workbench.figures.plots import SYMBOLS, Panel
from workbench.mechanisms.options import RENAMED
from workbench.mechanisms.protocol import series_name
from workbench.owner.advice import Option
from workbench.privacy import DP, LOCAL, ZCDP
from workbench.value import value
from workbench.widgets.controls import Control, controls_of_field, decades
from workbench.widgets.scenes import Picture, Setup, Values, loaded
from workbench.widgets.scenes.summaries import ExpectedErrors, closed_form, range_sizes
from workbench.widgets.scenes.views import CHARTS, COUNTS, RANGES, rows_of_views
from workbench.widgets.view import Setting

EXAMPLE_EPSILON, EXAMPLE_RHO, EXAMPLE_DELTA = 1.0, 0.5, 1e-6
EPSILON, RHO = "epsilon", "rho"
BUDGET = "privacy", EPSILON, RHO, "delta"  # controls of what is spent
TAKEN = "budget", *BUDGET, "seed", "seeds", *RENAMED  # no control of a field's own

# Examples are made for tables of about a hundred units; TINY holds exactly that many.
TINY = GaussianSparse(1000, 0.005, 20.0, 8.0, seed=78)
PEOPLE = Projected(IPUMSTwin(20_000), ("Gender", "Education", "Race", "Marital"))
VISITS = InteractionsTwin(5000, 100, 100_000, 1000)
HOMES = Towns(20_000)


@value
class Fields:
    """A mechanism as it starts, and the public data that it is tried on."""

    mechanism: Any
    dataset: Any

    noise_note: ClassVar[str] = (
        "The seed stays while sliders move, and every look has a stream of its own: noise of the same "
        "cells or nodes, drawn by the same law, stays with them, and ε scales it; where a field "
        "changes which they are, or the law, it is drawn anew."
    )

    @classmethod
    def of(cls, mechanism: Any, dataset: Any = None) -> Fields:
        """Of a class, by its example, or of an instance; on small made-up data that it takes."""
        if isinstance(mechanism, type) and hasattr(mechanism, "example"):
            delta = EXAMPLE_DELTA if getattr(mechanism, "spends_delta", False) else 0.0
            budget: DP | ZCDP = DP(EXAMPLE_EPSILON, delta)
            if not getattr(mechanism, "accepts_dp", True):
                budget = ZCDP(EXAMPLE_RHO, delta)
            mechanism = mechanism.example(budget)
        _refuse_no_mechanism(mechanism)
        if dataset is not None and not hasattr(dataset, "load"):
            raise ValueError(
                f"dataset = {dataset!r} is not allowed: need a dataset, whose text anybody can run, "
                "such as GaussianSparse()"
            )
        if dataset is None:
            dataset = suitable_dataset(mechanism)
        data = loaded(dataset)
        if not isinstance(data, mechanism.takes):
            need = f"need one of {mechanism.takes.__name__}, not {type(data).__name__}"
            raise ValueError(f"dataset = {dataset!r} is not allowed for {mechanism!r}: {need}")
        return cls(mechanism, dataset)

    @cached_property
    def by_name(self) -> bool:
        """Whether its class says all, and is the workbench's: then `workbench export` knows it."""
        cls = type(self.mechanism)
        return cls in mechanisms.ALL and self == Fields.of(cls)

    @property
    def name(self) -> str:
        """That of the class."""
        return type(self.mechanism).__name__

    @property
    def title(self) -> str:
        """The same."""
        return self.name

    @cached_property
    def words(self) -> str:
        """The first paragraph that the class says of itself."""
        sliders = "A slider for each of its fields, with the bounds and units they declare."
        doc = (getdoc(type(self.mechanism)) or "").split("\n\n")[0].replace("\n", " ")
        if doc.startswith(f"{self.name}("):  # written by dataclass
            return sliders
        return f"{doc.rstrip('.')}. {sliders}"

    @cached_property
    def controls(self) -> tuple[Control, ...]:
        """ε or ρ, δ where there is one to spend, and what each field says of itself."""
        controls = [*_budget_controls(self.mechanism)]
        for f, x in _fields_inside(self.mechanism):
            if _has_control(f):
                controls += controls_of_field(f, x)
        return tuple(controls)

    def setup(self, values: Values) -> Setup:
        """The mechanism with its fields as they are set; all others stay."""
        return Setup(self.dataset, _with_fields(self.mechanism, values))

    def picture(
        self, setting: Setting, data: Any, release: Release, seed: int, exact: bool
    ) -> Picture:
        """Whatever the estimate can be asked and measured by."""
        estimate = release.estimate
        truth = data
        domain = getattr(estimate, "domain", data.domain)
        if isinstance(data, SparseTable) and domain != data.domain:
            truth = data.ranked()
        if domain != truth.domain:
            raise ValueError(
                f"{estimate!r} is neither about {data!r} nor about its sorted counts"
            )
        rows = rows_of_views(truth, estimate, series_name(release.mechanism), exact)
        facts = [("data", repr(self.dataset))]
        if law := self._closed_form(release.mechanism, data):
            facts.append(("size expected", f"{law.cells:,.0f}, by closed form"))
        shown = {"budget", *(control.name for control in self.controls)}
        inside = _fields_inside(self.mechanism)
        fixed = [f"{f.name} = {x!r}" for f, x in inside if f.name not in shown]
        if fixed:
            facts.append(("as they are", ", ".join(fixed)))
        return Picture(rows, facts)

    def panels(self, setting: Setting, rows: pd.DataFrame) -> list[Panel]:
        """A chart for each kind of question that was answered."""
        panels = []
        for name in rows.panel.unique():
            chart = CHARTS[name]
            theory: tuple[Any, ...] = ()
            if name == RANGES:
                if law := self._closed_form(setting.mechanism, loaded(self.dataset)):
                    theory = "expected", ExpectedErrors(law)
            where = {"panel": name}
            if name in COUNTS:
                where["seed"] = rows.seed.min()
            panels.append(
                Panel(
                    chart.title, where, chart.x, log=chart.log, theory=theory, fit_theory=True
                )
            )
        return panels

    def _closed_form(self, mechanism: Any, data: Any) -> Option | None:
        """What is expected of it; None where there is no formula."""
        if isinstance(self.dataset, GaussianSparse):
            return closed_form(self.dataset, mechanism, range_sizes(data.domain.size))
        return None


def _refuse_no_mechanism(mechanism: Any) -> None:
    frozen = is_dataclass(mechanism) and type(mechanism).__hash__ is not None
    complete = all(hasattr(mechanism, name) for name in ("budget", "takes", "__call__"))
    if not (frozen and complete) or isinstance(mechanism, type):
        raise ValueError(
            f"mechanism = {mechanism!r} is not allowed: need a class with an example, such as "
            "ThresholdSampling, or a value of one: frozen, with a budget"
        )


def suitable_dataset(mechanism: Any) -> Any:
    """The first small public dataset that it takes and can be run on."""
    tables = [TINY, PEOPLE]
    if getattr(mechanism, "relation", None) == LOCAL:  # one tuple a unit
        tables = [PEOPLE]
    if getattr(mechanism, "ranked", False):
        tables = [SocialNetworkTwin()]
    datasets = {SparseTable: tables, Records: [HOMES], Interactions: [VISITS]}
    why = f"it takes {mechanism.takes.__name__}"
    for dataset in datasets.get(mechanism.takes, ()):
        try:
            mechanism(loaded(dataset), np.random.default_rng(0))
        except ValueError as e:
            why = str(e)
        else:
            return dataset
    raise ValueError(
        f"no small dataset is known for {mechanism!r} ({why}): name one, dataset=…"
    )


# ---- controls of fields


def _budget_controls(mechanism: Any) -> Iterator[Control]:
    """An ε, a ρ, or which of the two where it takes both; and δ where there is one to spend."""
    budget = mechanism.budget
    names = []
    if getattr(mechanism, "accepts_dp", True):
        names.append(EPSILON)
    if getattr(mechanism, "accepts_zcdp", False):
        names.append(RHO)
    if len(names) == 2:
        doc = "ε: differential privacy; ρ: zero-concentrated, with Gaussian noise"
        shown = tuple(SYMBOLS[name] for name in names)
        yield Control("privacy", _price(budget), (EPSILON, RHO), "choice", doc=doc, shown=shown)
    starts = {EPSILON: EXAMPLE_EPSILON, RHO: EXAMPLE_RHO}
    stops = {EPSILON: decades(0.01, 10), RHO: decades(0.0001, 10)}
    for name in names:
        control = _budget_control(name, getattr(budget, name, starts[name]), stops[name])
        yield replace(control, when=({"privacy": (name,)},) if len(names) == 2 else ())
    if budget.delta or getattr(mechanism, "spends_delta", False):
        yield _budget_control("delta", budget.delta, (0.0, *decades(1e-12, 0.1)))


def _budget_control(name: str, value: float, stops: tuple[Any, ...]) -> Control:
    doc = {EPSILON: "privacy loss", RHO: "privacy loss, zCDP", "delta": "failure probability"}
    stops = tuple(sorted({*stops, float(value)}))
    return Control(name, float(value), stops, label=SYMBOLS[name], doc=doc[name])


def _price(budget: DP | ZCDP) -> str:
    """What a budget counts."""
    return RHO if isinstance(budget, ZCDP) else EPSILON


def _has_control(f: Field[Any]) -> bool:
    """Not a field that limits memory: it limits what is computed and changes no release."""
    return f.name not in TAKEN and f.metadata.get("unit") != "bytes"


def _fields_inside(mechanism: Any) -> Iterator[tuple[Field[Any], Any]]:
    """Fields and what they hold; those of a mechanism that is wrapped in its place."""
    for f in fields(mechanism):
        x = getattr(mechanism, f.name)
        if hasattr(x, "budget"):
            yield from _fields_inside(x)
        else:
            yield f, x


def _with_fields(mechanism: Any, values: Values) -> Any:
    """The mechanism with its fields as they are set."""
    changes = {}
    for f in fields(mechanism):
        old = getattr(mechanism, f.name)
        new = old
        if hasattr(old, "budget"):
            new = _with_fields(old, values)
        elif f.name == "budget":
            new = _budget(values, old)
        elif f.name in values and _has_control(f):
            new = values[f.name] if values.get(f"set_{f.name}", True) else None
        if new != old:  # 0 stays 0 where a slider says 0.0
            changes[f.name] = new
    return replace(mechanism, **changes)


def _budget(values: Values, old: DP | ZCDP) -> DP | ZCDP:
    """What the controls say is spent."""
    delta = values.get("delta", old.delta)
    if values.get("privacy", _price(old)) == RHO:
        return ZCDP(values[RHO], delta)
    return DP(values[EPSILON], delta)
