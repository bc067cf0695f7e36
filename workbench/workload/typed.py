"""How a person types a query: `sex=F & age in 30..39`, taken apart into names and labels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

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
    """A query as it is typed, for `labelled_queries`.

    Parameters
    ----------
    text : str
        Conditions, parted by spaces, commas, `&` or `and`: `attribute=label`, `attribute=first..last`
        (both belong to it), `attribute=one|other` (a set, also of ranges), or `attribute=*`; `*` alone
        counts everything. `age in 30..39` is `age=30..39`. Names and labels with spaces or any of
        `= .. | ,` stand in quotes, in which a doubled quote is one.

    Returns
    -------
    dict
        Labels, pairs and lists of each attribute.

    Raises
    ------
    ValueError
        If it is written in another way.

    Examples
    --------
    >>> typed_query('origin="St. Gallen"|Bern hour=7..9')
    {'origin': ['St. Gallen', 'Bern'], 'hour': ('7', '9')}
    """
    return query_of(text, conditions_of(text))


def query_of(text: str, conditions: list[list[tuple[str, str]]]) -> dict[str, Any]:
    """The query that some of a text's conditions make."""
    query: dict[str, Any] = {}
    for condition in conditions:
        if condition == [("bare", ALL)] and len(conditions) == 1:
            return {}
        if len(condition) < 3 or condition[0][0] == "sign" or condition[1] != ("sign", "="):
            raise ValueError(
                f"query {text[:60]!r}: {_shown(condition)!r} is no condition: {_FORM}"
            )
        name = condition[0][1]
        if name in query:
            raise ValueError(
                f"query {text[:60]!r} names {name!r} twice: need one set, as {name}=one|other"
            )
        query[name] = _typed_labels(text, condition[2:])
    return {name: labels for name, labels in query.items() if labels != [ALL]}


def conditions_of(text: str) -> list[list[tuple[str, str]]]:
    """The tokens between spaces and commas, with the kind of each."""
    conditions: list[list[tuple[str, str]]] = [[]]
    place = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if not found:
            raise ValueError(f"query {text[:60]!r}: a quote is opened and not closed")
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
        raise ValueError(f"an empty query says nothing: {_FORM}; {ALL!r} counts everything")
    return conditions


def _joined(conditions: Iterable[list[tuple[str, str]]]) -> list[list[tuple[str, str]]]:
    """Conditions in which `in` stands between a name and labels, as one with `=`."""
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
    """A label, a pair, or a list of them; [ALL] where any value will do."""
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
                    f"query {text[:60]!r}: {_shown(tokens)!r} names no labels: {_FORM}; labels with "
                    "any of = .. | , or spaces stand in quotes"
                )
    return labels[0] if len(labels) == 1 else labels


def _shown(tokens: list[tuple[str, str]]) -> str:
    return "".join(token for _, token in tokens)[:60]
