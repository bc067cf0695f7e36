"""Parser for typed queries, for example `sex=F & age in 30..39`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any, NamedTuple

import numpy as np

from workbench.queries.ranges import Recipe
from workbench.queries.selections import CodeSets, Selections
from workbench.spaces import Domain
from workbench.value import nearest, plain

# Typed

ALL = "*"  # every value of an attribute, where queries are typed
_BETWEEN = ("&", "and", "by", "×")  # conditions and attributes, where they stand alone
_IN = ("bare", "in")

_TOKEN = re.compile(
    r"""(?P<sign>\s*(?:=|\||\.\.)\s*)
      | (?P<space>[\s,]+)
      | (?P<quoted>"(?:[^"]|"")*"|'(?:[^']|'')*')
      | (?P<bare>(?!["'])(?:(?!\.\.)[^\s,=|])+)""",
    re.VERBOSE,
)
_FORM = (
    "need attribute=label, attribute=first..last or attribute=one|other, with spaces between"
)


def typed_query(text: str) -> dict[str, Any]:
    """Parse a query that was typed as text. Return it in the form that `labelled_queries` takes.

    Parameters
    ----------
    text : str
        Conditions, separated by spaces, commas, `&` or `and`: `attribute=label`, `attribute=first..last`
        (both included), `attribute=one|other` (a set, also of ranges), or `attribute=*`. `*` alone
        counts everything. `age in 30..39` means `age=30..39`. Names and labels with spaces or any of
        `= .. | ,` need quotes, inside which a doubled quote is one quote.

    Returns
    -------
    dict
        Labels, pairs and lists for each attribute.

    Raises
    ------
    ValueError
        If the text does not have this form.

    Examples
    --------
    >>> typed_query('origin="St. Gallen"|Bern hour=7..9')
    {'origin': ['St. Gallen', 'Bern'], 'hour': ('7', '9')}
    """
    return query_of(text, conditions_of(text))


def query_of(text: str, conditions: list[list[tuple[str, str]]]) -> dict[str, Any]:
    """Return the query that several conditions describe. The conditions are part of a text."""
    query: dict[str, Any] = {}
    for condition in conditions:
        if condition == [("bare", ALL)] and len(conditions) == 1:
            return {}
        if len(condition) < 3 or condition[0][0] == "sign" or condition[1] != ("sign", "="):
            raise ValueError(
                f"query {text[:60]!r}: {_shown(condition)!r} is not a condition: {_FORM}"
            )
        name = condition[0][1]
        if name in query:
            raise ValueError(
                f"query {text[:60]!r} names {name!r} twice: need one set, as {name}=one|other"
            )
        query[name] = _typed_labels(text, condition[2:])
    return {name: labels for name, labels in query.items() if labels != [ALL]}


def conditions_of(text: str) -> list[list[tuple[str, str]]]:
    """Split a text into conditions. Return the tokens of each condition and what kind they are."""
    conditions: list[list[tuple[str, str]]] = [[]]
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if not found:
            raise ValueError(f"query {text[:60]!r}: a quote is not closed")
        kind = str(found.lastgroup)
        token = found[0]
        place = found.end()
        if kind == "space":
            conditions.append([])
            continue
        if kind == "quoted":
            token = token[1:-1].replace(2 * token[0], token[0])
        conditions[-1].append((kind, token.strip() if kind == "sign" else token))
    between = [[("bare", word)] for word in _BETWEEN]
    conditions = _joined(c for c in conditions if c and c not in between)
    if len(conditions) > 1:
        conditions = [c for c in conditions if c != [("bare", ALL)]]  # "town * sex"
    if not conditions:
        raise ValueError(f"the query is empty: {_FORM}. {ALL!r} counts everything")
    return conditions


def _joined(conditions: Iterable[list[tuple[str, str]]]) -> list[list[tuple[str, str]]]:
    """Join conditions in which `in` is between a name and labels, as if they were written with `=`."""
    joined: list[list[tuple[str, str]]] = []
    for condition in conditions:
        if joined and joined[-1][-1:] == [_IN]:
            joined[-1][-1:] = [("sign", "="), *condition]
        elif condition == [_IN] and joined and len(joined[-1]) == 1:
            joined[-1] = [*joined[-1], _IN]
        else:
            joined.append(condition)
    return joined


def _typed_labels(text: str, tokens: list[tuple[str, str]]) -> Any:
    """Return a label, a pair, or a list of them, or [ALL] for any value."""
    if tokens == [("bare", ALL)]:
        return [ALL]
    parts: list[list[tuple[str, str]]] = [[]]
    for token in tokens:
        if token == ("sign", "|"):
            parts.append([])
        else:
            parts[-1].append(token)
    labels: list[Any] = []
    for part in parts:
        match part:
            case [(kind, label)] if kind != "sign":
                labels.append(label)
            case [(first, low), ("sign", ".."), (last, high)] if "sign" not in (first, last):
                labels.append((low, high))
            case _:
                raise ValueError(
                    f"query {text[:60]!r}: {_shown(tokens)!r} names no labels: {_FORM}. Put quotes around "
                    "labels with spaces or any of = .. | ,"
                )
    return labels[0] if len(labels) == 1 else labels


def _shown(tokens: list[tuple[str, str]]) -> str:
    return "".join(token for _, token in tokens)[:60]


# Labels

_MOST_ROWS = 1_000


def labelled_queries(domain: Domain, queries: Any) -> Selections:
    """Convert queries that name labels (for example "Bern") to queries that choose codes (the numbers of the
    labels).

    Parameters
    ----------
    domain : Domain
        Domain with these labels.
    queries : mapping, str, or a list of them
        {attribute: labels} counts the records that satisfy the condition on every named attribute. Labels
        are one label, a pair (first, last) that includes both ends in the order of the domain, or a list or
        set of labels and pairs. Attributes that are not named may have any value. `typed_query` parses a
        query given as text.

    Returns
    -------
    Selections
        Queries in the same order.

    Raises
    ------
    ValueError
        If the domain does not have an attribute or label (the message names the nearest), or a query
        selects nothing.

    Examples
    --------
    >>> domain = Domain(("hour",), (24,))
    >>> labelled_queries(domain, [{"hour": (7, 9)}, {"hour": [7, 9]}, {}]).cells(domain)
    array([ 3.,  2., 24.])
    """
    if not isinstance(queries, Iterable):
        raise ValueError(
            f"{queries!r} is not a query: need {{attribute: labels}}, its text, or a list"
        )
    listed = [queries] if isinstance(queries, Mapping | str) else list(queries)
    named: dict[int, list[_Named]] = {}
    for i, query in enumerate(listed):
        chosen = typed_query(query) if isinstance(query, str) else query
        if not isinstance(chosen, Mapping):
            raise ValueError(
                f"query {i} is {str(query)[:60]!r}: need {{attribute: labels}}, or its text"
            )
        for name, labels in chosen.items():
            axis = _axis(domain, name)
            named.setdefault(axis, []).append(_Named(i, _ends(name, labels)))
    codes = [CodeSets.of(n, []) for n in domain.shape]
    which = np.zeros((len(listed), len(domain.shape)), np.int64)
    for axis, conditions in named.items():
        different: dict[tuple[tuple[int, int], ...], int] = {}
        for condition, runs in zip(conditions, _runs(domain, axis, conditions), strict=True):
            if runs != ((0, domain.shape[axis]),):
                place = different.setdefault(runs, len(different) + 1)
                which[condition.query, axis] = place
        codes[axis] = CodeSets.of(domain.shape[axis], list(different))
    return Selections(domain.attributes, tuple(codes), which)


def as_workload(domain: Domain | None, queries: Any) -> Recipe:
    """Convert queries that name labels to a workload over the domain. Return workloads and recipes
    unchanged.
    """
    if hasattr(queries, "on"):
        recipe: Recipe = queries
        return recipe
    if domain is None:
        raise ValueError(
            "the bank is empty, so it has no labels that a query could name. Ask a question first"
        )
    return labelled_queries(domain, queries)


class _Named(NamedTuple):
    """Labels that a query names for one attribute: the first and the last label of each range,
    alternating.
    """

    query: int
    ends: list[Any]


def marginal_queries(domain: Domain, attributes: Sequence[str]) -> Selections:
    """Make one query for each combination of labels of some attributes, in an order in which the last
    attribute varies fastest.

    Parameters
    ----------
    domain : Domain
        Domain with these attributes.
    attributes : sequence of str
        Different attributes.

    Returns
    -------
    Selections
        At most 2²² queries.

    Raises
    ------
    ValueError
        If no attribute is named, one is named twice or is missing, or there are too many cells.
    """
    names = tuple(attributes)
    if not names or len(set(names)) < len(names):
        raise ValueError(
            f"attributes {names!r} are not allowed: need one or more different attributes"
        )
    for name in names:
        _axis(domain, name)
    return Selections.cells_of(domain, names)


class TypedQuestion(NamedTuple):
    """Parsed line of text that asks one query for each combination of labels of some attributes.

    `by` contains the names of these attributes, and `labels` has their labels for each query. If every
    attribute in the text has a condition, there is one query without labels.
    """

    queries: Selections
    by: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]


def typed_question(domain: Domain, text: str, most: int = _MOST_ROWS) -> TypedQuestion:
    """Parse a typed question. It has conditions, and names attributes. It asks one query for each
    combination of the labels of these attributes.

    Parameters
    ----------
    domain : Domain
        Domain with these labels.
    text : str
        Conditions in the form of `typed_query`, and names of attributes without a condition, separated by
        `×`, `by`, `&` or commas.
    most : int
        Largest number of queries.

    Returns
    -------
    TypedQuestion
        Queries, with the last attribute varying fastest.

    Raises
    ------
    ValueError
        If the text does not have this form, names an attribute or label that is not in the domain, or makes
        more than `most` queries.

    Examples
    --------
    >>> domain = Domain(("sex", "age"), (2, 90), (("F", "M"), None))
    >>> question = typed_question(domain, "sex & age in 30..39")
    >>> question.by, question.labels, question.queries.cells(domain)
    (('sex',), (('F',), ('M',)), array([10., 10.]))
    """
    conditions = conditions_of(text)
    is_name = [len(c) == 1 and c[0][0] != "sign" and c != [("bare", ALL)] for c in conditions]
    by = tuple(c[0][1] for c, name in zip(conditions, is_name, strict=True) if name)
    stated = [c for c, name in zip(conditions, is_name, strict=True) if not name]
    query = query_of(text, stated)
    for name in by:
        _axis(domain, name)
        if by.count(name) > 1 or name in query:
            raise ValueError(f"question {text[:60]!r} names {name!r} twice: need it once")
    shape = [domain.shape[domain.axis(name)] for name in by]
    if prod(shape) > most:
        raise ValueError(
            f"{' × '.join(by)[:60]} has {prod(shape):,} combinations of labels, but at most "
            f"{most:,} are answered at once. Select some labels, for example {by[-1]}=first..last"
        )
    names = [domain.decode(name, np.arange(domain.shape[domain.axis(name)])) for name in by]
    labels = tuple(product(*(column.tolist() for column in names)))
    each = [query | dict(zip(by, row, strict=True)) for row in labels]
    return TypedQuestion(labelled_queries(domain, each), by, labels)


def _axis(domain: Domain, name: Any) -> int:
    """Return the index of an attribute. If it does not exist, the error names the nearest attribute."""
    if name not in domain.attributes:
        raise ValueError(
            f"attribute {str(name)[:60]!r} is not in the domain: {nearest(str(name), domain.attributes)}"
        )
    return domain.axis(name)


def _ends(name: str, labels: Any) -> list[Any]:
    """Return the first and the last label of each range, alternating. A single label is both."""
    is_set = isinstance(labels, Iterable) and not isinstance(labels, str | bytes | tuple)
    ends: list[Any] = []
    for part in labels if is_set else [labels]:
        if not isinstance(part, tuple):
            ends += [part, part]
        elif len(part) == 2:
            ends += part
        else:
            raise ValueError(
                f"{name} = {str(labels)[:60]}: a tuple must be a pair (first, last), with both ends "
                "included. Use a list for a set of labels"
            )
    if not ends:
        raise ValueError(f"{name} = {labels!r} selects nothing: need at least one label")
    return ends


def _runs(
    domain: Domain, axis: int, conditions: list[_Named]
) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield the codes of each condition as runs [lo, hi) that neither touch nor overlap."""
    name = domain.attributes[axis]
    codes = _codes(domain, name, [label for _, ends in conditions for label in ends])
    start = 0
    for _, ends in conditions:
        pairs = codes[start : start + len(ends)].reshape(-1, 2)
        start += len(ends)
        wrong = pairs[:, 0] > pairs[:, 1]
        if wrong.any():
            low, high = ends[2 * int(wrong.argmax()) :][:2]
            raise ValueError(
                f"{name} = {low}..{high} selects nothing, because {low} comes after {high} in the "
                "domain. To go around the end, use two ranges joined by |"
            )
        runs: list[tuple[int, int]] = []
        for lo, last in sorted(map(tuple, pairs.tolist())):
            if runs and lo <= runs[-1][1]:
                runs[-1] = (runs[-1][0], max(runs[-1][1], last + 1))
            else:
                runs.append((lo, last + 1))
        yield tuple(runs)


def _codes(domain: Domain, name: str, labels: list[Any]) -> np.ndarray:
    """Return the code of each label. If a label does not exist, the error names the nearest label."""
    values = domain.decode(name, np.arange(1))
    kind = type(values[0]) if values.dtype == object else int
    codes = domain.encode(name, [_text(label, kind) for label in labels])
    if (codes < 0).any():
        label = str(labels[int((codes < 0).argmax())])
        raise ValueError(
            f"{plain(name)} = {label[:60]!r} is not in the domain: {_nearest_labels(domain, name, label)}"
        )
    return codes


def _text(label: Any, kind: type) -> str:
    """Return a label in the form that the domain uses for labels of a kind."""
    text = str(label)
    try:
        if kind is bool:
            return text.capitalize()
        if kind is float and "_" not in text:
            return str(float(text))
        if kind is int and isinstance(label, float | np.floating) and label == int(label):
            return str(int(label))
    except (ValueError, OverflowError):
        pass
    return text


def _nearest_labels(domain: Domain, name: str, label: str) -> str:
    """Return the text of an error that names the labels nearest to one that does not exist."""
    own = domain.labels and domain.labels[domain.axis(name)]
    if own is None:
        own = range(domain.shape[domain.axis(name)])
    if not isinstance(own, range):
        return nearest(label, [str(x) for x in own])
    shown = f"its values are {own[0]} to {own[-1]}"
    if ends := re.fullmatch(r"(\d+)-(\d+)", label):
        return f"{shown}; a range is written {ends[1]}..{ends[2]}"
    if abs(own.step) != 1:
        shown += f" by {abs(own.step)}"
    try:
        steps = (float(label) - own.start) / own.step
        return f"{shown}, the nearest is {own[round(min(max(steps, 0), len(own) - 1))]}"
    except ValueError:
        return shown
