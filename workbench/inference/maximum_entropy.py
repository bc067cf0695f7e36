"""Maximum entropy: the model of the tuples nearest to a prior that noisy answers allow.

Minimises KL(p ‖ p0) + Σ_i β_i |π_i − p[f_i]|, where π_i = answer/total, β_i = α·total/b_i, and b_i is
the scale of the noise: α trades entropy for likelihood. Its dual is concave: the largest
w·π − ln p0[exp(w·f)] with |w_i| <= β_i; then p ∝ p0 exp(w·f). Its gradient is π − p[f].
Source     Chen, Zhou & Bhowmick, EDBT 2012, section 4. The covariance lacks its sign in their Equation
           39. Consistency of noisy tables: Qardaji, Yang & Li, SIGMOD 2014, section 4.4.
Differs    Few cells: the dual exactly, by L-BFGS-B. Many: thousands of chains in place of one, whole
           conditionals averaged, steps divided by each query's variance, iterates averaged. Complete
           noisy tables are first made to agree with the total and each other: otherwise weights drift
           to the box along directions in which p does not change. `MaximumEntropyAsPrinted` is theirs.
Cost       a step is a sweep of all chains: some µs a chain, whatever the domain's size.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any, ClassVar

import numpy as np
import scipy.optimize
from jaxtyping import Float, Int

from workbench.compiled import njit
from workbench.domain import Domain
from workbench.estimates import Model, NoisyAnswers
from workbench.estimates.gibbs import Chains
from workbench.estimates.model import cell_probabilities
from workbench.inference.kernel_pca import check_alpha, normalised_prior, prior_vectors
from workbench.value import parameter, sealed, value
from workbench.workload import Products, TableQueries, Together

_WIDEST = 1000.0  # nats: no box is wider, as e^−1000 is no probability that a float holds
_LAID_OUT = 2**26  # entries of queries that are no single cells: 512 MiB
_STAGE, _AIMED, _SHOWN = 50, 10, 0.5  # steps of the first stage; between aims; seconds to a bar


def _weight() -> Any:
    return parameter(check=check_alpha, doc="weight of the likelihood against the entropy")


def _total() -> Any:
    return parameter(
        None, 0, strict=True, unit="tuples", doc="public, or bought; never counted"
    )


def _prior() -> Any:
    return parameter(
        None, check=lambda x: None, doc="weights of codes, a vector for each attribute"
    )


@value
class MaximumEntropy:
    """Fit the maximum-entropy model to noisy answers; public in, public out, so it costs nothing.

    `prior` is a vector of weights for each attribute (uniform if not given). Up to `limit` cells of the
    attributes that are asked about, the fit is exact. Beyond, `chains` draw tuples, in stages, each
    of twice as many steps as the one before and half as long ones; weights are averaged over a stage's
    second half. It ends when the estimated duality gap is `tolerance` times
    what it was at the prior, or after `steps`.
    """

    alpha: float = _weight()
    total: float = _total()
    prior: tuple | None = _prior()
    limit: int = parameter(2**16, 0, 2**24, integer=True, unit="cells", doc="exact up to here")
    chains: int = parameter(2048, 64, 2**22, integer=True, unit="chains")
    steps: int = parameter(750, 1, integer=True, unit="steps")
    tolerance: float = parameter(0.02, 0, 1, doc="of the duality gap, relative to the prior's")
    consistent: bool = parameter(True, choices=(False, True), doc="make complete tables agree")
    seed: int = parameter(0, 0, integer=True)
    cite: ClassVar[str] = "chen2012"

    def __post_init__(self):
        object.__setattr__(self, "prior", normalised_prior(self.prior))

    def __call__(self, history: NoisyAnswers | Iterable[NoisyAnswers]) -> Model:
        """The model that the history allows; its answers add up to `total`.

        >>> from workbench import Domain, Products
        >>> domain = Domain(("age", "sex"), (3, 2))
        >>> asked = Products.of(domain, [{"age": (0, 1)}, {"sex": {1}}])
        >>> told = NoisyAnswers(domain, asked, [60.0, 25.0], 2.0)
        >>> MaximumEntropy(1.0, total=100)(told).answer(asked).round(3)
        array([60., 25.])
        """
        problem = Problem.of(history, self.total, self.alpha, self.prior, self.consistent)
        cells = prod(problem.domain.shape[k] for k in problem.touched)
        return self._exact(problem) if cells <= self.limit else self._drawn(problem)

    def _exact(self, problem: Problem) -> Model:
        """The optimum of the dual over all cells."""
        shape, sets = problem.domain.shape, problem.sets

        def down(w):
            potentials = problem.potentials(w)
            p, log = cell_probabilities(shape, problem.prior, sets, potentials)
            residual = problem.pi - problem.means(_margins(p, problem.touched, sets))
            return log - w @ problem.pi, -residual

        found = scipy.optimize.minimize(
            down,
            problem.begin(),
            jac=True,
            method="L-BFGS-B",
            bounds=np.stack([-problem.box, problem.box], axis=1),
            options=dict(maxiter=20_000, maxfun=40_000, maxcor=30, ftol=1e-15, gtol=1e-10),
        )
        w = np.clip(found.x, -problem.box, problem.box)
        potentials = problem.potentials(w)
        p, _ = cell_probabilities(shape, problem.prior, sets, potentials)
        margins = _margins(p, problem.touched, sets)
        residual = problem.pi - problem.means(margins)
        return problem.model(potentials, margins, True, problem.gap(w, residual))

    def _drawn(self, problem: Problem) -> Model:
        """Averaged stochastic ascent, until the gap is small or the steps are done.

        Chains take turns in drawing attributes and in jumps to other tuples, as modes may be such that
        no draw of a single attribute connects them.
        """
        rng = np.random.default_rng(self.seed)
        shape = problem.domain.shape
        chains = Chains(shape, problem.prior, problem.sets)
        states = chains.begin(self.chains, rng)
        w, done, length = np.zeros(len(problem.pi)), 0, _STAGE
        first = problem.gap(w, problem.pi - problem.means(problem.flat()))
        chains.set_potentials(problem.potentials(w))
        chains.set_proposal(problem.flat())
        with _bar(self.steps) as bar:
            while True:
                length = min(length, self.steps - done)
                step = min(1.0, 1.6 * _STAGE / length / problem.steepness(states, rng))
                mean = np.zeros_like(w)
                for i in range(length):
                    sums = chains.sums()
                    chains.jump(states, rng)
                    chains.sweep(states, rng, sums)
                    margins = chains.margins(sums)
                    w = problem.ascend(w, margins, step)
                    mean += w if 2 * i >= length or length == 1 else 0
                    chains.set_potentials(problem.potentials(w))
                    if i % _AIMED == _AIMED - 1:
                        chains.set_proposal(margins)
                    bar.update()
                done, length = done + length, 2 * length
                w = mean / max(1, length // 2 - (length // 2 + 1) // 2)  # the second half of it
                w = np.where(np.isnan(problem.known), w, problem.known)
                potentials = problem.potentials(w)
                chains.set_potentials(potentials)
                chains.set_proposal(margins)
                margins = _settled(chains, states, rng, max(8, length // 8))
                gap = problem.gap(w, problem.pi - problem.means(margins))
                bar.set_postfix_str(f"gap {gap:.3g} nats")
                if gap <= self.tolerance * first or done >= self.steps:
                    break
        return problem.model(potentials, margins, False, gap)


@value
class MaximumEntropyAsPrinted:
    """The paper's own fit: one chain, Metropolis steps, steps of `gamma`, no averaging. As printed.

    A weight moves up by at most gamma·steps·π: that of a cell of one tuple in a thousand by 0.1, far
    from converged, which acts as an unreported regulariser. Of cells of marginals only.
    """

    alpha: float = _weight()
    total: float = _total()
    prior: tuple | None = _prior()
    gamma: float = parameter(1e-4, 0, strict=True, doc="the length of a step")
    steps: int = parameter(10**6, 1, integer=True, unit="steps")
    seed: int = parameter(0, 0, integer=True)
    cite: ClassVar[str] = "chen2012"

    def __post_init__(self):
        object.__setattr__(self, "prior", normalised_prior(self.prior))

    def __call__(self, history: NoisyAnswers | Iterable[NoisyAnswers]) -> Model:
        """The model at the last weights."""
        problem = Problem.of(history, self.total, self.alpha, self.prior, False)
        if any(part.cells is None for part in problem.parts):
            raise ValueError("as printed, the fit is of cells of marginals: need Marginals(k)")
        shape, rng = problem.domain.shape, np.random.default_rng(self.seed)
        chains = Chains(shape, problem.prior, problem.sets)
        touching: list[list[int]] = [[] for _ in shape]
        starts = np.cumsum([0, *(prod(shape[k] for k in axes) for axes in problem.sets)])
        strides = np.zeros((len(problem.sets), len(shape)), np.int64)
        for i, axes in enumerate(problem.sets):
            for j, k in enumerate(axes):
                strides[i, k] = prod(shape[a] for a in axes[j + 1 :])
                touching[k].append(i)
        first = np.cumsum([0, *map(len, touching)])
        cell = np.concatenate([s + part.cells for s, part in _by_set(problem, starts)])
        query = np.concatenate([part.query for _, part in _by_set(problem, starts)])
        if len(np.unique(cell)) < len(cell):
            raise ValueError("as printed, the fit is of different cells: need each asked once")
        pi, box = np.zeros(starts[-1]), np.zeros(starts[-1])
        pi[cell], box[cell] = problem.pi[query], problem.box[query]
        w = np.zeros(starts[-1])
        _printed(
            w, pi, box, chains.begin(1, rng)[0].astype(np.int64), np.array(shape),
            chains.prior, chains.start, np.concatenate([np.empty(0, int), *map(np.array, touching)])
            .astype(np.int64), first, starts, strides, self.gamma, self.steps, rng,
        )  # fmt: skip
        potentials = [
            w[a:b].reshape([shape[k] for k in axes])
            for a, b, axes in zip(starts[:-1], starts[1:], problem.sets, strict=True)
        ]
        chains.set_potentials(potentials)
        chains.set_proposal(problem.flat())
        states = chains.begin(4096, rng)
        margins = _settled(chains, states, rng, 40)
        return problem.model(potentials, margins, False, float("nan"))


@dataclass(frozen=True, eq=False)
class _Part:
    """Terms on one set of axes: single cells of its table, or a row of values on all of them."""

    at: int  # which set
    query: Int[np.ndarray, " terms"]
    cells: Int[np.ndarray, " terms"] | None
    rows: Float[np.ndarray, "terms cells"] | None

    @cached_property
    def squares(self) -> Float[np.ndarray, "terms cells"]:
        """The rows' squares, which are themselves if all is 0 or 1."""
        same = ((self.rows == 0) | (self.rows == 1)).all()
        return self.rows if same else self.rows**2


@dataclass(frozen=True, eq=False)
class Problem:
    """Shares π, boxes β, and queries by the set of axes that their terms are about."""

    domain: Domain
    total: float
    prior: tuple[Float[np.ndarray, " values"], ...]
    sets: tuple[tuple[int, ...], ...]
    parts: tuple[_Part, ...]
    offset: Float[np.ndarray, " queries"]  # what queries are worth at every tuple
    pi: Float[np.ndarray, " queries"]
    box: Float[np.ndarray, " queries"]
    peak: Float[np.ndarray, " queries"]
    known: Float[
        np.ndarray, " queries"
    ]  # weights that are optimal whatever the others are, or NaN

    @classmethod
    def of(cls, history, total: float | None, alpha: float, prior, consistent: bool) -> Problem:
        """From noisy answers; a ValueError names what does not fit."""
        answers = NoisyAnswers.history(history)
        domain = answers.domain
        if total is None:
            raise ValueError(
                "total = None is not allowed: a model of tuples needs their number, public or bought"
            )
        prior = prior_vectors(prior, domain)
        m = len(answers)
        offset = np.zeros(m)
        found = list(_parts(answers.workload, domain, offset))
        sets = tuple(sorted({axes for axes, *_ in found}))
        parts = tuple(_Part(sets.index(axes), q, c, r) for axes, q, c, r in found)
        pi = answers.values / total
        if consistent:
            pi = reconciled_shares(domain, sets, parts, pi, answers.variances / total**2)
        box = np.minimum(alpha * total / answers.scales, _WIDEST)
        peak, low = np.abs(offset), offset.copy()
        for part in parts:
            ends = (0.0, 1.0) if part.rows is None else (part.rows.min(1), part.rows.max(1))
            np.add.at(low, part.query, ends[0])
            np.add.at(peak, part.query, np.maximum(np.abs(ends[0]), np.abs(ends[1])))
        # where π is below all that f can be, the gradient is never positive
        known = np.where(pi <= low, -box, np.nan)
        return cls(domain, float(total), prior, sets, parts, offset, pi, box, peak, known)

    @property
    def touched(self) -> tuple[int, ...]:
        """The axes that any query is about."""
        return tuple(sorted({k for axes in self.sets for k in axes}))

    @cached_property
    def binary(self) -> bool:
        """Whether each query is a single term of 0 and 1, so that p[f²] = p[f]."""
        terms = np.zeros(len(self.pi), np.int64)
        for part in self.parts:
            np.add.at(terms, part.query, 1)
        same = all(part.cells is not None or part.squares is part.rows for part in self.parts)
        return bool(same and not self.offset.any() and terms.max(initial=0) <= 1)

    def begin(self) -> Float[np.ndarray, " queries"]:
        """Weights 0, but those that are known."""
        return np.where(np.isnan(self.known), 0.0, self.known)

    def potentials(self, w: Float[np.ndarray, " queries"]) -> list[Float[np.ndarray, "..."]]:
        """Σ w_i f_i, a table for each set."""
        shapes = [[self.domain.shape[k] for k in axes] for axes in self.sets]
        out = [np.zeros(prod(shape)) for shape in shapes]
        for part in self.parts:
            own = w[part.query]
            if part.cells is None:
                out[part.at] += own @ part.rows
            else:
                out[part.at] += np.bincount(part.cells, own, len(out[part.at]))
        return [table.reshape(shape) for table, shape in zip(out, shapes, strict=True)]

    def means(self, margins, power: int = 1) -> Float[np.ndarray, " queries"]:
        """p[f_i] from the expected tables; with `power` 2 the sums over terms of p[f²]."""
        out = self.offset.copy() if power == 1 else self.offset**2
        for part in self.parts:
            p = margins[part.at].ravel()
            rows = part.rows if power == 1 or part.cells is not None else part.squares
            own = p[part.cells] if part.cells is not None else rows @ p
            np.add.at(out, part.query, own)
        return out

    def flat(self) -> list[Float[np.ndarray, "..."]]:
        """The tables that the prior expects."""
        from workbench.estimates.model import outer_product

        return [outer_product([self.prior[k] for k in axes]) for axes in self.sets]

    def ascend(self, w, margins, step: float) -> Float[np.ndarray, " queries"]:
        """A step up the gradient, each weight's divided by its query's variance, within the box.

        A step of one nat at most: where the variance is small beside the residual, it says nothing yet.
        """
        means = self.means(margins)
        squares = means if self.binary else self.means(margins, 2)
        residual = self.pi - means
        spread = np.maximum(squares - means**2, np.abs(residual) * self.peak)
        return np.clip(w + step * residual / np.maximum(spread, 1e-300), -self.box, self.box)

    def gap(self, w, residual) -> float:
        """Σ (β_i |r_i| − w_i r_i) of r = π − p[f]: how far the dual at w is below the primal at p.

        Noise in r makes it larger on average and never smaller: an estimate from above.
        """
        return float((self.box * np.abs(residual) - w * residual).sum())

    def steepness(self, states, rng) -> float:
        """The largest eigenvalue of the queries' correlations under the chains' tuples, by powers."""
        places = [
            np.ravel_multi_index(states[:, list(axes)].T, [self.domain.shape[k] for k in axes])
            for axes in self.sets
        ]

        def margins(weights=None):
            shapes = [[self.domain.shape[k] for k in axes] for axes in self.sets]
            return [
                (np.bincount(at, weights, prod(s)) / len(states)).reshape(s)
                for at, s in zip(places, shapes, strict=True)
            ]

        flat = margins()
        deviation = np.sqrt(np.maximum(self.means(flat, 2) - self.means(flat) ** 2, 0))
        scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
        v, found = rng.normal(size=len(scale)), 1.0
        for _ in range(12):
            v /= np.linalg.norm(v) or 1
            tables = self.potentials(v * scale)
            u = sum((t.ravel()[at] for t, at in zip(tables, places, strict=True)), 0.0)
            u = u - np.mean(u)
            v = (self.means(margins(u)) - self.offset) * scale
            found = float(np.linalg.norm(v))
        return max(1.0, found)

    def model(self, potentials, margins, explicit: bool, gap: float) -> Model:
        """The model of these potentials."""
        potentials, margins = (tuple(map(sealed, t)) for t in (potentials, margins))
        told = self.domain, self.total, self.prior, self.sets, potentials, margins
        return Model(*told, explicit, gap)


def reconciled_shares(domain, sets, parts, pi, variances) -> Float[np.ndarray, " queries"]:
    """Shares in which all complete tables sum to 1, and agree wherever they share attributes.

    From few shared attributes to many, each margin becomes the mean of all tables' say, weighted
    inversely to its variance, and what a table lacks is spread evenly over its cells: which leaves the
    margins on fewer attributes as they are. An unweighted part of least squares; negative cells stay.
    """
    tables = []
    for part in parts:
        axes = sets[part.at]
        shape = [domain.shape[k] for k in axes]
        if part.cells is None or len(part.cells) != prod(shape):
            continue
        if (np.bincount(part.cells, minlength=prod(shape)) == 1).all():
            query = np.empty(len(part.cells), np.int64)
            query[part.cells] = part.query
            tables.append((axes, query, pi[query].reshape(shape), variances[query].mean()))
    shared = {axes for axes, *_ in tables}
    while new := {tuple(sorted(set(a) & set(b))) for a, b in combinations(shared, 2)} - shared:
        shared |= new
    for common in sorted(shared | {()}, key=len):
        above = [t for t in tables if set(common) <= set(t[0])]
        said, weights = [], []
        for axes, _, table, variance in above:
            rest = tuple(i for i, k in enumerate(axes) if k not in common)
            said.append(table.sum(axis=rest))
            weights.append(1 / (variance * prod(table.shape[i] for i in rest)))
        target = np.average(said, axis=0, weights=weights) if common and said else 1.0
        for (axes, _, table, _), own in zip(above, said, strict=True):
            wide = [n if k in common else 1 for n, k in zip(table.shape, axes, strict=True)]
            each = table.size / max(1, np.size(own))
            table += np.reshape((target - own) / each, wide)
    out = pi.copy()
    for _, query, table, _ in tables:
        out[query] = table.ravel()
    return out


def _parts(workload, domain: Domain, offset, start: int = 0) -> Iterator[tuple]:
    """(axes, queries, cells or None, rows or None) of each set of axes; constants go to `offset`."""
    if isinstance(workload, Together):
        for part in workload.parts:
            yield from _parts(part, domain, offset, start)
            start += len(part)
        return
    if isinstance(workload, TableQueries):
        for names, tables, own in workload.numbered_groups():
            rows = tables.reshape(len(tables), -1)
            if not names:
                offset[own + start] += rows[:, 0]
                continue
            _refuse_large(rows.size)
            yield tuple(domain.axis(a) for a in names), own + start, None, rows
        return
    assert isinstance(workload, Products)
    alone = (np.diff(workload.offsets) == 1)[workload.query] & (workload.times == 1)
    single = [(f == 0).sum(1) + (f == 1).sum(1) == f.shape[1] for f in workload.factors]
    single = [s & (f.sum(1) == 1) for s, f in zip(single, workload.factors, strict=True)]
    for axes, terms in workload.sets:
        if not axes:
            np.add.at(offset, workload.query[terms] + start, workload.times[terms])
            continue
        cell = alone[terms].copy()
        for k in axes:
            cell &= single[k][workload.which[terms, k]]
        if cell.any():
            own = terms[cell]
            codes = [workload.factors[k].argmax(1)[workload.which[own, k]] for k in axes]
            places = np.ravel_multi_index(codes, [domain.shape[k] for k in axes])
            yield axes, workload.query[own] + start, places, None
        if not cell.all():
            own = terms[~cell]
            _refuse_large(len(own) * prod(domain.shape[k] for k in axes))
            rows = np.concatenate([v for _, v in workload.dense_terms(own, axes)])
            yield axes, workload.query[own] + start, None, rows


def _refuse_large(entries: int) -> None:
    if entries > _LAID_OUT:
        raise ValueError(
            f"queries with {entries} values on the cells of their attributes are too large: need at "
            f"most {_LAID_OUT} a set of attributes"
        )


def _margins(p, touched: Sequence[int], sets) -> list[Float[np.ndarray, "..."]]:
    return [p.sum(axis=tuple(i for i, k in enumerate(touched) if k not in s)) for s in sets]


def _settled(chains: Chains, states, rng, sweeps: int) -> list[np.ndarray]:
    """What the chains expect at weights that stay."""
    sums = chains.sums()
    for i in range(-(sweeps // 2), sweeps):
        chains.jump(states, rng)
        chains.sweep(states, rng, sums if i >= 0 else None)
    return chains.margins(sums)


def _by_set(problem: Problem, starts) -> Iterator[tuple[int, _Part]]:
    return ((int(starts[part.at]), part) for part in problem.parts)


def _bar(steps: int):
    """A progress bar for people who watch."""
    from tqdm.auto import tqdm

    return tqdm(total=steps, desc="maximum entropy", unit="step", disable=None, delay=_SHOWN)


@njit(cache=True, nogil=True)
def _printed(
    w, pi, box, t, shape, prior, begin, touching, first, starts, strides, gamma, steps, rng
):
    """Section 4.2 as printed; weights drift up between two looks, and a look brings them up to date."""
    last = np.zeros(w.size, np.int64)
    for step in range(steps):
        for k in range(shape.size):
            o = rng.integers(0, shape[k])
            if o == t[k]:
                continue
            if prior[begin[k] + o] == 0:
                continue
            change = np.log(prior[begin[k] + o] / prior[begin[k] + t[k]])
            for e in range(first[k], first[k + 1]):
                i = touching[e]
                place = starts[i]
                for j in range(shape.size):
                    place += strides[i, j] * t[j]
                other = place + strides[i, k] * (o - t[k])
                for at in (place, other):
                    w[at] = min(
                        max(w[at] + gamma * pi[at] * (step - last[at]), -box[at]), box[at]
                    )
                    last[at] = step
                change += w[other] - w[place]
            if change >= 0 or rng.random() < np.exp(change):
                t[k] = o
        for i in range(starts.size - 1):
            place = starts[i]
            for j in range(shape.size):
                place += strides[i, j] * t[j]
            moved = w[place] + gamma * pi[place] * (step - last[place])
            moved = min(max(moved, -box[place]), box[place])
            w[place] = min(max(moved + gamma * (pi[place] - 1), -box[place]), box[place])
            last[place] = step + 1
    for at in range(w.size):
        w[at] = min(max(w[at] + gamma * pi[at] * (steps - last[at]), -box[at]), box[at])
