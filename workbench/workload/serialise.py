"""Linear queries as text that any reader understands, and back.

A query of products is a list of [coefficient, {attribute: factor}]; a factor is [lo, hi] (codes
lo <= x < hi count 1), {"codes": […]} or {"values": […]}, one a code. A table is {"table": [attributes],
"values": […]}, in the order of keys.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from workbench.domain import Domain
from workbench.workload.linear import Linear
from workbench.workload.products import Products
from workbench.workload.tables import TableQueries
from workbench.workload.together import Together


def to_text(workload: Any) -> list[str]:
    """A line of JSON for each linear query: equal text, equal query."""
    if isinstance(workload, Together):
        return [text for part in workload.parts for text in to_text(part)]
    if isinstance(workload, TableQueries):
        return _table_texts(workload)
    factors = []  # the text of each attribute's factors
    for name, factor in zip(workload.attributes, workload.factors, strict=True):
        factors.append(
            [f"{json.dumps(name)}: {json.dumps(_factor_json(row))}" for row in factor]
        )
    terms = []
    for c, row in zip(_numbers(workload.times), workload.which.tolist(), strict=True):
        used = ", ".join(factors[k][w] for k, w in enumerate(row) if w)
        terms.append(f"[{json.dumps(c)}, {{{used}}}]")
    ends = workload.offsets.tolist()
    return [
        f"[{', '.join(sorted(terms[a:b]))}]" for a, b in zip(ends[:-1], ends[1:], strict=True)
    ]


def _table_texts(workload: TableQueries) -> list[str]:
    texts = [""] * len(workload)
    for names, tables, queries in workload.numbered_groups():
        front = f'{{"table": {json.dumps(names)}, "values": '
        for i, table in zip(queries.tolist(), tables, strict=True):
            texts[i] = front + json.dumps(_numbers(table.ravel())) + "}"
    return texts


def from_text(domain: Domain, texts: Sequence[str]) -> Linear:
    """The queries of `to_text`; a ValueError for anything else."""
    queries = [_query(domain, text) for text in texts]
    is_table = np.array([isinstance(q, tuple) for q in queries], bool)
    runs = (
        np.flatnonzero(np.diff(is_table, prepend=not is_table[0])).tolist() if queries else [0]
    )
    parts = []
    for start, stop in zip(runs, [*runs[1:], len(queries)], strict=True):
        kind = TableQueries if queries and is_table[start] else Products
        parts.append(kind.of(domain, queries[start:stop]))
    return parts[0] if len(parts) == 1 else Together(tuple(parts))


def _query(domain: Domain, text: str) -> Any:
    """What `TableQueries.of` or `Products.of` takes."""
    try:
        match query := json.loads(text):
            case {"table": names, "values": values}:
                shape = [domain.shape[domain.axis(a)] for a in names]
                return tuple(names), np.reshape(np.array(values, float), shape)
            case [*terms]:
                return [_term(term) for term in terms]
    except (TypeError, AttributeError, ValueError) as e:
        raise ValueError(f"{text[:80]!r} is no query over {domain.attributes}: {e}") from None
    raise ValueError(f"{str(query)[:80]!r} is no query: need a list of terms, or a table")


def _term(term: Any) -> tuple[float, dict[str, Any]]:
    coefficient, factors = term
    return float(coefficient), {a: _factor(f) for a, f in factors.items()}


def _factor(factor: Any) -> Any:
    match factor:
        case [int(lo), int(hi)]:
            return lo, hi
        case {"codes": codes}:
            return set(codes)
        case {"values": values}:
            return np.array(values, float)
    raise ValueError(f"{str(factor)[:60]!r} is no factor")


def _factor_json(row: np.ndarray) -> Any:
    if not ((row == 0) | (row == 1)).all():
        return {"values": _numbers(row)}
    codes = np.flatnonzero(row)
    if not len(codes):
        return [0, 0]
    if codes[-1] - codes[0] + 1 == len(codes):
        return [int(codes[0]), int(codes[-1]) + 1]
    return {"codes": codes.tolist()}


def _numbers(values: np.ndarray) -> list[Any]:
    """Floats, or whole numbers where they are and are exact: shorter, and equal text."""
    return [int(x) if x == int(x) and abs(x) < 2**53 else x for x in values.tolist()]
