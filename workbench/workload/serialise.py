"""Linear queries in plain words, as text that any reader understands, and back.

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
from workbench.workload.products import Products, TableQueries, Together


def to_text(workload: Products | TableQueries | Together) -> list[str]:
    """A line of JSON for each query: equal text, equal query."""
    if isinstance(workload, Together):
        return [text for part in workload.parts for text in to_text(part)]
    if isinstance(workload, TableQueries):
        out = [""] * len(workload)
        for names, tables, own in workload.parts():
            front = f'{{"table": {json.dumps(names)}, "values": '
            for i, table in zip(own.tolist(), tables, strict=True):
                out[i] = front + json.dumps(_plain(table.ravel())) + "}"
        return out
    words = [
        [f"{json.dumps(name)}: {json.dumps(_factor(row))}" for row in factor]
        for name, factor in zip(workload.attributes, workload.factors, strict=True)
    ]
    terms = [
        f"[{json.dumps(c)}, {{{', '.join(words[k][w] for k, w in enumerate(row) if w)}}}]"
        for c, row in zip(_plain(workload.times), workload.which.tolist(), strict=True)
    ]
    ends = workload.offsets.tolist()
    return [
        f"[{', '.join(sorted(terms[a:b]))}]" for a, b in zip(ends[:-1], ends[1:], strict=True)
    ]


def from_text(domain: Domain, texts: Sequence[str]) -> Products | TableQueries | Together:
    """What `told` told; a ValueError for anything else."""
    queries, parts = [_query(domain, text) for text in texts], []
    kinds = np.array([isinstance(q, tuple) for q in queries], bool)
    runs = np.flatnonzero(np.diff(kinds, prepend=not kinds[0])) if len(kinds) else [0]
    for a, b in zip(runs, [*runs[1:], len(queries)], strict=True):
        of = TableQueries.of if len(kinds) and kinds[a] else Products.of
        parts.append(of(domain, queries[a:b]))
    return parts[0] if len(parts) == 1 else Together(tuple(parts))


def _query(domain: Domain, text: str) -> Any:
    try:
        match query := json.loads(text):
            case {"table": names, "values": values}:
                shape = [domain.shape[domain.axis(a)] for a in names]
                return tuple(names), np.reshape(np.array(values, float), shape)
            case [*terms]:
                return [(float(c), {a: _values(f) for a, f in own.items()}) for c, own in terms]
    except (TypeError, AttributeError, ValueError) as e:
        raise ValueError(f"{text[:80]!r} is no query over {domain.attributes}: {e}") from None
    raise ValueError(f"{str(query)[:80]!r} is no query: need a list of terms, or a table")


def _values(factor: Any) -> Any:
    match factor:
        case [int(lo), int(hi)]:
            return lo, hi
        case {"codes": codes}:
            return set(codes)
        case {"values": values}:
            return np.array(values, float)
    raise ValueError(f"{str(factor)[:60]!r} is no factor")


def _factor(row: np.ndarray) -> Any:
    if ((row == 0) | (row == 1)).all():
        codes = np.flatnonzero(row)
        if not len(codes):
            return [0, 0]
        if codes[-1] - codes[0] + 1 == len(codes):
            return [int(codes[0]), int(codes[-1]) + 1]
        return {"codes": codes.tolist()}
    return {"values": _plain(row)}


def _plain(values: np.ndarray) -> list:
    """Floats, or whole numbers where they are and are exact: shorter, and equal text."""
    return [int(x) if x == int(x) and abs(x) < 2**53 else x for x in values.tolist()]
