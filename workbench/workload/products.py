"""Linear queries over many attributes: sums of separable terms, and tables on a few attributes.

A query is a function f of a tuple; its answer is Σ f(t) over the tuples of a table. All costs are in
queries, attributes' sizes and non-empty cells, never in the size of the domain.
Source: Chen, Zhou & Bhowmick, EDBT 2012, section 3.2 (Equation 9, Theorem 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Num

from workbench.domain import Domain
from workbench.value import parameter, read_only, sealed, value
from workbench.workload.queries import Boxes, Ranges, Subsets, Workload, _told

_DENSE = 2**22  # cells that are laid out in full at a time: 32 MiB
_PIECES = 2**22  # terms that ranges or subsets may become
_EXACT = 2**53
_EXTREME = 1e100
_WHOLE = 2**27  # largest term of a query whose answers are released as whole numbers


class _Linear:
    """What products and tables have in common."""

    def intervals(self, domain: Domain):
        """Refused: a query over some attributes is scattered over the keys."""
        raise ValueError(
            f"{self!r} makes no ranges of keys: a table answers it, or inference from NoisyAnswers"
        )

    def cells(self, domain: Domain) -> Float[np.ndarray, " queries"]:
        """Σ f over the domain: how many cells a query covers, if it counts each once."""
        from workbench.workload.inner import means

        return means(self.on(domain), domain) * float(domain.size)

    def sensitivity(self, domain: Domain, relation: str = "add-remove-one-unit") -> float:
        """How far one tuple moves all answers together; see `workload.sensitivity.sensitivity`."""
        from workbench.workload.sensitivity import workload_sensitivity

        return workload_sensitivity(self, domain, relation)

    def sums(self, domain, keys, values) -> Float[np.ndarray, " queries"]:
        """Σ f · `values`, in time of keys and queries; exact where all of it is whole."""
        return self.on(domain).sums_of_margins(Margins(domain, keys, values))

    def grid_units(self, domain, keys, counts, grid: float) -> Int[np.ndarray, " queries"]:
        """Σ of round(f/grid)·counts over the keys, in exact arithmetic, cut at ±2⁶².

        Every term of a query is rounded by itself, at each tuple: what a tuple adds is a function of
        the tuple alone. A term may be of 2²⁷ grid steps at most.
        """
        own = self.on(domain)
        if own.max_term > grid * 2**27:
            raise ValueError(
                f"grid = {grid!r} is not allowed: need at least {own.max_term}/2^27"
            )
        most = float(np.abs(counts).sum(dtype=float)) * own.max_query
        if grid == 1 and own.integer_valued and most < _EXACT:
            return own.sums(domain, keys, counts).astype(np.int64)  # exact, and faster
        found = own.grid_units_of_margins(Margins(domain, keys, counts), grid)
        return np.clip(found, -(2**62), 2**62).astype(np.int64)


@dataclass(frozen=True, eq=False, repr=False)
class Products(_Linear):
    """m queries, each a sum of terms c·Π_k g_k(x_k) (Equation 9).

    `factors[k]` holds the different g of attribute k, a row each, the first all ones; `which` says the
    row of each term and attribute, 0 where a term does not use it. Query i has the terms
    offsets[i] … offsets[i+1], with coefficients `times`. `of` makes them from plain words.
    """

    attributes: tuple[str, ...]
    factors: tuple[Float[np.ndarray, "rows values"], ...]
    which: Int[np.ndarray, "terms attributes"]
    times: Float[np.ndarray, " terms"]
    offsets: Int[np.ndarray, " queries+1"]

    def __post_init__(self):
        fix, d = object.__setattr__, len(self.attributes)
        fix(self, "attributes", tuple(self.attributes))
        fix(self, "factors", tuple(read_only(np.asarray(f, float)) for f in self.factors))
        for name, kind in (("which", np.int64), ("times", float), ("offsets", np.int64)):
            fix(self, name, read_only(np.ascontiguousarray(getattr(self, name), kind)))
        terms = len(self.times)
        if len(self.factors) != d or self.which.shape != (terms, d):
            raise ValueError(
                f"Products.which {self.which.shape} and {len(self.factors)} factors do not fit {d} "
                f"attributes and {terms} terms"
            )
        for k, (name, f) in enumerate(zip(self.attributes, self.factors, strict=True)):
            if f.ndim != 2 or not len(f) or (f[0] != 1).any() or not np.isfinite(f).all():
                raise ValueError(
                    f"Products.factors of {name!r} must be finite rows, the first all ones"
                )
            if terms and not 0 <= self.which[:, k].min() <= self.which[:, k].max() < len(f):
                raise ValueError(f"Products.which names a factor of {name!r} that is not there")
        if not np.isfinite(self.times).all():
            raise ValueError("Products.times must be finite")
        ends = self.offsets
        if not len(ends) or ends[0] or ends[-1] != terms or (np.diff(ends) < 0).any():
            raise ValueError(f"Products.offsets must rise from 0 to {terms} terms")
        _refuse_extreme("Products", self._reach, self.times, *self.factors)

    @classmethod
    def of(cls, domain: Domain, queries: Sequence) -> Products:
        """From plain words: a query is a term, or a list of terms that add up.

        A term is {attribute: factor}, or (coefficient, {attribute: factor}); {} is 1 for every tuple. A
        factor is (lo, hi), the codes lo <= x < hi; a set of codes; or a value for each code.

        >>> domain = Domain(("age", "sex"), (100, 2))
        >>> asked = Products.of(domain, [{"age": (0, 18)}, [{}, (-1.0, {"sex": {0}})]])
        >>> asked.sums(domain, np.array([3, 50]), np.array([5, 7]))
        array([5., 5.])
        """
        rows: list[dict] = [{np.ones(n).tobytes(): 0} for n in domain.shape]
        which, times, ends = [], [], [0]
        for i, query in enumerate(queries):
            terms = query if isinstance(query, list) else [query]
            for term in terms:
                c, term = term if isinstance(term, tuple) else (1.0, term)
                if not isinstance(term, Mapping):
                    raise ValueError(
                        f"query {i} is {str(query)[:60]!r}: need terms {{attribute: factor}}"
                    )
                row = [0] * len(domain.shape)
                for name, factor in term.items():
                    k = domain.axis(name)
                    full = _factor(domain, name, factor).tobytes()
                    row[k] = rows[k].setdefault(full, len(rows[k]))
                which.append(row)
                times.append(float(c))
            ends.append(len(times))
        factors = tuple(
            sealed(np.frombuffer(b"".join(own)).reshape(len(own), n).copy())
            for own, n in zip(rows, domain.shape, strict=True)
        )
        return cls(
            domain.attributes,
            factors,
            np.array(which, np.int64).reshape(len(times), len(domain.shape)),
            np.array(times),
            np.array(ends),
        )

    @classmethod
    def boxes(
        cls,
        domain: Domain,
        lo: Int[np.ndarray, "terms attributes"],
        hi: Int[np.ndarray, "terms attributes"],
        offsets: Int[np.ndarray, " queries+1"] | None = None,
    ) -> Products:
        """Half-open intervals of codes, one an attribute; of several boxes a query if `offsets` say."""
        lo, hi = Boxes(lo, hi).on(domain).lo, np.asarray(hi, np.int64)
        which, factors = np.zeros(lo.shape, np.int64), []
        for k, n in enumerate(domain.shape):
            ends = lo[:, k] * (n + 1) + hi[:, k]
            some = (lo[:, k] > 0) | (hi[:, k] < n)
            found, which[some, k] = np.unique(ends[some], return_inverse=True)
            which[some, k] += 1
            code = np.arange(n)
            inside = (code >= (found // (n + 1))[:, None]) & (code < (found % (n + 1))[:, None])
            factors.append(sealed(np.concatenate([np.ones((1, n)), inside])))
        offsets = np.arange(len(lo) + 1) if offsets is None else offsets
        return cls(domain.attributes, tuple(factors), which, np.ones(len(lo)), offsets)

    @classmethod
    def moments(cls, domain: Domain, powers: Sequence[Mapping[str, int]]) -> Products:
        """SUM(Π x^power): {"age": 1, "income": 2} of each; x is the label where it is a number, or the
        code.
        """
        asked = []
        for query in powers:
            term = {}
            for name, power in query.items():
                x = domain.decode(name, np.arange(domain.shape[domain.axis(name)]))
                x = np.arange(len(x)) if x.dtype.kind == "O" and isinstance(x[0], str) else x
                term[name] = x.astype(float) ** power
            asked.append(term)
        return cls.of(domain, asked)

    @classmethod
    def fourier(cls, domain: Domain, subsets: Sequence[Sequence[str]]) -> Products:
        """Coefficients Σ Π (−1)^code over each of some sets of attributes."""
        sign = {a: (-1.0) ** np.arange(n) for a, n in zip(domain.attributes, domain.shape)}  # noqa: B905
        for names in subsets:
            for name in names:
                domain.axis(name)
        return cls.of(domain, [{a: sign[a] for a in names} for names in subsets])

    @classmethod
    def wavelets(cls, domain: Domain, attributes: Sequence[str]) -> Products:
        """All products of Haar wavelets of these attributes: 1, or ±1 on halves of a dyadic interval.

        An attribute of n codes has its wavelets over the next power of two; those that are 0 on all
        codes are left out.
        """
        if len(set(attributes)) != len(attributes):
            raise ValueError(f"attributes {attributes!r} must be different")
        asked: list[dict] = [{}]
        for name in attributes:
            rows = _haar(domain.shape[domain.axis(name)])
            asked = [{**term, name: row} for term in asked for row in rows]
        return cls.of(domain, asked)

    def on(self, domain: Domain) -> Products:
        """The same queries over a domain that has the attributes that they use, with as many codes."""
        if self.attributes == domain.attributes:
            if tuple(f.shape[1] for f in self.factors) == domain.shape:
                return self
        place = _places(domain, self.attributes, [f.shape[1] for f in self.factors], self.used)
        which = np.zeros((len(self.times), len(domain.shape)), np.int64)
        factors = [sealed(np.ones((1, n))) for n in domain.shape]
        for k, at in place.items():
            which[:, at], factors[at] = self.which[:, k], self.factors[k]
        return Products(domain.attributes, tuple(factors), which, self.times, self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return _told(self, *self.factors, self.which, self.times, self.offsets)

    def __getitem__(
        self, rows: Int[np.ndarray, " k"] | Bool[np.ndarray, " queries"]
    ) -> Products:
        """Some of the queries, in the order asked."""
        rows = np.arange(len(self))[rows]
        many = np.diff(self.offsets)[rows]
        ends = np.concatenate([[0], np.cumsum(many)])
        terms = np.repeat(self.offsets[rows] - ends[:-1], many) + np.arange(ends[-1])
        return Products(
            self.attributes, self.factors, self.which[terms], self.times[terms], ends
        )

    @cached_property
    def used(self) -> Bool[np.ndarray, " attributes"]:
        """Which attributes any term uses."""
        return self.which.any(axis=0)

    @cached_property
    def query(self) -> Int[np.ndarray, " terms"]:
        """Whose each term is."""
        return np.repeat(np.arange(len(self)), np.diff(self.offsets))

    @cached_property
    def sets(self) -> tuple[tuple[tuple[int, ...], Int[np.ndarray, " terms"]], ...]:
        """Terms by the axes that they use, however many attributes there are."""
        if not len(self.which):
            return ()
        found, at = np.unique(self.which > 0, axis=0, return_inverse=True)
        at = at.ravel()
        order = np.argsort(at, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(at, minlength=len(found)))[:-1])
        axes = (tuple(np.flatnonzero(used).tolist()) for used in found)
        return tuple(zip(axes, parts, strict=True))

    @property
    def _reach(self) -> Float[np.ndarray, " terms"]:
        """What no factor, and no product of some factors, of a term exceeds: zeros hide nothing."""
        out = np.maximum(np.abs(self.times), 1)
        with np.errstate(over="ignore"):
            for k, f in enumerate(self.factors):
                out = out * np.maximum(np.abs(f).max(axis=1), 1)[self.which[:, k]]
        return out

    @cached_property
    def max_term(self) -> float:
        """No term is larger at any tuple."""
        return float(_peaks(self).max(initial=0.0))

    @cached_property
    def integer_valued(self) -> bool:
        """Whether all answers on whole counts are whole numbers, of terms up to 2²⁷ a tuple."""
        whole = all((f == np.rint(f)).all() for f in self.factors)
        whole = whole and bool((self.times == np.rint(self.times)).all())
        return whole and bool((self._reach <= _WHOLE).all())

    @cached_property
    def max_query(self) -> float:
        """No query is larger at any tuple."""
        return float(np.bincount(self.query, _peaks(self), len(self)).max(initial=0.0))

    def flat(self, magnitude: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All factors one after the other, where each attribute's start, and how long its rows are."""
        arrays = [np.abs(f) if magnitude else f for f in self.factors]
        starts = np.cumsum([0, *(f.size for f in arrays)])[:-1]
        return (
            np.concatenate([f.ravel() for f in arrays]),
            starts,
            np.array([f.shape[1] for f in arrays], np.int64),
        )

    def dense_terms(
        self, terms, axes: tuple[int, ...]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The terms' values (coefficients included) on all cells of `axes`, some terms at a time."""
        cells = prod(self.factors[k].shape[1] for k in axes)
        step = max(1, _DENSE // cells)
        for at in range(0, len(terms), step):
            some = terms[at : at + step]
            out = self.times[some][:, None]
            for k in axes:
                own = self.factors[k][self.which[some, k]]
                out = (out[:, :, None] * own[:, None, :]).reshape(len(some), -1)
            yield some, out

    def sums_of_margins(self, margins: Margins) -> Float[np.ndarray, " queries"]:
        out = np.zeros(len(self.times))
        for axes, terms in self.sets:
            w = self.which[np.ix_(terms, axes)]
            factors = [self.factors[k] for k in axes]
            dense = margins.dense(axes)
            if dense is None:
                codes, values = margins.occupied_cells(axes)
                out[terms] = _scattered(factors, w, codes, values.astype(float))
            else:
                out[terms] = _contracted(factors, w, dense)
        out *= self.times
        if len(self) == len(out) and (np.diff(self.offsets) == 1).all():
            return out
        return np.bincount(self.query, out, len(self))

    def grid_units_of_margins(self, margins: Margins, grid: float) -> np.ndarray:
        from workbench.workload import kernels

        found = np.zeros((len(self.times), 3), np.int64)
        for axes, terms in self.sets:
            codes, counts = margins.occupied_cells(axes)
            own = np.zeros((len(terms), 3), np.int64)
            w = np.ascontiguousarray(self.which[np.ix_(terms, axes)])
            flat, starts, widths = _flat([self.factors[k] for k in axes])
            kernels.limbs(self.times[terms], w, flat, starts, widths, codes, counts, grid, own)
            found[terms] = own
        total = _joined(found)
        out = np.zeros(len(self), object)
        np.add.at(out, self.query, total)
        return out


@dataclass(frozen=True, eq=False, repr=False)
class TableQueries(_Linear):
    """Arbitrary functions of a few attributes each (Theorem 2), as tables.

    `groups` holds, for each set of attributes (in the domain's order), an array (queries, codes of the
    first, codes of the second, …); `order` says which query each of its rows is, all groups in turn.
    """

    groups: tuple[tuple[tuple[str, ...], Float[np.ndarray, "queries ..."]], ...]
    order: Int[np.ndarray, " queries"] | None = None

    def __post_init__(self):
        kept = []
        for names, tables in self.groups:
            names, tables = tuple(names), np.asarray(tables, float)
            if len(set(names)) != len(names) or tables.ndim != len(names) + 1:
                raise ValueError(
                    f"TableQueries.groups: tables of shape {tables.shape} do not fit {names}; need "
                    "different attributes, an axis each, after one of queries"
                )
            if not np.isfinite(tables).all():
                raise ValueError(f"TableQueries.groups of {names} must be finite numbers")
            _refuse_extreme("TableQueries", np.abs(tables), tables)
            kept.append((names, read_only(tables)))
        many = sum(len(t) for _, t in kept)
        order = np.arange(many) if self.order is None else np.asarray(self.order, np.int64)
        if order.shape != (many,) or (np.sort(order) != np.arange(many)).any():
            raise ValueError(f"TableQueries.order must name each of {many} queries once")
        object.__setattr__(self, "groups", tuple(kept))
        object.__setattr__(self, "order", read_only(order))

    @classmethod
    def of(cls, domain: Domain, queries: Sequence[tuple[Sequence[str], Any]]) -> TableQueries:
        """From (attributes, table) of each query, axes in the order of the attributes as named.

        >>> domain = Domain(("age", "sex"), (3, 2))
        >>> TableQueries.of(domain, [(("sex", "age"), [[0, 0, 0], [0, 1, 1]])]).cells(domain)
        array([2.])
        """
        found: dict = {}
        for i, (names, table) in enumerate(queries):
            axes = [domain.axis(a) for a in names]
            table = np.asarray(table, float)
            if table.shape != (expected := tuple(domain.shape[k] for k in axes)):
                raise ValueError(
                    f"query {i} on {tuple(names)} has a table of shape {table.shape}: need {expected}"
                )
            place = tuple(domain.attributes[k] for k in sorted(axes))
            own = found.setdefault(place, ([], []))
            own[0].append(table.transpose(np.argsort(axes)))
            own[1].append(i)
        groups = tuple((names, np.stack(tables)) for names, (tables, _) in found.items())
        order = np.concatenate([np.empty(0, np.int64), *(own for _, own in found.values())])
        return cls(groups, order.astype(np.int64))

    def on(self, domain: Domain) -> TableQueries:
        """The same queries, if the domain has the attributes with as many codes; axes in its order."""
        groups = []
        for names, tables in self.groups:
            place = _places(domain, names, tables.shape[1:])
            by = sorted(place, key=place.get)
            if by == list(range(len(names))):
                groups.append((names, tables))
            else:
                turned = tables.transpose(0, *(k + 1 for k in by))
                groups.append((tuple(names[k] for k in by), sealed(turned.copy())))
        same = all(a is b for (_, a), (_, b) in zip(groups, self.groups, strict=True))
        return self if same else TableQueries(tuple(groups), self.order)

    def __len__(self) -> int:
        return len(self.order)

    def __repr__(self) -> str:
        names = [np.frombuffer(repr(names).encode(), np.uint8) for names, _ in self.groups]
        return _told(self, self.order, *names, *(tables for _, tables in self.groups))

    def __getitem__(self, rows) -> TableQueries:
        """Some of the queries, in the order asked."""
        rows = np.arange(len(self))[rows]
        row = np.empty(len(self), np.int64)
        row[self.order] = np.arange(len(self))  # where each query stands in the groups
        at, start, groups, order = row[rows], 0, [], []
        for names, tables in self.groups:
            own = np.flatnonzero((at >= start) & (at < start + len(tables)))
            if len(own):
                groups.append((names, sealed(tables[at[own] - start])))
                order.append(own)
            start += len(tables)
        return TableQueries(tuple(groups), np.concatenate([np.empty(0, np.int64), *order]))

    def parts(self) -> Iterator[tuple[tuple[str, ...], np.ndarray, np.ndarray]]:
        """Attributes, tables, and which queries they are."""
        start = 0
        for names, tables in self.groups:
            yield names, tables, self.order[start : start + len(tables)]
            start += len(tables)

    @cached_property
    def max_term(self) -> float:
        """No query is larger at any tuple."""
        return max((float(np.abs(t).max(initial=0.0)) for _, t in self.groups), default=0.0)

    @cached_property
    def integer_valued(self) -> bool:
        """Whether all answers on whole counts are whole numbers."""
        return self.max_term <= _WHOLE and all((t == np.rint(t)).all() for _, t in self.groups)

    @property
    def max_query(self) -> float:
        """No query is larger at any tuple."""
        return self.max_term

    def sums_of_margins(self, margins: Margins) -> Float[np.ndarray, " queries"]:
        out = np.zeros(len(self))
        for names, tables, own in self.parts():
            axes = tuple(margins.domain.axis(a) for a in names)
            flat = tables.reshape(len(tables), -1)
            dense = margins.dense(axes)
            if dense is None:
                codes, values = margins.occupied_cells(axes)
                out[own] = flat[:, np.ravel_multi_index(codes, tables.shape[1:])] @ values
            else:
                out[own] = flat @ dense.ravel()
        return out

    def grid_units_of_margins(self, margins: Margins, grid: float) -> np.ndarray:
        out = np.zeros(len(self), object)
        for names, tables, own in self.parts():
            codes, counts = margins.occupied_cells(tuple(margins.domain.axis(a) for a in names))
            at = np.ravel_multi_index(codes, tables.shape[1:]) if len(names) else slice(None)
            for i, table in zip(own, tables.reshape(len(tables), -1), strict=True):
                units = np.rint(table / grid).astype(np.int64)[at]
                cut = np.stack([units >> 18, (units >> 9) & 511, units & 511], axis=1)
                out[i] = _joined((counts[:, None] * cut).sum(axis=0)[None])[0]
        return out


@dataclass(frozen=True, eq=False, repr=False)
class Together(_Linear):
    """Several workloads, one after the other."""

    parts: tuple

    def __post_init__(self):
        parts = []
        for part in self.parts:
            parts += part.parts if isinstance(part, Together) else [part]
        object.__setattr__(self, "parts", tuple(parts))

    def on(self, domain: Domain) -> Together:
        """All of them as linear queries on the domain."""
        parts = tuple(linear_queries(part, domain) for part in self.parts)
        same = all(a is b for a, b in zip(parts, self.parts, strict=True))
        return self if same else Together(parts)

    def __len__(self) -> int:
        return sum(map(len, self.parts))

    def __repr__(self) -> str:
        return _told(self, *(np.frombuffer(repr(p).encode(), np.uint8) for p in self.parts))

    def __getitem__(self, rows) -> Together:
        """Some of the queries, in the order asked."""
        rows = np.arange(len(self))[rows]
        ends = np.cumsum([0, *map(len, self.parts)])
        whose = np.searchsorted(ends, rows, side="right") - 1
        new = np.flatnonzero(np.diff(whose, prepend=-1))
        runs = np.split(rows, new[1:]) if len(rows) else []
        return Together(
            tuple(
                self.parts[p][own - ends[p]]
                for p, own in zip(whose[new].tolist(), runs, strict=True)
            )
        )

    @property
    def max_term(self) -> float:
        """No term is larger at any tuple."""
        return max((p.max_term for p in self.parts), default=0.0)

    @property
    def integer_valued(self) -> bool:
        """Whether all answers on whole counts are whole numbers."""
        return all(p.integer_valued for p in self.parts)

    @property
    def max_query(self) -> float:
        """No query is larger at any tuple."""
        return max((p.max_query for p in self.parts), default=0.0)

    def sums_of_margins(self, margins: Margins) -> Float[np.ndarray, " queries"]:
        return np.concatenate([np.empty(0), *(p.sums_of_margins(margins) for p in self.parts)])

    def grid_units_of_margins(self, margins: Margins, grid: float) -> np.ndarray:
        return np.concatenate(
            [np.empty(0, object), *(p.grid_units_of_margins(margins, grid) for p in self.parts)]
        )


def linear_queries(workload: Any, domain: Domain) -> Products | TableQueries | Together:
    """Any workload over the domain, or recipe of one, as linear queries over its attributes.

    A range of keys becomes at most 2d − 1 boxes over d attributes; what is scattered over the domain is
    a ValueError.
    """
    workload = workload.on(domain)
    if isinstance(workload, _Linear):
        return workload
    if isinstance(workload, Boxes):
        return Products.boxes(domain, workload.lo, workload.hi)
    if isinstance(workload, Subsets) and len(workload.members) <= _PIECES:
        codes = domain.codes(workload.members)
        return Products.boxes(domain, codes, codes + 1, workload.offsets)
    if isinstance(workload, Ranges) and len(workload) <= _PIECES:
        return _of_ranges(workload, domain)
    raise ValueError(f"{workload!r} are no linear queries over {domain.attributes}")


@value
class Marginals:
    """All cells of all marginals on k attributes, in the order of `itertools.combinations`.

    >>> len(Marginals(2).on(Domain(("a", "b", "c"), (2, 3, 4))))
    26
    """

    k: int = parameter(low=0, integer=True, unit="attributes")

    def on(self, domain: Domain) -> Products:
        """The cells, marginal by marginal, each in the order of its keys."""
        if self.k > len(domain.shape):
            raise ValueError(
                f"Marginals.k = {self.k} is not allowed: the domain has {len(domain.shape)} attributes"
            )
        sets = list(combinations(range(len(domain.shape)), self.k))
        sizes = [prod(domain.shape[k] for k in axes) for axes in sets]
        if sum(sizes) > _PIECES:
            raise ValueError(f"{self!r} has {sum(sizes)} cells: need at most {_PIECES}")
        which, start = np.zeros((sum(sizes), len(domain.shape)), np.int64), 0
        for axes, size in zip(sets, sizes, strict=True):
            shape = [domain.shape[k] for k in axes]
            codes = np.unravel_index(np.arange(size), shape) if axes else ()
            for k, code in zip(axes, codes, strict=True):
                if domain.shape[k] > 1:  # the one code of an attribute is every tuple's
                    which[start : start + size, k] = code + 1
            start += size
        factors = tuple(
            sealed(np.concatenate([np.ones((1, n)), np.eye(n)])) for n in domain.shape
        )
        times = np.ones(len(which))
        return Products(domain.attributes, factors, which, times, np.arange(len(which) + 1))

    def sensitivity(self, domain: Domain, relation: str = "add-remove-one-unit") -> float:
        """How many marginals there are; twice as many if a unit is replaced."""
        return self.on(domain).sensitivity(domain, relation)


def _axes(domain: Domain, k: int, count: int, rng: np.random.Generator) -> np.ndarray:
    """`count` sets of k attributes, each uniform."""
    if k > len(domain.shape):
        raise ValueError(f"queries on {k} attributes do not fit {domain.attributes}")
    return np.sort(rng.random((count, len(domain.shape))).argsort(axis=1)[:, :k], axis=1)


@value
class RandomMarginalRanges:
    """`count` ranges over `dims` attributes: a uniform set of attributes, and on each an interval.

    The intervals are uniform among all that are not empty: the paper says only "random".

    >>> len(RandomMarginalRanges(5).on(Domain(("a", "b", "c"), (20, 3, 40))))
    5
    """

    count: int = parameter(5000, 1, integer=True, unit="queries")
    dims: int = parameter(2, 1, integer=True, unit="attributes")
    seed: int = parameter(0, 0, integer=True)

    def on(self, domain: Domain) -> Products:
        """The ranges on `domain`."""
        rng = np.random.default_rng(self.seed)
        axes = _axes(domain, self.dims, self.count, rng)
        sizes = np.array(domain.shape)
        lo, hi = np.zeros((self.count, len(sizes)), np.int64), np.tile(sizes, (self.count, 1))
        n = sizes[axes]
        # two different ends among n + 1: uniform among the intervals that are not empty
        one = rng.integers(0, n + 1)
        two = rng.integers(0, n)
        two += two >= one
        rows = np.arange(self.count)[:, None]
        lo[rows, axes], hi[rows, axes] = np.minimum(one, two), np.maximum(one, two)
        return Products.boxes(domain, lo, hi)


@value
class RandomTables:
    """`count` arbitrary queries on k attributes: a uniform set of them, a fair coin for every cell."""

    count: int = parameter(5000, 1, integer=True, unit="queries")
    k: int = parameter(2, 1, integer=True, unit="attributes")
    seed: int = parameter(0, 0, integer=True)

    def on(self, domain: Domain) -> TableQueries:
        """The tables on `domain`."""
        rng = np.random.default_rng(self.seed)
        axes = _axes(domain, self.k, self.count, rng)
        found, at = np.unique(axes, axis=0, return_inverse=True)
        order = np.argsort(at.ravel(), kind="stable")
        groups = []
        for own, many in zip(found, np.bincount(at.ravel()), strict=True):
            shape = [domain.shape[k] for k in own]
            if many * prod(shape) > 8 * _DENSE:
                raise ValueError(f"{many} tables of {shape} codes are too large: need fewer")
            tables = rng.integers(0, 2, (many, *shape), dtype=np.int8).astype(float)
            groups.append((tuple(domain.attributes[k] for k in own), sealed(tables)))
        return TableQueries(tuple(groups), order)


@value
class First:
    """The first `count` queries of a workload: fewer or more of one list are asked the same.

    >>> len(First(2, RandomMarginalRanges(5)).on(Domain(("a", "b", "c"), (20, 3, 40))))
    2
    """

    count: int = parameter(low=1, integer=True, unit="queries", doc="how many are asked")
    workload: Workload = parameter(
        check=lambda x: None if hasattr(x, "on") else "need a workload or a recipe of one",
        doc="the list",
    )

    def on(self, domain: Domain) -> Products | TableQueries | Together:
        """Those queries on `domain`."""
        every = linear_queries(self.workload, domain)
        if self.count > len(every):
            raise ValueError(
                f"First.count = {self.count} is not allowed: need at most {len(every)}, all that "
                "there are"
            )
        return every[np.arange(self.count)]


class Margins:
    """Sums of values over cells of few attributes, from sorted keys; columns are made once."""

    def __init__(
        self, domain: Domain, keys: Int[np.ndarray, " n"], values: Num[np.ndarray, " n"]
    ):
        self.domain = domain
        self.values = np.asarray(values)
        self._keys, self._columns = np.asarray(keys), {}

    def _column(self, axis: int) -> Int[np.ndarray, " n"]:
        if axis not in self._columns:
            self._columns[axis] = self.domain.column(self._keys, self.domain.attributes[axis])
        return self._columns[axis]

    def _place(self, axes: tuple[int, ...]) -> Int[np.ndarray, " n"]:
        place = np.zeros(len(self.values), np.int64)
        for k in axes:
            place *= self.domain.shape[k]
            place += self._column(k)
        return place

    def dense(self, axes: tuple[int, ...]) -> Float[np.ndarray, "..."] | None:
        """The sums on all cells, or None where they are many: float64 is exact below 2⁵³."""
        shape = [self.domain.shape[k] for k in axes]
        if prod(shape) > min(_DENSE, max(2**16, 8 * len(self.values))):
            return None
        if not axes:
            return np.asarray(self.values.sum(dtype=float))
        return np.bincount(self._place(axes), self.values, prod(shape)).reshape(shape)

    def occupied_cells(self, axes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Codes (attributes, cells) of those that are there, and their sums, whole if values are."""
        cells, at = np.unique(self._place(axes), return_inverse=True)
        sums = np.zeros(len(cells), np.int64 if self.values.dtype.kind in "iub" else float)
        np.add.at(sums, at, self.values)
        shape = [self.domain.shape[k] for k in axes]
        codes = np.unravel_index(cells, shape) if axes else np.empty((0, len(cells)), np.int64)
        return np.ascontiguousarray(codes, np.int64), sums


def _factor(domain: Domain, name: str, factor: Any) -> Float[np.ndarray, " values"]:
    """A value for each code."""
    n = domain.shape[domain.axis(name)]
    out = np.zeros(n)
    if isinstance(factor, set | frozenset):
        codes = np.array(sorted(factor))
        if len(codes) and (codes.dtype.kind not in "iu" or codes[0] < 0 or codes[-1] >= n):
            raise ValueError(
                f"codes {factor} of {name!r} are not allowed: need 0 <= code < {n}"
            )
        out[codes.astype(np.int64)] = 1
        return out
    if isinstance(factor, tuple) and len(factor) == 2 and not isinstance(factor[0], bool):
        lo, hi = factor
        if not (lo == int(lo) and hi == int(hi) and 0 <= lo <= hi <= n):
            raise ValueError(
                f"range {factor} of {name!r} is not allowed: need whole 0 <= lo <= hi <= {n}"
            )
        out[int(lo) : int(hi)] = 1
        return out
    values = np.asarray(factor, float)
    if values.shape != (n,) or not np.isfinite(values).all():
        raise ValueError(
            f"a factor of {name!r} must be (lo, hi), a set of codes, or {n} finite values"
        )
    return values + 0.0  # no negative zero, which is another text


def _places(domain: Domain, names, sizes, used=None) -> dict[int, int]:
    """Where the used attributes are in the domain; a ValueError if one is not, or has other codes."""
    place = {}
    for k, (name, n) in enumerate(zip(names, sizes, strict=True)):
        if used is not None and not used[k]:
            continue
        place[k] = domain.axis(name)
        if domain.shape[place[k]] != n:
            raise ValueError(
                f"queries on {name!r} with {n} codes do not fit a domain with "
                f"{domain.shape[place[k]]}"
            )
    return place


def _refuse_extreme(name: str, reach, *arrays) -> None:
    """A ValueError for what floating-point numbers of counts could not be multiplied by."""
    small = any(((a != 0) & (np.abs(a) < 1 / _EXTREME)).any() for a in arrays)
    if small or (reach > _EXTREME).any():
        raise ValueError(
            f"{name}: values beyond 1e-100 … 1e100 (and 0) are not allowed, nor terms whose factors "
            "make more together"
        )


def _peaks(products: Products) -> Float[np.ndarray, " terms"]:
    """The largest magnitude of each term."""
    out = np.abs(products.times)
    for k, f in enumerate(products.factors):
        out = out * np.abs(f).max(axis=1)[products.which[:, k]]
    return out


def _flat(factors) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    starts = np.cumsum([0, *(f.size for f in factors)])[:-1].astype(np.int64)
    flat = np.concatenate([np.empty(0), *(f.ravel() for f in factors)])
    return flat, starts, np.array([f.shape[1] for f in factors], np.int64)


def _contracted(factors, w, dense) -> Float[np.ndarray, " terms"]:
    """Σ over cells of dense·Π factor[w]: attribute by attribute."""
    if not factors:
        return np.full(len(w), float(dense))
    if len(factors) <= 2:
        rows, at = np.unique(w[:, 0], return_inverse=True)
        left = factors[0][rows] @ dense
        if len(factors) == 1:
            return left[at]
        columns, by = np.unique(w[:, 1], return_inverse=True)
        if len(rows) * len(columns) <= 64 * len(w):
            return (left @ factors[1][columns].T)[at, by]
        return np.einsum("tj,tj->t", left[at], factors[1][w[:, 1]])
    out = np.empty(len(w))
    step = max(1, _DENSE // (dense.size // dense.shape[0]))
    for start in range(0, len(w), step):
        own = w[start : start + step]
        left = factors[0][own[:, 0]] @ dense.reshape(dense.shape[0], -1)
        for k, factor in enumerate(factors[1:], 1):
            left = left.reshape(len(own), factor.shape[1], -1)
            left = np.matmul(factor[own[:, k]][:, None, :], left)[:, 0]
        out[start : start + step] = left[:, 0]
    return out


def _scattered(factors, w, codes, values) -> Float[np.ndarray, " terms"]:
    from workbench.workload import kernels

    out = np.zeros(len(w))
    flat, starts, widths = _flat(factors)
    kernels.scattered(np.ascontiguousarray(w), flat, starts, widths, codes, values, out)
    return out


def _joined(limbs: Int[np.ndarray, "n 3"]) -> np.ndarray:
    """Python's whole numbers, which do not overflow, from parts of 9 bits."""
    high, middle, low = limbs.astype(object).T
    return high * 2**18 + middle * 2**9 + low


def _haar(n: int) -> list[Float[np.ndarray, " n"]]:
    rows, width = [np.ones(n)], 1 << (n - 1).bit_length()
    code = np.arange(n)
    while width > 1:
        for start in range(0, n, width):
            inside = (code >= start) & (code < start + width)
            rows.append(np.where(inside, np.where(code < start + width // 2, 1.0, -1.0), 0.0))
        width //= 2
    return rows


def _of_ranges(ranges: Ranges, domain: Domain) -> Products:
    """Boxes that make up ranges of keys: attribute by attribute, part of a block at either end."""
    lo, hi, shape = ranges.lo, ranges.hi, domain.shape
    alive, found = np.flatnonzero(hi > lo), []
    lo, hi = lo[alive], hi[alive]
    for a in range(len(shape) - 1, -1, -1):
        n = shape[a]
        up, down = -(-lo // n) * n, hi // n * n
        within = (up > down) | (a == 0)
        found.append((a, alive[within], lo[within], hi[within]))
        left, right = ~within & (lo < up), ~within & (down < hi)
        found.append((a, alive[left], lo[left], up[left]))
        found.append((a, alive[right], down[right], hi[right]))
        on = ~within & (up < down)
        alive, lo, hi = alive[on], up[on] // n, down[on] // n
    low, high, whose = [], [], []
    for a, own, first, last in found:
        box = np.zeros((2, len(own), len(shape)), np.int64)
        box[1] = shape
        rest = first // shape[a]
        box[0, :, a] = first - rest * shape[a]
        box[1, :, a] = last - rest * shape[a]
        for k in range(a - 1, -1, -1):
            box[0, :, k] = rest % shape[k]
            box[1, :, k] = box[0, :, k] + 1
            rest = rest // shape[k]
        low.append(box[0]), high.append(box[1]), whose.append(own)
    whose = np.concatenate(whose)
    by = np.argsort(whose, kind="stable")
    ends = np.concatenate([[0], np.cumsum(np.bincount(whose, minlength=len(ranges)))])
    return Products.boxes(domain, np.concatenate(low)[by], np.concatenate(high)[by], ends)
