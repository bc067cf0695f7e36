"""Products: linear queries that are sums of separable terms, over many attributes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from workbench.queries.factors import (
    factor_values,
    haar_factors,
    limbs_over_occupied_cells,
    sums_over_dense_cells,
    sums_over_occupied_cells,
)
from workbench.queries.linear import (
    MAX_DENSE_CELLS,
    MAX_INTEGER_TERM,
    Linear,
    Margins,
    Prior,
    axes_in_domain,
    refuse_extreme,
    whole_numbers,
)
from workbench.queries.ranges import Boxes, digest_text
from workbench.spaces import Domain
from workbench.value import Bool, Float, Int, outer_rows, read_only, sealed

_MOST_VALUES = 2**26  # of all different factors: half a gigabyte


@dataclass(frozen=True, eq=False, repr=False)
class Products(Linear):
    """Queries that are sums of products. A term c·Π_k g_k(x_k) has one factor g_k per attribute (Chen et
    al., EDBT 2012, Equation 9).

    Make them with `Products.of`, which computes the fields from dictionaries.

    Parameters
    ----------
    attributes : tuple of str
        Names of the attributes.
    factors : tuple of float64[rows, values]
        Distinct factors g of each attribute: one row per factor, one value per code. The first row is all
        ones.
    which : int64[terms, attributes]
        Row of `factors` for each term and attribute, or 0 if the term does not use the attribute.
    times : float64[terms]
        Coefficient c of each term.
    offsets : int64[queries + 1]
        Query i has the terms offsets[i] … offsets[i + 1] − 1.

    Raises
    ------
    ValueError
        If the shapes of the arrays do not match, or they contain infinite, NaN or extreme numbers.
    """

    attributes: tuple[str, ...]
    factors: tuple[Float[np.ndarray, "rows values"], ...]
    which: Int[np.ndarray, "terms attributes"]
    times: Float[np.ndarray, " terms"]
    offsets: Int[np.ndarray, " queries+1"]

    def __post_init__(self) -> None:
        fix = object.__setattr__
        fix(self, "attributes", tuple(self.attributes))
        fix(
            self,
            "factors",
            tuple(read_only(np.asarray(f, float)) for f in self.factors),
        )
        for name, kind in (
            ("which", np.int64),
            ("times", float),
            ("offsets", np.int64),
        ):
            fix(self, name, read_only(np.ascontiguousarray(getattr(self, name), kind)))
        d = len(self.attributes)
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
                raise ValueError(f"Products.which names an unknown factor of {name!r}")
        if not np.isfinite(self.times).all():
            raise ValueError("Products.times must be finite")
        ends = self.offsets
        if not len(ends) or ends[0] or ends[-1] != terms or (np.diff(ends) < 0).any():
            raise ValueError(f"Products.offsets must rise from 0 to {terms} terms")
        refuse_extreme("Products", self._largest_partial_products, self.times, *self.factors)

    @classmethod
    def of(cls, domain: Domain, queries: Sequence[Any]) -> Products:
        """Make queries from dictionaries, which have a factor for each attribute. A query is one term, or a
        list of terms to add up.

        Parameters
        ----------
        domain : Domain
            Domain of the attributes.
        queries : sequence
            A term is {attribute: factor} or (coefficient, {attribute: factor}). {} counts every record
            once. A factor is (lo, hi), which stands for the codes lo <= x < hi, a set of codes, or a value
            for each code.

        Returns
        -------
        Products
            In the order of the queries.

        Raises
        ------
        ValueError
            If a query does not have one of these forms, or an attribute, a code or the length of a factor
            does not fit the domain.

        Examples
        --------
        >>> domain = Domain(("age", "sex"), (100, 2))
        >>> queries = Products.of(domain, [{"age": (0, 18)}, [{}, (-1.0, {"sex": {0}})]])
        >>> queries.sums(domain, np.array([3, 50]), np.array([5, 7]))
        array([5., 5.])
        """
        size = sum(domain.shape)
        _refuse_size(size)
        rows: list[dict[bytes, int]] = [{np.ones(n).tobytes(): 0} for n in domain.shape]
        chosen: list[list[int]] = []
        times: list[float] = []
        offsets = [0]
        for i, query in enumerate(queries):
            for term in query if isinstance(query, list) else [query]:
                coefficient, factors = term if isinstance(term, tuple) else (1.0, term)
                if not isinstance(factors, Mapping):
                    raise ValueError(
                        f"query {i} is {str(query)[:60]!r}: need terms {{attribute: factor}}"
                    )
                row = [0] * len(domain.shape)
                for name, factor in factors.items():
                    axis = domain.axis(name)
                    values = factor_values(domain, name, factor).tobytes()
                    if values not in rows[axis]:
                        size += domain.shape[axis]
                        _refuse_size(size)
                    row[axis] = rows[axis].setdefault(values, len(rows[axis]))
                chosen.append(row)
                times.append(float(coefficient))
            offsets.append(len(times))
        tables = tuple(
            sealed(np.frombuffer(b"".join(different)).reshape(len(different), n).copy())
            for different, n in zip(rows, domain.shape, strict=True)
        )
        which = np.array(chosen, np.int64).reshape(len(times), len(domain.shape))
        return cls(domain.attributes, tables, which, np.array(times), np.array(offsets))

    @classmethod
    def boxes(
        cls,
        domain: Domain,
        lo: Int[np.ndarray, "terms attributes"],
        hi: Int[np.ndarray, "terms attributes"],
        offsets: Int[np.ndarray, " queries+1"] | None = None,
    ) -> Products:
        """Make queries that count the records in boxes. A box has one half-open interval [lo, hi) of codes per
        attribute. With `offsets`, a query may consist of several boxes.
        """
        boxes = Boxes(lo, hi).on(domain)
        which = np.zeros(boxes.lo.shape, np.int64)
        factors = []
        for k, n in enumerate(domain.shape):
            lo = boxes.lo[:, k]
            hi = boxes.hi[:, k]
            used = (lo > 0) | (hi < n)
            intervals, rows = np.unique((lo * (n + 1) + hi)[used], return_inverse=True)
            which[used, k] = rows + 1
            first = (intervals // (n + 1))[:, None]
            last = (intervals % (n + 1))[:, None]
            code = np.arange(n)
            inside = (code >= first) & (code < last)
            factors.append(sealed(np.concatenate([np.ones((1, n)), inside])))
        offsets = np.arange(len(boxes) + 1) if offsets is None else offsets
        return cls(domain.attributes, tuple(factors), which, np.ones(len(boxes)), offsets)

    @classmethod
    def moments(cls, domain: Domain, powers: Sequence[Mapping[str, int]]) -> Products:
        """Make queries for sums of powers. For example, {"age": 1, "income": 2} asks for Σ age·income². If
        an attribute has no numbers, its codes are used.
        """
        queries = []
        for query in powers:
            term = {}
            for name, power in query.items():
                x = domain.decode(name, np.arange(domain.shape[domain.axis(name)]))
                if x.dtype.kind == "O" and isinstance(x[0], str):
                    x = np.arange(len(x))
                term[name] = x.astype(float) ** power
            queries.append(term)
        return cls.of(domain, queries)

    @classmethod
    def fourier(cls, domain: Domain, subsets: Sequence[Sequence[str]]) -> Products:
        """Make one query for each given set of attributes. It asks for the Fourier coefficient, the sum over
        all records of Π (−1)^code.
        """
        queries = []
        for names in subsets:
            sizes = {name: domain.shape[domain.axis(name)] for name in names}
            queries.append({name: (-1.0) ** np.arange(n) for name, n in sizes.items()})
        return cls.of(domain, queries)

    @classmethod
    def wavelets(cls, domain: Domain, attributes: Sequence[str]) -> Products:
        """Make one query for each combination of Haar wavelets, one wavelet per attribute. A wavelet is 1
        everywhere, or it is 1 on the left half and −1 on the right half of a dyadic interval.

        If an attribute has n codes, its wavelets are those over the next power of two above n. Wavelets
        that are 0 on all codes are left out.
        """
        if len(set(attributes)) != len(attributes):
            raise ValueError(f"attributes {attributes!r} must be different")
        queries: list[dict[str, Any]] = [{}]
        for name in attributes:
            factors = haar_factors(domain.shape[domain.axis(name)])
            queries = [{**query, name: factor} for query in queries for factor in factors]
        return cls.of(domain, queries)

    def on(self, domain: Domain) -> Products:
        """Return the same queries over another domain. Its attributes must have the same numbers of codes."""
        sizes = tuple(f.shape[1] for f in self.factors)
        if self.attributes == domain.attributes and sizes == domain.shape:
            return self
        which = np.zeros((len(self.times), len(domain.shape)), np.int64)
        factors = [sealed(np.ones((1, n))) for n in domain.shape]
        for k, axis in axes_in_domain(domain, self.attributes, sizes, self.used).items():
            which[:, axis] = self.which[:, k]
            factors[axis] = self.factors[k]
        return Products(domain.attributes, tuple(factors), which, self.times, self.offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return digest_text(self, *self.factors, self.which, self.times, self.offsets)

    def __getitem__(
        self, rows: Int[np.ndarray, " k"] | Bool[np.ndarray, " queries"]
    ) -> Products:
        """Return a selection of the queries, in the order of `rows`."""
        rows = np.arange(len(self))[rows]
        sizes = np.diff(self.offsets)[rows]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        terms = np.repeat(self.offsets[rows] - ends[:-1], sizes) + np.arange(ends[-1])
        return Products(
            self.attributes, self.factors, self.which[terms], self.times[terms], ends
        )

    @cached_property
    def used(self) -> Bool[np.ndarray, " attributes"]:
        """Attributes that at least one term uses."""
        return sealed(self.which.any(axis=0))

    @cached_property
    def query(self) -> Int[np.ndarray, " terms"]:
        """Query to which each term belongs."""
        return sealed(np.repeat(np.arange(len(self)), np.diff(self.offsets)))

    @cached_property
    def sets(self) -> tuple[tuple[tuple[int, ...], Int[np.ndarray, " terms"]], ...]:
        """Terms grouped by the set of axes that they use."""
        if not len(self.which):
            return ()
        patterns, group = np.unique(self.which > 0, axis=0, return_inverse=True)
        group = group.ravel()
        order = np.argsort(group, kind="stable")
        ends = np.cumsum(np.bincount(group, minlength=len(patterns)))
        axes = (tuple(np.flatnonzero(used).tolist()) for used in patterns)
        return tuple(zip(axes, np.split(order, ends[:-1]), strict=True))

    @property
    def _largest_partial_products(self) -> Float[np.ndarray, " terms"]:
        """Bounds that no product of some factors of a term exceeds. A factor of 0 does not hide the others."""
        bounds = np.maximum(np.abs(self.times), 1)
        with np.errstate(over="ignore"):
            for k, f in enumerate(self.factors):
                bounds = bounds * np.maximum(np.abs(f).max(axis=1), 1)[self.which[:, k]]
        return bounds

    @cached_property
    def max_terms(self) -> Float[np.ndarray, " terms"]:
        """Largest absolute value of each term."""
        magnitudes = np.abs(self.times)
        for k, f in enumerate(self.factors):
            magnitudes = magnitudes * np.abs(f).max(axis=1)[self.which[:, k]]
        return sealed(magnitudes)

    @cached_property
    def max_term(self) -> float:
        """Largest absolute value of a term, or an upper bound on it."""
        return float(self.max_terms.max(initial=0.0))

    @cached_property
    def max_query(self) -> float:
        """Largest absolute value that a query takes for one tuple, or an upper bound on it."""
        return float(np.bincount(self.query, self.max_terms, len(self)).max(initial=0.0))

    @cached_property
    def integer_valued(self) -> bool:
        """Whether integer counts give integer answers to all queries. It is False if a term exceeds 2²⁷."""
        arrays = (*self.factors, self.times)
        whole = all((a == np.rint(a)).all() for a in arrays)
        return whole and bool((self._largest_partial_products <= MAX_INTEGER_TERM).all())

    def dense_terms(
        self, terms: Int[np.ndarray, " terms"], axes: tuple[int, ...]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the values of terms in all cells of the attributes `axes`, one block of terms at a time. The
        values include the coefficients.
        """
        cells = prod(self.factors[k].shape[1] for k in axes)
        step = max(1, MAX_DENSE_CELLS // cells)
        for start in range(0, len(terms), step):
            block = terms[start : start + step]
            values = self.times[block][:, None]
            for k in axes:
                values = outer_rows(values, self.factors[k][self.which[block, k]])
            yield block, values

    def means(self, domain: Domain, prior: Prior) -> Float[np.ndarray, " queries"]:
        """Return the mean of each query under a prior with independent attributes. A query is a sum of
        terms, and so is its mean.
        """
        terms = self.times.copy()
        for k, f in enumerate(self.factors):
            if self.used[k]:
                terms *= (f @ prior[k])[self.which[:, k]]
        return np.bincount(self.query, terms, len(self))

    def sums_of_margins(self, margins: Margins) -> Float[np.ndarray, " queries"]:
        """Return the answers. They are computed from the marginals on the attributes that each term uses."""
        sums = np.zeros(len(self.times))
        for axes, terms in self.sets:
            rows = self.which[np.ix_(terms, np.array(axes, int))]
            factors = [self.factors[k] for k in axes]
            dense = margins.dense(axes)
            if dense is None:
                codes, values = margins.occupied_cells(axes)
                values = values.astype(float)
                sums[terms] = sums_over_occupied_cells(factors, rows, codes, values)
            else:
                sums[terms] = sums_over_dense_cells(factors, rows, dense)
        sums *= self.times
        if len(self) == len(sums) and (np.diff(self.offsets) == 1).all():
            return sums
        return np.bincount(self.query, sums, len(self))

    def grid_units_of_margins(self, margins: Margins, grid: float) -> np.ndarray:
        """Return the answers as integers, in multiples of the step `grid`. Each term is rounded separately for
        each record.
        """
        limbs = np.zeros((len(self.times), 3), np.int64)
        for axes, terms in self.sets:
            codes, counts = margins.occupied_cells(axes)
            factors = [self.factors[k] for k in axes]
            rows = self.which[np.ix_(terms, np.array(axes, int))]
            limbs[terms] = limbs_over_occupied_cells(
                self.times[terms], factors, rows, codes, counts, grid
            )
        units = np.zeros(len(self), object)
        np.add.at(units, self.query, whole_numbers(limbs))
        return units


def _refuse_size(values: int) -> None:
    """Raise a ValueError, before memory is allocated, if factors have very many values."""
    if values > _MOST_VALUES:
        raise ValueError(
            f"factors with {values:,} values are too large: need at most {_MOST_VALUES:,}, one "
            "value per code and factor"
        )
