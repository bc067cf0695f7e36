"""Fields: any mechanism under sliders that are made of its fields, on data that it suits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import Field, fields, is_dataclass, replace
from functools import cached_property
from inspect import getdoc
from math import prod
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from workbench import mechanisms
from workbench.datasets import (
    GaussianSparse,
    InteractionsTwin,
    IPUMSTwin,
    Projected,
    SocialNetworkTwin,
    Towns,
)
from workbench.domain import Domain
from workbench.experiment import mechanism_columns
from workbench.interactions import Interactions
from workbench.mechanism import Release
from workbench.metrics import MeanAbsoluteError, TopPrecision
from workbench.plots import Panel, name_series
from workbench.privacy import DP, LOCAL
from workbench.records import Records
from workbench.table import SparseTable
from workbench.value import value
from workbench.widgets.controls import Control, controls_of_field, decades
from workbench.widgets.scenes import RENAMED, Picture, Setup, Values, loaded
from workbench.widgets.scenes.summaries import ASKED, Between, closed_form, sizes
from workbench.workload import (
    Boxes,
    Level,
    RandomBoxes,
    RandomMarginalRanges,
    RandomRanges,
    Ranges,
)

START = 1.0, 1e-6  # ε and δ of an example
EPSILONS = 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0  # of a file without a kernel
TAKEN = (
    "epsilon",
    "delta",
    "seed",
    "seeds",
    *RENAMED,
)  # names of controls that no field may have
QUERIES = {False: 60, True: 400}  # of each size, roughly and exactly
ATTRIBUTES, HALVED, PARTS, SHOWN, NODES = 4, 6, 64, 400, 2**12
TRUTH = "truth"

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

    @classmethod
    def of(cls, mechanism: Any, dataset: Any = None) -> Fields:
        """Of a class, by its example, or of an instance; on small made-up data that it takes."""
        if isinstance(mechanism, type) and hasattr(mechanism, "example"):
            delta = START[1] if getattr(mechanism, "spends_delta", False) else 0.0
            mechanism = mechanism.example(DP(START[0], delta))
        frozen = is_dataclass(mechanism) and type(mechanism).__hash__ is not None
        known = all(hasattr(mechanism, name) for name in ("budget", "takes", "__call__"))
        if not (frozen and known) or isinstance(mechanism, type):
            raise ValueError(
                f"mechanism = {mechanism!r} is not allowed: need a class with an example, such as "
                "ThresholdSampling, or a value of one: frozen, with a budget"
            )
        if dataset is not None and not hasattr(dataset, "load"):
            raise ValueError(
                f"dataset = {dataset!r} is not allowed: need a dataset, whose text anybody can run, "
                "such as GaussianSparse()"
            )
        dataset = suited(mechanism) if dataset is None else dataset
        if not isinstance(data := loaded(dataset), mechanism.takes):
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
        told = (getdoc(type(self.mechanism)) or "").split("\n\n")[0].replace("\n", " ")
        own = "" if told.startswith(f"{self.name}(") else f"{told.rstrip('.')}. "
        return f"{own}A slider for each of its fields, with the bounds and units they declare."

    noise_note: ClassVar[str] = (
        "The seed stays while sliders move, and every look has a stream of its own: noise of the same "
        "cells or nodes, drawn by the same law, stays with them, and ε scales it; where a field "
        "changes which they are, or the law, it is drawn anew."
    )

    @cached_property
    def controls(self) -> tuple[Control, ...]:
        """ε, δ where there is one to spend, and what each field says of itself."""
        budget, found = self.mechanism.budget, []
        at = {*decades(0.01, 10), float(budget.epsilon)}
        about = dict(label="ε", doc="privacy loss")
        found.append(Control("epsilon", float(budget.epsilon), tuple(sorted(at)), **about))
        if budget.delta or getattr(self.mechanism, "spends_delta", False):
            at = {0.0, *decades(1e-12, 0.1), float(budget.delta)}
            about = dict(label="δ", doc="failure probability")
            found.append(Control("delta", float(budget.delta), tuple(sorted(at)), **about))
        for f, x in flat(self.mechanism):
            if moves(f):
                found += controls_of_field(f, x)
        return tuple(found)

    @cached_property
    def grid(self) -> dict[str, tuple]:
        """ε, and the first slider and the first choice that are in use."""
        now = {c.name: c.value for c in self.controls}
        used = [
            c for c in self.controls if all(now[n] in x for w in c.when for n, x in w.items())
        ]
        found = {"epsilon": EPSILONS}
        for sliders, most in ((True, 6), (False, 4)):
            for c in used:
                own = (c.kind == "slider") is sliders and not c.name.startswith("set_")
                if own and c.name not in ("epsilon", "delta"):
                    at = np.unique(np.linspace(0, len(c.stops) - 1, most).astype(int))
                    found[c.name] = tuple(c.stops[i] for i in at)
                    break
        return found

    def setup(self, values: Values) -> Setup:
        """The mechanism with its fields as they are set; all others stay."""
        return Setup(self.dataset, built(self.mechanism, values))

    def look(
        self, values: Values, data: Any, release: Release, seed: int, exact: bool
    ) -> Picture:
        """Whatever the estimate can be asked and measured by."""
        estimate, name, rows = release.estimate, called(release.mechanism), []
        truth, domain = data, getattr(estimate, "domain", data.domain)
        if isinstance(data, SparseTable) and domain != data.domain:
            truth = data.ranked()
        if domain != truth.domain:
            raise ValueError(
                f"{estimate!r} is neither about {data!r} nor about its sorted counts"
            )
        for view in VIEWS:
            with suppress(ValueError):  # what it cannot be asked
                rows += list(view(truth, estimate, name, exact))
        if not sum(map(len, rows)):
            raise ValueError(f"{estimate!r} answers nothing that is drawn here")
        found = [("data", repr(self.dataset))]
        if law := self._foreseen(release.mechanism, data):
            found.append(("size expected", f"{law.cells:,.0f}, by closed form"))
        known = {c.name for c in self.controls} | {"budget"}
        told = [f"{f.name} = {x!r}" for f, x in flat(self.mechanism) if f.name not in known]
        return Picture(pd.concat(rows), found + [("as they are", ", ".join(told))] * bool(told))

    def panels(self, values: Values, rows: pd.DataFrame) -> list[Panel]:
        """A chart for each kind of question that was answered."""
        made, found = built(self.mechanism, values), []
        for panel in rows.panel.unique():
            title, x, log = CHARTS[panel]
            theory = ()
            if panel == RANGES and (law := self._foreseen(made, loaded(self.dataset))):
                theory = ("expected", Between(law))
            where = {"panel": panel} | ({"seed": rows.seed.min()} if panel in COUNTS else {})
            found.append(Panel(title, where, x, log=log, theory=theory, whole=True))
        return found

    def _foreseen(self, mechanism: Any, data: Any) -> Any:
        """What closed forms expect of it; None where there are none."""
        if isinstance(self.dataset, GaussianSparse):
            return closed_form(self.dataset, mechanism, sizes(data.domain.size))
        return None


def suited(mechanism: Any) -> Any:
    """The first small public dataset that it takes and can be run on."""
    tables = [TINY, PEOPLE]
    if getattr(mechanism, "relation", None) == LOCAL:  # one tuple a unit
        tables = [PEOPLE]
    if getattr(mechanism, "ranked", False):
        tables = [SocialNetworkTwin()]
    known = {SparseTable: tables, Records: [HOMES], Interactions: [VISITS]}
    why = f"it takes {mechanism.takes.__name__}"
    for dataset in known.get(mechanism.takes, ()):
        try:
            mechanism(loaded(dataset), np.random.default_rng(0))
        except ValueError as e:
            why = str(e)
        else:
            return dataset
    raise ValueError(
        f"no small dataset is known for {mechanism!r} ({why}): name one, dataset=…"
    )


def flat(mechanism: Any) -> Iterator[tuple[Field, Any]]:
    """Fields and what they hold; those of a mechanism that is wrapped in its place."""
    for f in fields(mechanism):
        x = getattr(mechanism, f.name)
        if hasattr(x, "budget"):
            yield from flat(x)
        else:
            yield f, x


def moves(f: Field) -> bool:
    """Whether a field gets a control: memory limits what is computed and changes no release."""
    return f.name not in ("budget", *TAKEN) and f.metadata.get("unit") != "bytes"


def built(mechanism: Any, values: Values) -> Any:
    """The mechanism with its fields as they are set."""
    told = {}
    for f in fields(mechanism):
        x = new = getattr(mechanism, f.name)
        if hasattr(x, "budget"):
            new = built(x, values)
        elif f.name == "budget":
            new = DP(values["epsilon"], values.get("delta", x.delta))
        elif f.name in values and moves(f):
            new = values[f.name] if values.get(f"set_{f.name}", True) else None
        if new != x:  # 0 stays 0 where a slider says 0.0
            told[f.name] = new
    return replace(mechanism, **told)


def called(mechanism: Any) -> str:
    """What plots call it."""
    return name_series(pd.DataFrame([mechanism_columns(mechanism)])).series[0]


# ---- what estimates can be asked: (truth, estimate, its name, exact) → rows, or a ValueError

RANGES, WHOLE, SORTED, DIMS = "ranges", "whole", "sorted", "dims"
BOUGHT, OFF = "bought", "off"
ITEMS, TOP, BOXES = "items", "top", "boxes"
LEVELS, PLACES, HELD = "levels", "places", "held"
CHARTS = {  # titles, columns along x, logarithmic axes
    RANGES: ("Error of ranges", "query_size", "xy"),
    WHOLE: (f"The domain in {PARTS} parts", "cell", ""),
    SORTED: ("Counts in ascending order", "position", "y"),
    DIMS: ("Error of ranges over k attributes", "dims", "y"),
    BOUGHT: ("What is released, by its truth", "query", ""),
    OFF: ("How far off that is", "query", ""),
    ITEMS: ("Items, the most popular first", "place", ""),
    TOP: ("Most popular items found", "top", "x"),
    LEVELS: ("Error of nodes", "node_level", "y"),
    PLACES: ("Nodes of a level", "node", ""),
    HELD: ("Nodes released", "node_level", ""),
    BOXES: ("Error of boxes", "query_size", "xy"),
}
COUNTS = {WHOLE, SORTED, BOUGHT, ITEMS, PLACES}  # of one release, not of their mean


def _rows(panel: str, series: str, metric: str, values: Any, at: Any) -> pd.DataFrame:
    told = {"panel": panel, "series": series, "metric": metric, CHARTS[panel][1]: at}
    return pd.DataFrame(told | {"value": np.asarray(values, float)})


def _beside(panel: str, name: str, truth: Any, estimate: Any, at: Any) -> list[pd.DataFrame]:
    """Counts of truth and release."""
    both = ((TRUTH, truth), (name, estimate))
    return [_rows(panel, series, "Count", counts, at) for series, counts in both]


def _errors(panel: str, name: str, truth, estimate, asked: dict[int, Any]) -> pd.DataFrame:
    """Of those workloads that it answers."""
    found = {}
    for at, workload in asked.items():
        with suppress(ValueError):
            found[at] = MeanAbsoluteError(workload)(truth, estimate)
    return _rows(panel, name, "MeanAbsoluteError", [*found.values()], [*found])


def _of_ranges(truth: Any, estimate: Any, name: str, exact: bool) -> Iterator[pd.DataFrame]:
    if isinstance(truth.domain, Domain):
        asked = {
            size: RandomRanges(size, QUERIES[exact], ASKED) for size in sizes(truth.domain.size)
        }
        yield _errors(RANGES, name, truth, estimate, asked)


def _along(truth: Any, estimate: Any, name: str, exact: bool) -> Iterator[pd.DataFrame]:
    if not isinstance(truth, SparseTable):
        return
    panel, m = WHOLE, truth.domain.size
    edges = np.linspace(0, m, min(PARTS, m) + 1).astype(np.int64)
    lo, hi = edges[:-1], edges[1:]
    if truth.domain.attributes == ("rank",):
        panel, lo = SORTED, np.unique(np.linspace(0, m - 1, SHOWN).astype(np.int64))
        hi = lo + 1
    counts = (x.answer(Ranges(lo, hi)) for x in (truth, estimate))
    yield from _beside(panel, name, *counts, lo)


def _of_attributes(truth: Any, estimate: Any, name: str, exact: bool) -> Iterator[pd.DataFrame]:
    if isinstance(truth, SparseTable) and (dims := len(truth.domain.shape)) > 1:
        most = min(dims, ATTRIBUTES)
        asked = {
            k: RandomMarginalRanges(QUERIES[exact], k, seed=ASKED) for k in range(1, most + 1)
        }
        yield _errors(DIMS, name, truth, estimate, asked)


def _bought(truth: Any, estimate: Any, name: str, exact: bool) -> Iterator[pd.DataFrame]:
    workload = getattr(estimate, "workload", None)
    if hasattr(estimate, "lo"):
        workload = Boxes(estimate.lo, estimate.hi)
    if workload is not None:
        exactly = truth.answer(workload)
        rank = np.unique(np.linspace(0, len(exactly) - 1, SHOWN).astype(np.int64))
        which = np.argsort(exactly, kind="stable")[rank]
        counts, answers = exactly[which], estimate.values[which]
        yield from _beside(BOUGHT, name, counts, answers, rank + 1)
        yield _rows(OFF, name, "MeanSignedError", answers - counts, rank + 1)


def _of_items(truth: Any, estimate: Any, name: str, exact: bool) -> Iterator[pd.DataFrame]:
    if not (isinstance(truth, Interactions) and hasattr(estimate, "items")):
        return
    counts, n = truth.item_counts(), truth.domain.shape[0]
    places = np.unique(np.geomspace(1, n, SHOWN).astype(np.int64))
    which = np.argsort(-counts, kind="stable")[places - 1]
    yield from _beside(ITEMS, name, counts[which], estimate.items.values[which], places)
    tops = np.unique(np.geomspace(1, n, 12).astype(np.int64))
    found = [TopPrecision(int(k))(truth, estimate) for k in tops]
    yield _rows(TOP, name, "TopPrecision", found, tops)


def _of_nodes(truth: Any, estimate: Any, name: str, exact: bool) -> Iterator[pd.DataFrame]:
    if not isinstance(truth, Records):
        return
    many = np.cumprod([1.0, *truth.hierarchy.digits.radices])
    asked = {level: Level(level) for level in np.flatnonzero(many <= NODES).tolist()}
    yield _errors(LEVELS, name, truth, estimate, asked)
    shown = Level(int(np.flatnonzero(many <= SHOWN)[-1]))
    counts = [x.answer(shown) for x in (truth, estimate)]
    yield from _beside(PLACES, name, *counts, np.arange(len(counts[0])))
    if hasattr(estimate, "levels"):
        held = np.bincount(estimate.levels)
        yield _rows(HELD, name, "Nodes", held, np.arange(len(held)))


def _of_boxes(truth: Any, estimate: Any, name: str, exact: bool) -> Iterator[pd.DataFrame]:
    if isinstance(truth, Records) and hasattr(estimate, "lo"):  # which answers nothing else
        full = truth.hierarchy.shape
        shapes = [tuple(max(1, n >> k) for n in full) for k in range(1, HALVED + 1)]
        asked = {prod(shape): RandomBoxes(shape, QUERIES[exact], ASKED) for shape in shapes}
        yield _errors(BOXES, name, truth, estimate, asked)


VIEWS: tuple[Callable[..., Iterator[pd.DataFrame]], ...] = (
    _of_items,
    _of_nodes,
    _of_boxes,
    _bought,
    _of_ranges,
    _along,
    _of_attributes,
)
