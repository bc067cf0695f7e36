"""Linear queries whose value for a record is a product of functions of single attributes, or a sum of such
products.
"""

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
    """Linear queries, which give a number to each record and add up these numbers. The number is a product of
    one factor per attribute, or a sum of such products (Chen et al., EDBT 2012, Equation 9).

    For example, a query counts women under 18. Its factor for the attribute age is 1 below 18 and 0
    otherwise. Its factor for the attribute sex is 1 for women and 0 for men. A product is called a term, and
    each term is multiplied by a coefficient.

    Create such queries with `Products.of`, which takes dictionaries and computes the arrays.

    Parameters
    ----------
    attributes : tuple of str
        Names of the attributes.
    factors : tuple of float64[rows, values]
        One matrix per attribute. Each row is a factor: it contains one number for each value of the
        attribute. The first row contains only ones.
    which : int64[terms, attributes]
        Row of the attribute's matrix that each term uses, counted from 0. The entry is 0 if the term does not
        depend on the attribute.
    times : float64[terms]
        Coefficient by which each term is multiplied.
    offsets : int64[queries + 1]
        Position of each query's first term in the list of terms, and the number of all terms. Query i is the
        sum of the terms from offsets[i] to offsets[i + 1] − 1.

    Raises
    ------
    ValueError
        If the shapes of the arrays do not agree, or if the arrays contain numbers that are infinite, NaN, or
        so extreme that products could overflow.
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
        """Create queries from dictionaries. A query is one term or a list of terms, and a term is a product
        of one factor per attribute.

        Parameters
        ----------
        domain : Domain
            Domain that contains the attributes.
        queries : sequence
            Queries. A term is given as {attribute: factor} or as (coefficient, {attribute: factor}). The
            empty term {} counts every record once. You can give a factor in three ways. The codes 0, 1, 2, …
            stand for the values of the attribute. A pair (lo, hi) means 1 for the codes from lo to hi − 1,
            and 0 for other codes. A set of codes means 1 for these codes, and 0 for other codes. An array
            contains one number for each code.

        Returns
        -------
        Products
            Queries, in the given order.

        Raises
        ------
        ValueError
            If a query has another form, if it names an attribute or code outside the domain, or if an array
            does not have one number per code.

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
        """Create queries that count the records in boxes. A box has one interval per attribute. The codes 0,
        1, 2, … stand for the values of an attribute. The interval contains the codes from `lo` to `hi` − 1.
        With `offsets`, a query counts the records in several boxes. Query i uses the boxes from offsets[i] to
        offsets[i + 1] − 1.
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
        """Create queries for sums of products of powers. For example, {"age": 1, "income": 2} asks for the
        sum of age·income² over all records. If the labels of an attribute are not numbers, the method uses
        their codes (0, 1, 2, …) instead.
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
        """Create one query per set of attributes, which asks for a Fourier coefficient. The coefficient is a
        sum over all records. Each attribute in the set gives a record the factor (−1)^code. The code (0, 1,
        2, …) stands for the record's value of the attribute. The record adds the product of its factors to
        the sum.
        """
        queries = []
        for names in subsets:
            sizes = {name: domain.shape[domain.axis(name)] for name in names}
            queries.append({name: (-1.0) ** np.arange(n) for name, n in sizes.items()})
        return cls.of(domain, queries)

    @classmethod
    def wavelets(cls, domain: Domain, attributes: Sequence[str]) -> Products:
        """Create one query for each combination of Haar wavelets, with one wavelet per attribute. The first
        wavelet is 1 everywhere. Each other wavelet is 1 on the left half of a dyadic interval, −1 on its
        right half, and 0 elsewhere.

        For an attribute with n values, the first dyadic interval contains as many codes as the smallest power
        of two that is at least n. All other dyadic intervals are obtained by halving this interval again and
        again. The method leaves out wavelets that are 0 on all n values.
        """
        if len(set(attributes)) != len(attributes):
            raise ValueError(f"attributes {attributes!r} must be different")
        queries: list[dict[str, Any]] = [{}]
        for name in attributes:
            factors = haar_factors(domain.shape[domain.axis(name)])
            queries = [{**query, name: factor} for query in queries for factor in factors]
        return cls.of(domain, queries)

    def on(self, domain: Domain) -> Products:
        """Return the same queries for another domain. The other domain must contain the attributes that the
        queries use, each with the same number of values.
        """
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
        """Return the queries with the numbers `rows`, in this order."""
        rows = np.arange(len(self))[rows]
        sizes = np.diff(self.offsets)[rows]
        ends = np.concatenate([[0], np.cumsum(sizes)])
        terms = np.repeat(self.offsets[rows] - ends[:-1], sizes) + np.arange(ends[-1])
        return Products(
            self.attributes, self.factors, self.which[terms], self.times[terms], ends
        )

    @cached_property
    def used(self) -> Bool[np.ndarray, " attributes"]:
        """Array with one entry per attribute, which is True if at least one term of a query uses it."""
        return sealed(self.which.any(axis=0))

    @cached_property
    def query(self) -> Int[np.ndarray, " terms"]:
        """Position of each term's query in the list of queries. A query is a sum of terms."""
        return sealed(np.repeat(np.arange(len(self)), np.diff(self.offsets)))

    @cached_property
    def sets(self) -> tuple[tuple[tuple[int, ...], Int[np.ndarray, " terms"]], ...]:
        """Terms in groups, where the terms of a group use the same attributes. A query is a sum of terms.
        Each group is a pair: the positions of its attributes in the domain, and the positions of its terms in
        the list of all terms.
        """
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
        """Upper bound, for each term, on the product of its coefficient and any of its factors. Numbers below
        1 count as 1, so a factor of 0 does not hide large factors.
        """
        bounds = np.maximum(np.abs(self.times), 1)
        with np.errstate(over="ignore"):
            for k, f in enumerate(self.factors):
                bounds = bounds * np.maximum(np.abs(f).max(axis=1), 1)[self.which[:, k]]
        return bounds

    @cached_property
    def max_terms(self) -> Float[np.ndarray, " terms"]:
        """Largest absolute value that each term can have for a record. A query is a sum of such terms."""
        magnitudes = np.abs(self.times)
        for k, f in enumerate(self.factors):
            magnitudes = magnitudes * np.abs(f).max(axis=1)[self.which[:, k]]
        return sealed(magnitudes)

    @cached_property
    def max_term(self) -> float:
        """Largest absolute value that any term can have for a record. A query is a sum of such terms."""
        return float(self.max_terms.max(initial=0.0))

    @cached_property
    def max_query(self) -> float:
        """Largest absolute change of any answer if one record is added, or an upper bound on this change."""
        return float(np.bincount(self.query, self.max_terms, len(self)).max(initial=0.0))

    @cached_property
    def integer_valued(self) -> bool:
        """Whether all answers are integers if all counts are integers. The result is also False if the
        absolute value of a term could be larger than 2²⁷.
        """
        arrays = (*self.factors, self.times)
        whole = all((a == np.rint(a)).all() for a in arrays)
        return whole and bool((self._largest_partial_products <= MAX_INTEGER_TERM).all())

    def dense_terms(
        self, terms: Int[np.ndarray, " terms"], axes: tuple[int, ...]
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the value of each term for all combinations of values of some attributes. A term is a
        coefficient times one factor per attribute, and its value is this product. `axes` contains the positions
        of the attributes in the domain. The terms come in several blocks. Each block is a pair: the positions
        of its terms in the list of all terms, and the values of these terms.
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
        """Return the expected answer to each query on a table with one random record. The record's value of
        each attribute is drawn independently. `prior` contains one vector of probabilities per attribute.
        """
        terms = self.times.copy()
        for k, f in enumerate(self.factors):
            if self.used[k]:
                terms *= (f @ prior[k])[self.which[:, k]]
        return np.bincount(self.query, terms, len(self))

    def sums_of_margins(self, margins: Margins) -> Float[np.ndarray, " queries"]:
        """Return the answers to the queries, computed from marginals (tables of counts on some of the
        attributes). A query is a sum of terms, and each term depends on some of the attributes. To compute a
        term, the method needs only the marginal on these attributes.
        """
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
        """Return the answers to the queries as integers, in units of `grid`. The integer n stands for the
        answer n·`grid`. A query is a sum of terms, and each record adds a value to each term. The method rounds
        each of these values to a multiple of `grid`.
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
    """Raise a ValueError if the factors have more than 2²⁶ values together. The check comes before memory is
    allocated.
    """
    if values > _MOST_VALUES:
        raise ValueError(
            f"factors with {values:,} values are too large: need at most {_MOST_VALUES:,}, one "
            "value per code and factor"
        )
