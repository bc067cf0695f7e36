"""Advice: how far off each summary would be, from public numbers alone, before any budget is spent.

It never sees a table: `errors` computes what to expect from a domain, a budget, a bound and, if one is
declared, a model of the counts; the mechanisms' own formulas choose θ and τ.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, nan
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench import noise
from workbench.advice.errors import (
    NEGLIGIBLE,
    CountModel,
    NodeCounts,
    NodeCover,
    QueryError,
    ReleaseRule,
    best_theta,
    expected_released,
    haar_query_error,
    mean_log_error,
    node_cover,
    query_errors,
    sketch_query_error,
    with_priority_threshold,
)
from workbench.domain import Domain
from workbench.estimates import hashes
from workbench.mechanism import noise_blocks
from workbench.mechanisms import (
    CountSketch,
    GeometricHistogram,
    HighPassFilter,
    PrioritySampling,
    StabilityHistogram,
    ThresholdSampling,
)
from workbench.mechanisms.geometric_histogram import BYTES_PER_CELL
from workbench.privacy import DP
from workbench.table import Bound
from workbench.transform import Dyadic, Haar

if TYPE_CHECKING:
    import pandas as pd

_SPARE = 2  # a summary does not fit if it releases more than so many times `size`


@dataclass(frozen=True)
class Option:
    """One summary: its thresholds, what it is expected to release, and how far off queries are.

    `kept` is the fraction of non-empty cells in it (NaN of nodes, and without a model). One that does
    not fit is not recommended.
    """

    summary: str
    mechanism: Any
    theta: float
    tau: float
    cells: float
    kept: float
    query_errors: tuple[QueryError, ...]
    fits: bool

    @property
    def transform(self) -> str:
        """The name of its transform; nothing where there is none."""
        used = getattr(self.mechanism, "transform", None)
        return type(used).__name__ if used else ""

    def __str__(self) -> str:
        at = [f"{k} = {_say(x)}" for k, x in (("θ", self.theta), ("τ", self.tau)) if x]
        of = f" of {self.transform} nodes" * bool(self.transform)
        name = self.summary.replace("filter-priority", "filter-priority sampling")
        a = "a " * ("sampling" not in name)
        return f"{a}{name}{of}" + f" at {', '.join(at)}" * bool(at)


def _options(domain: Domain, budget: DP, size: int, bound: Bound, model, queries, quick: bool):
    """Every summary that there is advice about; and what is to be said of those left out."""
    options, notes, pure, m = [], [], DP(budget.epsilon), domain.size

    def add(summary, mechanism, law, cells, off):
        kept = nan
        if model and model.density and not getattr(mechanism, "transform", None):
            counts, weights = model.counts()
            kept = float(weights @ law.moments(counts).chance)
        fits = cells <= min(_SPARE * size, noise.MAX_RELEASED_CELLS)
        if isinstance(mechanism, CountSketch):  # an answer visits each cell
            fits &= max(queries) <= hashes.MAX_LOOKUPS // 16
        elif isinstance(mechanism, GeometricHistogram):
            fits &= cells * BYTES_PER_CELL <= mechanism.memory
        elif isinstance(mechanism, PrioritySampling):  # τ_s grows with the table
            off = tuple(x._replace(worst=inf) for x in off)
        options.append(Option(summary, mechanism, law.theta, law.tau, cells, kept, off, fits))

    for transform in (None,) if quick else (None, Dyadic()):
        full, more = GeometricHistogram(pure, transform=transform), dict(transform=transform)
        try:
            (block,) = noise_blocks(full, domain, bound.l1)
            law = ReleaseRule(float(noise.decay(block.l1, block.epsilon)))
        except ValueError as e:
            notes.append(f"Nothing is said of dyadic sums: {e}.")
            continue
        nodes, covers = _reached(domain, transform, model, queries)

        def take(summary, mechanism, law, cells=None, nodes=nodes, covers=covers):
            cells = expected_released(law, nodes) if cells is None else cells
            add(summary, mechanism, law, cells, query_errors(law, nodes, covers))

        take("full table", full, law, block.size)
        if transform:
            haar = GeometricHistogram(pure, transform=Haar())
            add(
                "full table",
                haar,
                law,
                m,
                tuple(haar_query_error(law, domain, q) for q in queries),
            )
        made = HighPassFilter(pure, size=size, **more)
        take("filter", made, replace(law, theta=float(made.cut(domain, bound.l1))))
        made = ThresholdSampling(pure, size=size, **more)
        tau = max(made.threshold(domain, bound.l1), 1.0)
        take("threshold sampling", made, replace(law, tau=tau))
        made = PrioritySampling(pure, size=size, **more)
        take("priority sampling", made, with_priority_threshold(law, nodes, size))
        if model and not quick:
            most = HighPassFilter(pure, size=1, **more).cut(domain, bound.l1)
            theta = best_theta(law, nodes, covers, size, most)
            made = PrioritySampling(pure, size=size, theta=theta, **more)
            sampled = with_priority_threshold(replace(law, theta=float(theta)), nodes, size)
            take("filter-priority", made, sampled)
        if not transform:
            off = tuple(sketch_query_error(q, law, size, m, model) for q in queries)
            add("count sketch", CountSketch(pure, width=size), law, size, off)
            if budget.delta:
                made = StabilityHistogram(budget)
                cut = float(made.threshold(bound))
                take("stability histogram", made, replace(law, theta=cut, sides=1, silent=True))
    if not all(o.fits for o in options):
        notes.append(
            f"* not recommended: more than {_SPARE} times the size asked for, or than fits in memory, "
            "or than answers can visit."
        )
    return tuple(options), tuple(notes)


def predict_errors(
    mechanism: Any,
    domain: Domain,
    bound: Bound,
    model: CountModel,
    queries: Sequence[int],
) -> Option:
    """What to expect of one mechanism at its own parameters, on a table that `model` describes.

    A ValueError for mechanisms and transforms of which no formula is known here.
    """
    kind, transform = type(mechanism), getattr(mechanism, "transform", None)
    known = (CountSketch, GeometricHistogram, HighPassFilter, PrioritySampling)
    known += (StabilityHistogram, ThresholdSampling)
    other = getattr(mechanism, "consistent", False) or getattr(mechanism, "depth", 1) > 1
    if kind not in known or transform not in (None, Dyadic()) or other:
        raise ValueError(f"nothing is known beforehand of {mechanism!r}")
    queries, l1, m = tuple(queries), bound.l1, domain.size
    block = noise.Block(m, l1, mechanism.budget.epsilon)
    if kind not in (CountSketch, StabilityHistogram):
        (block,) = noise_blocks(mechanism, domain, l1)
    law = ReleaseRule(float(noise.decay(block.l1, block.epsilon)))
    nodes, covers = _reached(domain, transform, model, queries)
    if kind is CountSketch:
        off = tuple(sketch_query_error(q, law, mechanism.width, m, model) for q in queries)
        return Option("", mechanism, 0, 0, mechanism.width, nan, off, True)
    if kind is HighPassFilter:
        cut = float(mechanism.cut(domain, l1))
        law = replace(law, theta=cut, sides=mechanism.sides)
    elif kind is ThresholdSampling:
        tau = max(mechanism.threshold(domain, l1), 1.0)
        law = replace(law, theta=float(mechanism.theta), tau=tau, sides=mechanism.sides)
    elif kind is PrioritySampling:
        law = replace(law, theta=float(mechanism.theta), sides=mechanism.sides)
        law = with_priority_threshold(law, nodes, mechanism.size)
    elif kind is StabilityHistogram:
        cut = float(mechanism.threshold(bound))
        law = replace(law, theta=cut, sides=1, silent=True)
    cells = float(block.size) if kind is GeometricHistogram else expected_released(law, nodes)
    off = query_errors(law, nodes, covers)
    return Option("", mechanism, law.theta, law.tau, cells, nan, off, True)


def _reached(
    domain: Domain, transform: Any, model, queries
) -> tuple[NodeCounts, dict[int, NodeCover]]:
    """What the nodes of a domain hold, and how many of them each size of query needs."""
    if transform is None:
        covers = {q: NodeCover(np.full((1, 1), float(q)), np.ones(1)) for q in queries}
        return NodeCounts.of(model, [(domain.size, 1)]), covers
    tree = transform.on(domain)
    (axis,), covers = tree.axes, {q: node_cover(tree, q) for q in queries}
    levels = [(n, min(1 << axis.height - d, domain.size)) for d, n in enumerate(axis.nodes)]
    return NodeCounts.of(model, levels), covers


@dataclass(frozen=True, repr=False)
class Advice:
    """What to expect of each summary, and which to take; `queries` are sizes of ranges, in cells."""

    domain: Domain
    budget: DP
    size: int
    bound: Bound
    model: CountModel | None
    queries: tuple[int, ...]
    options: tuple[Option, ...]
    notes: tuple[str, ...]

    @cached_property
    def ranked(self) -> tuple[Option, ...]:
        """Those that fit, by the geometric mean of their errors at the queries.

        The error is the expected one or, without a model, the worst that there can be.
        """
        fit = [o for o in self.options if o.fits]
        scores = [
            round(mean_log_error([self._of(off) for off in o.query_errors]), 3) for o in fit
        ]
        return tuple(fit[i] for i in np.lexsort([[o.cells for o in fit], scores]))

    def _of(self, off: QueryError) -> float:
        """The error that decides."""
        return off.error if self.model else off.worst

    @property
    def mechanism(self) -> Any:
        """The best of those that fit, ready to be called on a table."""
        return self.ranked[0].mechanism

    @property
    def reason(self) -> str:
        """Why that one, in a sentence, at the size of query where it is furthest ahead of the next."""
        best, *others = self.ranked
        told = f"releases about {_say(best.cells)} {'nodes' if best.transform else 'cells'}"
        if self.model and best.kept == best.kept:
            empty = best.cells - best.kept * self.model.density * self.domain.size
            empty = f"about {_say(empty)}" if empty > 0.5 else "no"
            told = f"keeps {best.kept:.0%} of the non-empty cells and {empty} empty ones"
        other = next((o for o in others if o.summary != best.summary), best)
        errors = np.array([[self._of(off) for off in o.query_errors] for o in (best, other)])
        i = int(np.argmax((errors[1] + NEGLIGIBLE) / (errors[0] + NEGLIGIBLE)))
        cells = f"{self.queries[i]:,} cell{'s' * (self.queries[i] > 1)}"
        told = f"at ε = {self.budget.epsilon:g} {best} {told}; ranges of {cells} are off by "
        told += f"{'about' if self.model else 'up to'} {_say(errors[0, i])} counts"
        told += f", where {other} is off by {_say(errors[1, i])}" * (other is not best)
        return (
            told if self.model else f"no model is declared, so the worst case decides: {told}"
        )

    @property
    def caption(self) -> str:
        """What is asked, and of what."""
        model = "if their cells are empty … at worst (root mean square)"
        if self.model:
            d, mean, spread = (f"{x:g}" for x in vars(self.model).values())
            model = f"if a fraction {d} of the cells hold {mean} ± {spread} counts"
        return (
            f"{self.budget} for a unit of l1 = {self.bound.l1:g}, about {self.size:,} of "
            f"{self.domain.size:,} cells: by how many counts ranges of so many cells are off, {model}"
        )

    def display_table(self) -> pd.DataFrame:
        """A short table in words, the best first, those that are not recommended last."""
        import pandas as pd

        rows, place = [], {id(o): i for i, o in enumerate(self.ranked)}
        for o in sorted(self.options, key=lambda o: place.get(id(o), len(place))):
            name = o.summary + f", {o.transform}" * bool(o.transform) + "*" * (not o.fits)
            limits = [_say(x) if x else "" for x in (o.theta, o.tau)]
            off = [
                _say(x.error) + f" … {_say(x.worst)}" * (not self.model) for x in o.query_errors
            ]
            rows.append([name, *limits, _say(o.cells), *off])
        sizes = [f"{q:,}" if q < 1e6 else _say(q) for q in self.queries]
        return pd.DataFrame(rows, columns=["summary", "θ", "τ", "cells", *sizes])

    def __repr__(self) -> str:
        table = self.display_table().to_string(index=False, max_colwidth=None)
        return "\n".join([self.caption, table, *self.notes, repr(self.mechanism), self.reason])

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        from html import escape

        told = map(escape, (self.caption, *self.notes, repr(self.mechanism), self.reason))
        caption, *rest = (f"<p>{words}</p>" for words in told)
        return "".join([caption, self.display_table().to_html(index=False), *rest])

    def to_frame(self) -> pd.DataFrame:
        """One row a summary and size of query; thresholds and errors in counts."""
        import pandas as pd

        told = ("summary", "transform", "theta", "tau", "cells", "kept", "fits")
        return pd.DataFrame(
            {k: getattr(o, k) for k in told} | off._asdict() | {"mechanism": repr(o.mechanism)}
            for o in self.options
            for off in o.query_errors
        )


def advise(
    domain: Domain,
    epsilon: float,
    size: int,
    *,
    delta: float = 0.0,
    bound: Bound | None = None,
    density: float | None = None,
    mean: float | None = None,
    spread: float | None = None,
    queries: Sequence[int] | None = None,
    quick: bool = False,
) -> Advice:
    """Which summary of about `size` cells to release at ε. No data is read.

    `density`, `mean` and `spread` declare what is believed of the table: the fraction of cells that are
    not empty, and the mean and standard deviation of their counts. They are public, and must not be
    read off private data. `queries` are sizes of ranges; without them those that hold 1, 100 and 10,000
    non-empty cells, or so many cells where no model is declared. With a δ there is also the stability
    histogram. The bound is Bound() unless it is given. `quick` leaves out what takes longest, dyadic
    nodes and the θ of filter-priority sampling.

    >>> advise(Domain(("x",), (10**6,)), 0.1, 10**5, density=0.1, mean=100, spread=20).mechanism
    HighPassFilter(budget=DP(epsilon=0.1), size=100000)
    """
    budget, bound = DP(epsilon, delta), Bound() if bound is None else bound
    for name, x, kind in (("domain", domain, Domain), ("bound", bound, Bound)):
        if not isinstance(x, kind):
            raise ValueError(f"{name} = {x!r} is not allowed: need a {kind.__name__}")
    noise.decay(bound.l1, epsilon)
    m, most = domain.size, min(domain.size, noise.MAX_RELEASED_CELLS)
    if not _whole(size, most):
        raise ValueError(
            f"size = {size!r} is not allowed: need a whole number from 1 to {most}, the cells there "
            "are or that a summary can hold"
        )
    told = density, mean, spread
    if None in told and told != (None,) * 3:
        raise ValueError(
            f"density, mean, spread = {told!r} is not allowed: need all three, or none of them"
        )
    model = None if density is None else CountModel(*told)
    if queries is None:
        cells = 1 / density if density else 1
        queries = [max(1, round(min(q * cells, m))) for q in (1, 100, 10_000)]
    for q in (queries := list(queries)) or [None]:
        if not _whole(q, m):
            raise ValueError(
                f"queries: {q!r} is not allowed: need sizes of ranges, whole numbers from 1 to {m}"
            )
    queries = tuple(sorted({int(q) for q in queries}))
    options, notes = _options(domain, budget, int(size), bound, model, queries, quick)
    return Advice(domain, budget, int(size), bound, model, queries, options, notes)


def _whole(x: Any, most: int) -> bool:
    """Whether it is a whole number from 1 to `most`."""
    kind = isinstance(x, int | np.integer) and not isinstance(x, bool)
    return kind and 1 <= x <= most


def _say(x: float) -> str:
    """Three digits at most, read at a glance.

    >>> _say(0.123), _say(12.34), _say(123_456), _say(1.5e12), _say(inf)
    ('0.12', '12', '123,000', '1.5e12', '∞')
    """
    if x == inf or x != x:
        return "?" if x != x else "∞"
    if x < 10 or x >= 1e6:
        return f"{x:.2g}".replace("e+", "e").replace("e0", "e")
    return f"{float(f'{x:.3g}'):,.0f}"
