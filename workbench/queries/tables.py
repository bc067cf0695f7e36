"""Linear queries that are given by tables. A table contains the value of a query for each combination of
values of some attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from workbench.queries.linear import (
    MAX_INTEGER_TERM,
    Linear,
    Margins,
    Prior,
    axes_in_domain,
    prior_margin,
    refuse_extreme,
    whole_numbers,
)
from workbench.queries.ranges import digest_text
from workbench.spaces import Domain
from workbench.value import Float, Int, read_only, sealed


class TableGroup(NamedTuple):
    """Queries on the same attributes: the names of the attributes, one table of values per query, and the
    positions of the queries in the list of all queries.
    """

    attributes: tuple[str, ...]
    tables: Float[np.ndarray, "queries ..."]
    queries: Int[np.ndarray, " queries"]


@dataclass(frozen=True, eq=False, repr=False)
class TableQueries(Linear):
    """Linear queries, each on a few attributes. A linear query gives a number to each record and adds up
    these numbers. Each query has a table with one number for each combination of values of its attributes
    (Chen et al., EDBT 2012, Theorem 2). The codes 0, 1, 2, … stand for the values of an attribute.

    Parameters
    ----------
    groups : tuple of (tuple of str, float64[queries, codes of the first, codes of the second, …])
        One pair per set of attributes. A pair contains the names of the attributes, in the order of the
        domain, and an array with the tables of all queries on these attributes.
    order : int64[queries], optional
        Position of each table's query in the list of all queries. The tables of the first group come first,
        then the tables of the second, and so on. By default, the queries are in the order of the tables.

    Raises
    ------
    ValueError
        If a table does not fit its attributes, if a number is infinite, NaN, or so extreme that products
        could overflow, or if `order` does not contain each position once.
    """

    groups: tuple[tuple[tuple[str, ...], Float[np.ndarray, "queries ..."]], ...]
    order: Int[np.ndarray, " queries"] = None  # type: ignore[assignment]  # filled below

    def __post_init__(self) -> None:
        groups = tuple(_checked_group(names, tables) for names, tables in self.groups)
        size = sum(len(tables) for _, tables in groups)
        order = np.arange(size) if self.order is None else np.asarray(self.order, np.int64)
        if order.shape != (size,) or (np.sort(order) != np.arange(size)).any():
            raise ValueError(f"TableQueries.order must name each of {size} queries once")
        object.__setattr__(self, "groups", groups)
        object.__setattr__(self, "order", read_only(order))

    @classmethod
    def of(cls, domain: Domain, queries: Sequence[tuple[Sequence[str], Any]]) -> TableQueries:
        """Create queries from pairs. A pair contains the names of a query's attributes and a table. The table
        contains one number for each combination of the attributes' values.

        Parameters
        ----------
        domain : Domain
            Domain that contains the attributes.
        queries : sequence of (sequence of str, array)
            Pair for each query: the names of its attributes, and its table. The axes of the table are in the
            order of the names.

        Returns
        -------
        TableQueries
            Queries, in the given order.

        Raises
        ------
        ValueError
            If an attribute is not in the domain, or if a table does not have one entry for each combination
            of codes.

        Examples
        --------
        >>> domain = Domain(("age", "sex"), (3, 2))
        >>> TableQueries.of(domain, [(("sex", "age"), [[0, 0, 0], [0, 1, 1]])]).cells(domain)
        array([2.])
        """
        tables_of: dict[tuple[str, ...], list[np.ndarray]] = {}
        queries_of: dict[tuple[str, ...], list[int]] = {}
        for i, (names, table) in enumerate(queries):
            axes = [domain.axis(a) for a in names]
            shape = tuple(domain.shape[k] for k in axes)
            table = np.asarray(table, float)
            if table.shape != shape:
                raise ValueError(
                    f"query {i} on {tuple(names)} has a table of shape {table.shape}: need {shape}"
                )
            sorted_names = tuple(domain.attributes[k] for k in sorted(axes))
            tables_of.setdefault(sorted_names, []).append(table.transpose(np.argsort(axes)))
            queries_of.setdefault(sorted_names, []).append(i)
        groups = tuple((names, np.stack(tables)) for names, tables in tables_of.items())
        order = np.concatenate([np.empty(0, np.int64), *queries_of.values()])
        return cls(groups, order.astype(np.int64))

    def on(self, domain: Domain) -> TableQueries:
        """Return the same queries for another domain. The other domain must contain the attributes of the
        queries, each with the same number of values.

        The method reorders the axes of the tables, if the attributes have another order in the new domain.
        """
        groups = []
        for names, tables in self.groups:
            axes = axes_in_domain(domain, names, tables.shape[1:])
            by_axis = sorted(axes, key=axes.__getitem__)
            if by_axis == list(range(len(names))):
                groups.append((names, tables))
            else:
                turned = tables.transpose(0, *(k + 1 for k in by_axis))
                groups.append((tuple(names[k] for k in by_axis), sealed(turned.copy())))
        same = all(a is b for (_, a), (_, b) in zip(groups, self.groups, strict=True))
        return self if same else TableQueries(tuple(groups), self.order)

    def __len__(self) -> int:
        return len(self.order)

    def __repr__(self) -> str:
        names = [np.frombuffer(repr(names).encode(), np.uint8) for names, _ in self.groups]
        return digest_text(self, self.order, *names, *(tables for _, tables in self.groups))

    def __getitem__(self, rows: Any) -> TableQueries:
        """Return the queries with the numbers `rows`, in this order."""
        rows = np.arange(len(self))[rows]
        table_of_query = np.empty(len(self), np.int64)
        table_of_query[self.order] = np.arange(len(self))  # all groups in turn
        wanted = table_of_query[rows]
        groups = []
        order = [np.empty(0, np.int64)]
        start = 0
        for names, tables in self.groups:
            chosen = np.flatnonzero((wanted >= start) & (wanted < start + len(tables)))
            if len(chosen):
                groups.append((names, sealed(tables[wanted[chosen] - start])))
                order.append(chosen)
            start += len(tables)
        return TableQueries(tuple(groups), np.concatenate(order))

    def numbered_groups(self) -> Iterator[TableGroup]:
        """Yield one group after the other. A group contains the queries on the same attributes and their
        positions in the list of all queries.
        """
        start = 0
        for names, tables in self.groups:
            yield TableGroup(names, tables, self.order[start : start + len(tables)])
            start += len(tables)

    @cached_property
    def max_term(self) -> float:
        """Largest absolute value in the tables, which is the largest absolute change of any answer if one
        record is added.
        """
        return max((float(np.abs(t).max(initial=0.0)) for _, t in self.groups), default=0.0)

    @property
    def max_query(self) -> float:
        """Largest absolute change of any answer if one record is added."""
        return self.max_term

    @cached_property
    def integer_valued(self) -> bool:
        """Whether all answers are integers if all counts are integers. The result is also False if the
        absolute value of an entry of a table is larger than 2²⁷.
        """
        whole = all((t == np.rint(t)).all() for _, t in self.groups)
        return whole and self.max_term <= MAX_INTEGER_TERM

    def means(self, domain: Domain, prior: Prior) -> Float[np.ndarray, " queries"]:
        """Return the expected answer to each query on a table with one random record. The record's value of
        each attribute is drawn independently. `prior` contains one vector of probabilities per attribute.
        """
        means = np.zeros(len(self))
        for names, tables, queries in self.numbered_groups():
            means[queries] = prior_margin(tables, [prior[domain.axis(a)] for a in names], ())
        return means

    def sums_of_margins(self, margins: Margins) -> Float[np.ndarray, " queries"]:
        """Return the answers to the queries, computed from marginals (tables of counts on some of the
        attributes). Queries on the same attributes form a group. For each group, the method needs the
        marginal on these attributes.
        """
        sums = np.zeros(len(self))
        for names, tables, queries in self.numbered_groups():
            axes = tuple(margins.domain.axis(a) for a in names)
            flat = tables.reshape(len(tables), -1)
            dense = margins.dense(axes)
            if dense is None:
                codes, values = margins.occupied_cells(axes)
                sums[queries] = flat[:, np.ravel_multi_index(codes, tables.shape[1:])] @ values
            else:
                sums[queries] = flat @ dense.ravel()
        return sums

    def grid_units_of_margins(self, margins: Margins, grid: float) -> np.ndarray:
        """Return the answers to the queries as integers, in units of `grid`. The integer n stands for the
        answer n·`grid`. The method rounds the entries of the queries' tables to multiples of `grid`.
        """
        sums = np.zeros(len(self), object)
        for names, tables, queries in self.numbered_groups():
            axes = tuple(margins.domain.axis(a) for a in names)
            codes, counts = margins.occupied_cells(axes)
            cells = np.ravel_multi_index(codes, tables.shape[1:]) if names else slice(None)
            for i, table in zip(queries, tables.reshape(len(tables), -1), strict=True):
                units = np.rint(table / grid).astype(np.int64)[cells]
                limbs = np.stack([units >> 18, (units >> 9) & 511, units & 511], axis=1)
                totals = (counts[:, None] * limbs).sum(axis=0)
                (sums[i],) = whole_numbers(totals[None])
        return sums


def _checked_group(names: Sequence[str], tables: Any) -> tuple[tuple[str, ...], np.ndarray]:
    """Return the attributes and tables of one group, with a read-only array. Raise a ValueError if the two do
    not fit.
    """
    names = tuple(names)
    tables = np.asarray(tables, float)
    if len(set(names)) != len(names) or tables.ndim != len(names) + 1:
        raise ValueError(
            f"TableQueries.groups: tables of shape {tables.shape} do not fit {names}: need different "
            "attributes, and one axis for queries and one per attribute"
        )
    if not np.isfinite(tables).all():
        raise ValueError(f"TableQueries.groups of {names} must be finite numbers")
    refuse_extreme("TableQueries", np.abs(tables), tables)
    return names, read_only(tables)
