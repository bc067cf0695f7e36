"""Workloads as people state them: an order of marginals, or a file of marginals or queries."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from workbench.domain import Domain
from workbench.preparation.statements import read_json
from workbench.workload.labels import labelled_queries
from workbench.workload.marginals import Marginals, NamedMarginals
from workbench.workload.selections import Selections


def read_marginals(text: str, domain: Domain) -> Marginals | NamedMarginals:
    """The marginals that are meant.

    Parameters
    ----------
    text : str
        A whole number, for all marginals on so many attributes; or a file with one marginal a line, its
        attributes parted by commas, or with a JSON list of lists of attributes.
    domain : Domain
        Which has the attributes.

    Returns
    -------
    Marginals or NamedMarginals
        A recipe, which fits the domain.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it says something else, or an attribute is not in the domain.
    """
    if text.isascii() and text.isdigit():
        marginals = Marginals(int(text[:20]))
        if not 1 <= marginals.k <= len(domain.shape):
            raise ValueError(
                f"marginals on {text[:20]} attributes: need 1 to {len(domain.shape)}, all that the domain "
                "has"
            )
        return marginals
    path = Path(text)
    _refuse_no_file(path)
    if path.suffix == ".json":
        sets = read_json(path)
    else:
        sets = list(csv.reader(_file_text(path).splitlines(), skipinitialspace=True))
    good = isinstance(sets, list) and all(isinstance(names, list) for names in sets)
    good = good and all(isinstance(name, str) for names in sets for name in names)
    if not good:
        raise ValueError(f"{path}: need a list of lists of attributes, one a marginal")
    named = tuple(tuple(name.strip() for name in names) for names in sets if names)
    for name in (name for names in named for name in names):
        if name not in domain.attributes:
            raise ValueError(f"{path}: attribute {name!r} is not in {domain.attributes}")
    try:
        return NamedMarginals(named)
    except ValueError as e:
        raise ValueError(f"{path}: {e}") from None


def read_queries(text: str, domain: Domain) -> Selections:
    """The queries of a file, by label.

    Parameters
    ----------
    text : str
        A file with one query a line, as `origin=Bern hour=7..9`; lines that begin with # are comments. Or a
        JSON list of such texts, or of objects {attribute: labels}: a label, a list of labels, or
        {"from": label, "to": label}, of which both belong to it.
    domain : Domain
        Whose labels they are.

    Returns
    -------
    Selections

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it says something else, or of another domain; the line is named.
    """
    path = Path(text)
    _refuse_no_file(path)
    if path.suffix == ".json":
        parsed = read_json(path)
        if not isinstance(parsed, list):
            raise ValueError(f"{path}: need a list of queries")
        queries = list(enumerate(map(_labels_from_json, parsed), 1))
    else:
        lines = ((n, line.strip()) for n, line in enumerate(_file_text(path).splitlines(), 1))
        queries = [(n, line) for n, line in lines if line and not line.startswith("#")]
    if not queries:
        raise ValueError(f"{path} holds no query")
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
    """A query as `labelled_queries` takes it."""
    if not isinstance(query, dict):
        return query
    return {name: _range_from_json(labels) for name, labels in query.items()}


def _range_from_json(labels: Any) -> Any:
    """{"from": a, "to": b} as a pair, alone or in a list."""
    match labels:
        case {"from": low, "to": high, **other} if not other:
            return (low, high)
        case [*several]:
            return [_range_from_json(part) for part in several]
    return labels


def _refuse_no_file(path: Path) -> None:
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file of queries")


def _file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as e:
        raise ValueError(f"{path}: not a text in UTF-8 ({e.reason})") from None
