"""Parser for queries that are written as text with labels, for example `sex=F & age in 30..39`."""

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

ALL = "*"  # any value of an attribute, in queries as text
_BETWEEN = ("&", "and", "by", "×")  # words that separate conditions and attributes
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
    """Parse a query that is written as text. Return the query as a dictionary that `labelled_queries`
    accepts.

    Parameters
    ----------
    text : str
        Conditions, separated by spaces, commas, `&` or `and`. A condition has one of four forms:
        `attribute=label`, `attribute=first..last` for a range that includes both ends, `attribute=one|other`
        for a set of labels or ranges, and `attribute=*` for any value. The text `*` alone counts all records.
        You may write `in` in place of `=`, so `age in 30..39` means `age=30..39`. Put a name or label in
        quotes if it contains a space or any of `= .. | ,`. If it contains a quote, write this quote twice.

    Returns
    -------
    dict
        Condition on each attribute: one label, a pair (first, last) for a range, or a list of labels and
        pairs.

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
    """Return the query (a dictionary) for a list of conditions, into which `text` was split. The text is used
    in error messages.
    """
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
    """Split a text into conditions. Return each condition as a list of tokens, which are pairs of a kind and
    a text. The kinds are "bare", "quoted" and "sign".
    """
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
    """Join the three parts of a condition with `in`, for example `age`, `in` and `30..39`, to the condition
    `age=30..39`.
    """
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
    """Return the labels of a condition: one label, a pair for a range, a list of labels and pairs, or [ALL]
    for any value.
    """
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
    """Convert queries that are written with labels, for example {"town": "Bern"}, to a workload (list of
    queries) for the domain.

    Parameters
    ----------
    domain : Domain
        Domain that contains the attributes and labels.
    queries : mapping, str, or a list of them
        One query or a list of queries. A query {attribute: labels} counts a record if, for every attribute in
        the query, the record has one of the labels. The labels of an attribute are one label, a pair (first,
        last), or a list or set of labels and pairs. A pair stands for all labels from `first` to `last`,
        including both, in the order of the domain. Attributes that are not in the query may have any value. A
        query may also be a text, in the form that `typed_query` parses.

    Returns
    -------
    Selections
        Queries, in the given order.

    Raises
    ------
    ValueError
        If a query names an attribute or label that is not in the domain, or if it gives no label for an
        attribute. The message suggests the most similar attribute or label of the domain.

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
    """Convert `queries` to a workload (list of queries) for the domain, if they are written with labels.
    Return workloads and recipes (descriptions of workloads) unchanged.
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
    """Condition of one query on one attribute. `ends` contains the first and the last label of each range in
    turn, and `query` is the number of the query.
    """

    query: int
    ends: list[Any]


def marginal_queries(domain: Domain, attributes: Sequence[str]) -> Selections:
    """Create one query for each combination of labels of the given attributes. The labels of the last
    attribute change fastest from query to query.

    Parameters
    ----------
    domain : Domain
        Domain that contains the attributes.
    attributes : sequence of str
        Names of one or more attributes, all different.

    Returns
    -------
    Selections
        One query per combination of labels, at most 2²² queries.

    Raises
    ------
    ValueError
        If `attributes` is empty, if a name occurs twice or is not in the domain, or if there are more than
        2²² combinations.
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
    """Result of `typed_question`: queries that were parsed from a text. There is one query for each
    combination of labels of the attributes that have no condition in the text.

    The field `by` contains the names of these attributes. The field `labels` contains one tuple per query,
    with the labels of these attributes. If every attribute in the text has a condition, there is only one
    query, and its tuple is empty.
    """

    queries: Selections
    by: tuple[str, ...]
    labels: tuple[tuple[Any, ...], ...]


def typed_question(domain: Domain, text: str, most: int = _MOST_ROWS) -> TypedQuestion:
    """Parse a question, for example `sex & age in 30..39`. A question consists of conditions, such as
    `age in 30..39`, and of names of attributes without a condition, such as `sex`. The result has one query
    for each combination of labels of the attributes without a condition: in the example, one for each sex.

    Parameters
    ----------
    domain : Domain
        Domain that contains the attributes and labels.
    text : str
        Conditions in the form that `typed_query` parses, and names of attributes without a condition.
        Separate them by spaces, commas, `×`, `by`, `and` or `&`.
    most : int
        Largest allowed number of queries. Default 1,000.

    Returns
    -------
    TypedQuestion
        Queries, and the labels of each query. The labels of the last attribute change fastest from query to
        query.

    Raises
    ------
    ValueError
        If the text does not have this form, if it names an attribute or label that is not in the domain, or
        if there would be more than `most` queries.

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
    """Return the position of an attribute in the domain. If the domain does not have it, a ValueError names
    the most similar attribute.
    """
    if name not in domain.attributes:
        raise ValueError(
            f"attribute {str(name)[:60]!r} is not in the domain: {nearest(str(name), domain.attributes)}"
        )
    return domain.axis(name)


def _ends(name: str, labels: Any) -> list[Any]:
    """Return a list with the first and the last label of each range in turn. A single label is a range with
    equal ends.
    """
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
    """Yield, for each condition, its codes as runs (lo, hi), which contain the codes from lo to hi − 1. Runs
    that overlap or follow each other directly are joined.
    """
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
    """Return the code of each label. If the attribute does not have a label, a ValueError names the most
    similar label.
    """
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
    """Return a label as text in the spelling of the domain, whose labels are of type `kind`. For example, the
    label 7.0 becomes "7" if the labels are integers.
    """
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
    """Return the end of an error message about a label that does not exist. It names the most similar labels,
    or the range of labels.
    """
    own = domain.labels and domain.labels[domain.axis(name)]
    if own is None:
        own = range(domain.shape[domain.axis(name)])
    if not isinstance(own, range):
        return nearest(label, [str(x) for x in own])
    shown = f"its values are {own[0]} to {own[-1]}"
    if ends := re.fullmatch(r"(\d+)-(\d+)", label):
        return f"{shown}. A range is written {ends[1]}..{ends[2]}"
    if abs(own.step) != 1:
        shown += f" by {abs(own.step)}"
    try:
        steps = (float(label) - own.start) / own.step
        return f"{shown}, the nearest is {own[round(min(max(steps, 0), len(own) - 1))]}"
    except ValueError:
        return shown
