"""Conversion of linear queries to text and back, and reading of queries from files.

A query that is a sum of products is written as a list of terms [coefficient, {attribute: factor}]. A factor
has one value per code of the attribute. It is written in one of three forms. [lo, hi] has the value 1 for the
codes from lo to hi − 1. {"codes": […]} has the value 1 for the listed codes. {"values": […]} lists the value
for every code. A query that is given by a table of its values is written as {"table": [attributes], "values":
[…]}. The values are in the order of a nested loop, with the last attribute in the innermost loop.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.queries.conversion import Together
from workbench.queries.linear import Linear
from workbench.queries.products import Products
from workbench.queries.recipes import Marginals, NamedMarginals
from workbench.queries.selections import Selections
from workbench.queries.tables import TableQueries
from workbench.queries.typed import labelled_queries
from workbench.spaces import Domain
from workbench.spaces.statements import read_json, read_text

# Serialise


def to_text(workload: Any) -> list[str]:
    """Return one line of JSON for each linear query. Queries with the same terms, or the same table, give the
    same line.
    """
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
    """Return the queries that are written in lines of JSON, as `to_text` writes them. Raise a ValueError if a
    line has another form.
    """
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
    """Return one query in the form that `TableQueries.of` or `Products.of` takes."""
    try:
        match query := json.loads(text):
            case {"table": names, "values": values}:
                shape = [domain.shape[domain.axis(a)] for a in names]
                return tuple(names), np.reshape(np.array(values, float), shape)
            case [*terms]:
                return [_term(term) for term in terms]
    except (TypeError, AttributeError, ValueError) as e:
        raise ValueError(f"{text[:80]!r} is no query over {domain.attributes}: {e}") from None
    raise ValueError(f"{str(query)[:80]!r} is not a query: need a list of terms or a table")


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
    raise ValueError(f"{str(factor)[:60]!r} is not a factor")


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
    """Return the numbers as a list. Numbers that are integers become Python integers, so equal numbers have
    equal text.
    """
    return [int(x) if x == int(x) and abs(x) < 2**53 else x for x in values.tolist()]


# Stated


def read_marginals(text: str, domain: Domain) -> Marginals | NamedMarginals:
    """Read which marginals to release. A marginal is a table of counts on a few of the attributes.

    Parameters
    ----------
    text : str
        An integer k, for all marginals on k attributes, or the name of a file. A text file contains one
        marginal per line, with the names of attributes separated by commas. A JSON file contains a list of
        lists of names.
    domain : Domain
        Domain that contains the attributes.

    Returns
    -------
    Marginals or NamedMarginals
        Description of the marginals, from which a mechanism creates the queries.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If k is not between 1 and the number of attributes, if the file does not have one of these forms, or
        if an attribute is not in the domain.
    """
    if text.isascii() and text.isdigit():
        marginals = Marginals(int(text[:20]))
        if not 1 <= marginals.k <= len(domain.shape):
            raise ValueError(
                f"marginals on {text[:20]} attributes: need 1 to {len(domain.shape)}, because the domain has "
                f"{len(domain.shape)} attributes"
            )
        return marginals
    path = Path(text)
    if path.suffix == ".json":
        sets = read_json(path)
    else:
        sets = list(csv.reader(read_text(path).splitlines(), skipinitialspace=True))
    good = isinstance(sets, list) and all(isinstance(names, list) for names in sets)
    good = good and all(isinstance(name, str) for names in sets for name in names)
    if not good:
        raise ValueError(f"{path}: need a list of lists of attributes, one list per marginal")
    named = tuple(tuple(name.strip() for name in names) for names in sets if names)
    for name in (name for names in named for name in names):
        if name not in domain.attributes:
            raise ValueError(f"{path}: attribute {name!r} is not in {domain.attributes}")
    try:
        return NamedMarginals(named)
    except ValueError as e:
        raise ValueError(f"{path}: {e}") from None


def read_queries(text: str, domain: Domain) -> Selections:
    """Read queries that are written with labels from a file, for example `origin=Bern hour=7..9`.

    Parameters
    ----------
    text : str
        Name of the file. A text file contains one query per line, for example `origin=Bern hour=7..9`. Lines
        that begin with # are comments. A JSON file contains a list of queries. A query in it is such a text,
        or an object {attribute: labels}. The labels are one label, a list of labels, or {"from": label, "to":
        label} for a range with both ends included.
    domain : Domain
        Domain that contains the attributes and labels.

    Returns
    -------
    Selections

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a query does not have this form, or names an attribute or label that is not in the domain. The
        message gives the number of the line or query.
    """
    path = Path(text)
    if path.suffix == ".json":
        parsed = read_json(path)
        if not isinstance(parsed, list):
            raise ValueError(f"{path}: need a list of queries")
        queries = list(enumerate(map(_labels_from_json, parsed), 1))
    else:
        lines = ((n, line.strip()) for n, line in enumerate(read_text(path).splitlines(), 1))
        queries = [(n, line) for n, line in lines if line and not line.startswith("#")]
    if not queries:
        raise ValueError(f"{path} contains no query")
    try:
        return labelled_queries(domain, [query for _, query in queries])
    except ValueError:
        place = "query" if path.suffix == ".json" else "line"
        for n, query in queries:
            try:
                labelled_queries(domain, [query])
            except ValueError as e:
                raise ValueError(f"{path}, {place} {n}: {e}") from None
        raise


def _labels_from_json(query: Any) -> Any:
    """Return a query from a JSON file in the form that `labelled_queries` takes."""
    if not isinstance(query, dict):
        return query
    return {name: _range_from_json(labels) for name, labels in query.items()}


def _range_from_json(labels: Any) -> Any:
    """Return the labels of a query with every {"from": a, "to": b} replaced by the pair (a, b)."""
    match labels:
        case {"from": low, "to": high, **other} if not other:
            return (low, high)
        case [*several]:
            return [_range_from_json(part) for part in several]
    return labels
