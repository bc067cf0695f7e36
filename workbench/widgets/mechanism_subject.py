"""Panel of a mechanism, with one control per field, optionally next to another mechanism with the same
noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import Field, fields, is_dataclass, replace
from functools import lru_cache
from inspect import getdoc
from pathlib import Path
from shlex import quote
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
from workbench.figures.plots import SYMBOLS, Panel
from workbench.mechanisms.options import release_options
from workbench.mechanisms.protocol import sensitivity, series_name
from workbench.noise import Aligned
from workbench.privacy import DP, LOCAL, ZCDP
from workbench.value import value
from workbench.widgets.controls import Control, control_of_field, decades
from workbench.widgets.subjects import Drawn, Subject, Values, loaded
from workbench.widgets.views import CHARTS, COUNTS, TRUTH, rows_of_views

EXAMPLE_EPSILON, EXAMPLE_RHO, EXAMPLE_DELTA = 1.0, 0.5, 1e-6
EPSILON, RHO = "epsilon", "rho"
ACCEPTS = {EPSILON: "accepts_dp", RHO: "accepts_zcdp"}
COMPARE = "compare"
SEEDS = {
    "seed": Control("seed", 0, tuple(range(21)), doc="seed of the noise", place="more"),
    "seeds": Control("seeds", 1, tuple(range(1, 21)), doc="releases of a band", place="more"),
}
TAKEN = "budget", "privacy", EPSILON, RHO, "delta", COMPARE, *SEEDS

# Examples are made for tables of about a hundred units; TINY holds exactly that many.
TINY = GaussianSparse(1000, 0.005, 20.0, 8.0, seed=78)
PEOPLE = Projected(IPUMSTwin(20_000), ("Gender", "Education", "Race", "Marital"))
VISITS = InteractionsTwin(5000, 100, 100_000, 1000)
HOMES = Towns(20_000)


@value
class MechanismSubject(Subject):
    """Content of a panel that shows a mechanism. It consists of the mechanism with its initial parameters,
    and the public dataset on which the mechanism runs.
    """

    mechanism: Any
    dataset: Any

    noise_note: ClassVar[str] = (
        "The seed stays while sliders move, so that the parameter changes the picture and not luck. Noise "
        "of the same cells or nodes stays with them, and ε scales it. Mechanisms that are compared have one "
        "seed, and the same noise where they draw it in the same way. A field that changes the cells or "
        "the distribution draws new noise."
    )

    @classmethod
    def of(cls, mechanism: Any, dataset: Any = None) -> MechanismSubject:
        """Make the content of a panel for a mechanism. If a class is given, its example is used. By default,
        the mechanism runs on a small synthetic dataset.
        """
        if isinstance(mechanism, type) and hasattr(mechanism, "example"):
            mechanism = _example(mechanism)
        _refuse_no_mechanism(mechanism)
        if dataset is not None and not hasattr(dataset, "load"):
            raise ValueError(
                f"dataset = {dataset!r} is not allowed: need a dataset that anybody can load from its text, "
                "for example GaussianSparse()"
            )
        if dataset is None:
            dataset = suitable_dataset(mechanism)
        data = loaded(dataset)
        if not isinstance(data, mechanism.takes):
            need = f"need one of {mechanism.takes.__name__}, not {type(data).__name__}"
            raise ValueError(f"dataset = {dataset!r} is not allowed for {mechanism!r}: {need}")
        return cls(mechanism, dataset)

    @property
    def name(self) -> str:
        """Name of the mechanism's class."""
        return type(self.mechanism).__name__

    @property
    def words(self) -> str:
        """First paragraph of the class's docstring, without the backticks around names."""
        doc = (getdoc(type(self.mechanism)) or "").split("\n\n")[0].replace("\n", " ")
        doc = doc.replace("`", "")
        return "" if doc.startswith(f"{self.name}(") else doc  # which dataclass writes

    def controls(self, values: Values) -> tuple[Control, ...]:
        """Return the controls. They are for the budget, the mechanism's parameters, and the choice of another
        mechanism for comparison. Parameters that only this other mechanism has get controls, too.
        """
        budget = _budget_controls(self.mechanism, values)
        controls = {c.name: _accepted(self.mechanism, c) for c in budget}
        rivals = ("", *_rivals(self.mechanism, RHO if RHO in controls else EPSILON))
        doc = "another mechanism on the same data, with the same noise and the same settings"
        controls[COMPARE] = Control(
            COMPARE, "", rivals, "choice", label="compare with", doc=doc, place="tools"
        )
        beside = self._beside(values)
        for mechanism in [self.mechanism, *beside]:
            for f, x in _fields_inside(mechanism):
                control = control_of_field(f, x) if _has_control(f) else None
                if control and f.name not in controls:
                    control = _accepted(mechanism, control)
                    if beside and mechanism is beside[0]:
                        label = f"{control.label} ({type(mechanism).__name__})"
                        control = replace(control, label=label)
                    controls[f.name] = control
        return *controls.values(), *SEEDS.values()

    def _beside(self, values: Values) -> list[Any]:
        name = values.get(COMPARE)
        return [_example(mechanisms.find(name), values.get("privacy") == RHO)] if name else []

    def at(self, values: Values) -> list[Any]:
        """Return the mechanism with the parameters from the settings. If another mechanism is chosen for
        comparison, this one is second. Raise a ValueError if a setting is invalid.
        """
        beside = [_as_far_as_possible(m, values) for m in self._beside(values)]
        return [_with_fields(self.mechanism, values), *beside]

    def check(self, values: Values) -> None:
        """Raise a ValueError if the mechanism does not allow a setting."""
        for name, least in (("seed", 0), ("seeds", 1)):
            if not isinstance(values[name], int) or values[name] < least:
                need = f"need an integer >= {least}"
                raise ValueError(f"{name} = {values[name]!r} is not allowed: {need}")
        self.at(values)

    def each(self, values: Values) -> list[Values]:
        """Return the settings of each release, as a list. The releases have the seeds `seed`, `seed` + 1 and
        so on.
        """
        return [{**values, "seed": values["seed"] + i} for i in range(values["seeds"])]

    def draw(self, values: Values, exact: bool, progress: Path | None) -> Drawn:
        """Make releases with seeded noise, and measure the errors of all queries that the estimates can
        answer.
        """
        data = loaded(self.dataset)
        made = self.at(values)
        names = [series_name(m) for m in made]
        if len(names) == 2 and names[0] == names[1]:
            names[1] = type(made[1]).__name__
        releases = tuple(m(data, Aligned(values["seed"])) for m in made)
        frames: list[pd.DataFrame] = []
        for name, mechanism, release in zip(names, made, releases, strict=True):
            rows = rows_of_views(_truth(data, release), release.estimate, name, exact)
            rows = rows.assign(trial=repr(mechanism))
            frames.append(rows[rows.series != TRUTH] if frames else rows)
        rows = pd.concat(frames, ignore_index=True).assign(
            seed=values["seed"], dataset=repr(self.dataset), truth_public=True
        )
        facts = [("data", repr(self.dataset))]
        for name, release in zip(names, releases, strict=True):
            of = f", {name}" if len(made) > 1 else ""
            is_rho = isinstance(release.privacy, ZCDP)  # which is stated as an ε as well
            described = release.describe(EXAMPLE_DELTA if is_rho else None)
            if hasattr(release.mechanism, "decision_facts"):
                by = data.hierarchy, sensitivity(data)
                described += release.mechanism.decision_facts(*by).items()
            facts += [(f"{what}{of}", text) for what, text in described]
        shown = {"budget", *(c.name for c in self.controls(values))} - {*SEEDS}
        fixed = [f"{f.name} = {x!r}" for f, x in _fields_inside(made[0]) if f.name not in shown]
        if fixed:
            facts.append(("not moved here", ", ".join(fixed)))
        return Drawn(rows, facts, releases, exact=exact)

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """Return the description of one chart per kind of query that was answered."""
        panels = []
        for name in rows.panel.unique():
            where = {"panel": name} | ({"seed": rows.seed.min()} if name in COUNTS else {})
            chart = replace(CHARTS[name], where=where)
            if not chart.cells:
                panels.append(chart)
                continue
            for series in rows[rows.panel == name].series.unique():
                how = dict(where=where | {"series": series}, outlines=series != TRUTH)
                panels.append(replace(chart, title=f"{chart.title}, {series}", **how))
        return panels

    def code(self, values: Values) -> str:
        """Return lines of Python that make the displayed releases again, with the same noise."""
        lines = [f"from workbench{part} import *" for part in ("", ".datasets", ".mechanisms")]
        for name, mechanism in zip(("release", "other"), self.at(values), strict=False):
            lines.append(
                f"{name} = {mechanism!r}({self.dataset!r}.load(), Aligned({values['seed']}))"
            )
        return "\n".join(lines)

    def commands(self, values: Values, words: Sequence[str]) -> list[str]:
        """Return the command `workbench export …`, or "" if the name of the class and the settings do not
        suffice. Also return the commands that release your own table with these settings.
        """
        cls: Any = type(self.mechanism)
        known = cls in mechanisms.ALL and self == MechanismSubject.of(cls)
        export = " ".join(["workbench export", self.name, *map(quote, words)]) if known else ""
        options = [release_options(mechanism) for mechanism in self.at(values)]
        return [export, *(f"workbench release YOUR.csv … {o}" for o in options if o)]


def _example(cls: Any, zcdp: bool = False) -> Any:
    """Return the example that a class of mechanisms provides. If `zcdp` is True and the class accepts it, the
    budget is a ρ.
    """
    delta = EXAMPLE_DELTA if getattr(cls, "spends_delta", False) else 0.0
    if not getattr(cls, "accepts_dp", True) or zcdp and getattr(cls, "accepts_zcdp", False):
        return cls.example(ZCDP(EXAMPLE_RHO, delta))
    return cls.example(DP(EXAMPLE_EPSILON, delta))


def _rivals(mechanism: Any, budget: str) -> list[str]:
    """Return the names of the other mechanisms that take the same kind of data. They also accept the given
    kind of budget, "epsilon" or "rho".
    """

    def kind(x: Any) -> tuple[Any, ...]:
        return x.takes, getattr(x, "ranked", False), getattr(x, "relation", None) == LOCAL

    own = type(mechanism)
    return [
        cls.__name__
        for cls in mechanisms.ALL
        if cls is not own and kind(cls) == kind(mechanism) and getattr(cls, ACCEPTS[budget])
    ]


def _truth(data: Any, release: Any) -> Any:
    """Return the true values that an estimate approximates: the data, or their sorted counts."""
    domain = getattr(release.estimate, "domain", data.domain)
    truth = data
    if isinstance(data, SparseTable) and domain != data.domain:
        truth = data.ranked()
    if domain != truth.domain:
        raise ValueError(
            f"{release.estimate!r} estimates neither {data!r} nor its sorted counts"
        )
    return truth


def _refuse_no_mechanism(mechanism: Any) -> None:
    frozen = is_dataclass(mechanism) and type(mechanism).__hash__ is not None
    complete = all(hasattr(mechanism, name) for name in ("budget", "takes", "__call__"))
    if not (frozen and complete) or isinstance(mechanism, type):
        raise ValueError(
            f"mechanism = {mechanism!r} is not allowed: need a class with an example, for example "
            "ThresholdSampling, or a frozen value of one with a budget"
        )


@lru_cache(64)
def suitable_dataset(mechanism: Any) -> Any:
    """Return the first small public dataset on which a mechanism can run."""
    tables = [TINY, PEOPLE]
    if getattr(mechanism, "relation", None) == LOCAL:  # one tuple for each unit
        tables = [PEOPLE]
    if getattr(mechanism, "ranked", False):
        tables = [SocialNetworkTwin()]
    datasets = {SparseTable: tables, Records: [HOMES], Interactions: [VISITS]}
    why = f"it takes {mechanism.takes.__name__}, and panels draw {', '.join(t.__name__ for t in datasets)}"
    for dataset in datasets.get(mechanism.takes, ()):
        try:
            mechanism(loaded(dataset), np.random.default_rng(0))
        except ValueError as e:
            why = str(e)
        else:
            return dataset
    raise ValueError(
        f"no small dataset is known for {mechanism!r} ({why}). Name one with dataset="
    )


# Controls of fields


def _budget_controls(mechanism: Any, values: Values) -> Iterator[Control]:
    """Yield controls for ε or ρ, for the choice between them if the mechanism takes both, and for δ if
    it spends one.
    """
    budget = mechanism.budget
    takes = [name for name in ACCEPTS if getattr(mechanism, ACCEPTS[name], name == EPSILON)]
    own = RHO if isinstance(budget, ZCDP) else EPSILON
    name = values.get("privacy", own)
    start, low = {EPSILON: (EXAMPLE_EPSILON, 0.01), RHO: (EXAMPLE_RHO, 0.0001)}[name]
    yield _budget_control(name, getattr(budget, name, start), decades(low, 10))
    if len(takes) == 2:
        doc = "ε: differential privacy. ρ: zero-concentrated differential privacy, with Gaussian noise"
        shown = tuple(SYMBOLS[name] for name in takes)
        yield Control("privacy", own, tuple(takes), "choice", doc=doc, shown=shown)
    if budget.delta or getattr(mechanism, "spends_delta", False):
        yield _budget_control("delta", budget.delta, decades(1e-12, 0.1, zero=True))


def _budget_control(name: str, start: float, stops: tuple[Any, ...]) -> Control:
    doc = {EPSILON: "privacy loss", RHO: "privacy loss, zCDP", "delta": "failure probability"}
    return Control(name, float(start), tuple(sorted({*stops, float(start)})), doc=doc[name])


def _has_control(f: Field[Any]) -> bool:
    """Return whether a field gets a control. A limit of memory gets none, because it does not change
    releases.
    """
    return f.name not in TAKEN and f.metadata.get("unit") != "bytes"


def _fields_inside(mechanism: Any) -> Iterator[tuple[Field[Any], Any]]:
    """Yield the fields of a mechanism with their values. If a field contains another mechanism, the fields of
    this other mechanism are yielded instead.
    """
    for f in fields(mechanism):
        x = getattr(mechanism, f.name)
        if hasattr(x, "budget"):
            yield from _fields_inside(x)
        else:
            yield f, x


def _with_fields(mechanism: Any, values: Values) -> Any:
    """Return a copy of the mechanism with the parameters from the settings."""
    changes = {}
    for f in fields(mechanism):
        old = getattr(mechanism, f.name)
        new = old
        if hasattr(old, "budget"):
            new = _with_fields(old, values)
        elif f.name == "budget":
            new = _budget(values, old, getattr(mechanism, "spends_delta", False))
        elif f.name in values and _has_control(f):
            new = old if values[f.name] is None and f.default is not None else values[f.name]
            if f.metadata.get("integer") and isinstance(new, float) and new.is_integer():
                new = int(new)  # of a control that another mechanism shares
        if new != old:  # 0 stays 0 where a slider says 0.0
            changes[f.name] = new
    return replace(mechanism, **changes)


@lru_cache(1024)
def _accepted(mechanism: Any, control: Control) -> Control:
    """Return a control without those positions of its slider that the mechanism refuses when its other
    parameters have their initial values.
    """

    if control.kind != "slider":
        return control
    optional = [f.name for f, _ in _fields_inside(mechanism) if f.default is None]
    left_out = dict.fromkeys(optional if control.optional else [])

    def accepts(stop: Any) -> bool:
        with suppress(ValueError):
            return bool(_with_fields(mechanism, {**left_out, control.name: stop}))
        return False

    return replace(control, stops=tuple(filter(accepts, control.stops)) or control.stops)


def _as_far_as_possible(mechanism: Any, values: Values) -> Any:
    """Return a mechanism with the settings of another one. If a setting is not possible, it is left out."""
    trials = [values]
    for f, x in _fields_inside(mechanism):
        if f.name in values:
            trials += [
                {**values, f.name: y} for y in ([None] if f.default is None else []) + [x]
            ]
    for trial in trials:
        with suppress(ValueError):
            return _with_fields(mechanism, trial)
    return _with_fields(mechanism, values)


def _budget(values: Values, old: DP | ZCDP, spends_delta: bool) -> DP | ZCDP:
    """Return the budget from the settings."""
    delta = values.get("delta", old.delta) if spends_delta or old.delta else 0.0
    if RHO in values:
        return ZCDP(values[RHO], delta)
    return DP(values[EPSILON], delta) if EPSILON in values else replace(old, delta=delta)
