"""Rewrites of code by its syntax tree, which neither layout nor the names of variables break.

A pattern is Python with holes. A capital letter stands for any expression, or for any name behind a
dot, and for the same one wherever it stands again; `*A` stands for any further arguments or elements,
`**K` for any further keywords, and a line `...` for any number of statements. It begins with none of these.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from copy import deepcopy
from functools import lru_cache
from typing import Any, NamedTuple

_NOT_COMPARED = ("ctx", "kind", "type_comment")  # whether a name is read or written, and how


class Place(NamedTuple):
    """Where a pattern stands: `node.field`, or its items from `start` to `stop`; what fills the holes."""

    node: ast.AST
    field: str
    start: int
    stop: int
    holes: dict[str, Any]

    @property
    def line(self) -> int:
        """Of the file, where it starts."""
        value = getattr(self.node, self.field)
        return (value[self.start] if isinstance(value, list) else value).lineno


def parse_pair(old: str, new: str) -> tuple[list[ast.AST], list[ast.AST]]:
    """Both patterns: expressions where both are one, else statements."""
    before = ast.parse(old).body
    after = ast.parse(new).body
    if all(len(part) == 1 and isinstance(part[0], ast.Expr) for part in (before, after)):
        return [before[0].value], [after[0].value]
    return before, after


def places(tree: ast.AST, pattern: list[ast.AST]) -> Iterator[Place]:
    """Wherever the pattern stands in `tree`; of several lengths from one start, the shortest."""
    length = None if any(_rest(part) for part in pattern) else len(pattern)
    for node, field, items, start in _starts(tree).get(type(pattern[0]), []):
        most = len(items) if length is None else start + length
        for stop in range(start + 1 if length is None else most, most + 1):
            holes: dict[str, Any] = {}
            if _matches_all(pattern, items[start:stop], holes):
                yield Place(node, field, start, stop, holes)
                break


@lru_cache(maxsize=300)  # a tree is searched for many patterns, and a copy of it is changed
def _starts(tree: ast.AST) -> dict[type, list[tuple[ast.AST, str, list, int]]]:
    """By type, where each part of a tree stands: its node and field, the items there, its number."""
    by_type: dict[type, list] = {}
    for node in ast.walk(tree):
        for field, value in ast.iter_fields(node):
            items = value if isinstance(value, list) else [value]
            for start, first in enumerate(items):
                by_type.setdefault(type(first), []).append((node, field, items, start))
    return by_type


def replace(place: Place, new: list[ast.AST]) -> None:
    """Put `new`, with its holes filled, where the pattern stands; the tree changes in place."""
    filled = _fill(deepcopy(new), place.holes)
    value = getattr(place.node, place.field)
    if isinstance(value, list):
        value[place.start : place.stop] = filled
    else:
        (only,) = filled
        setattr(place.node, place.field, only)


def _hole(part: Any) -> str | None:
    """The letter, if `part` of a pattern is a hole."""
    name = part.id if isinstance(part, ast.Name) else part
    return name if isinstance(name, str) and re.fullmatch("[A-Z]", name) else None


def _rest(part: Any) -> str | None:
    """The hole of `*A`, `**K` or a line `...`, which stand for any number of items."""
    match part:
        case ast.Starred(value) | ast.keyword(None, value):
            return _hole(value)
        case ast.Expr(ast.Constant(value)) if value is ...:
            return "..."
    return None


def _matches(pattern: Any, node: Any, holes: dict[str, Any]) -> bool:
    hole = _hole(pattern)
    if hole and isinstance(node, str if isinstance(pattern, str) else ast.expr):
        return _text(holes.setdefault(hole, node)) == _text(node)
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, list):
        return _matches_all(pattern, node, holes)
    if not isinstance(pattern, ast.AST):
        return pattern == node
    fields = [field for field in pattern._fields if field not in _NOT_COMPARED]
    return all(_matches(getattr(pattern, f), getattr(node, f), holes) for f in fields)


def _matches_all(pattern: list, items: list, holes: dict[str, Any]) -> bool:
    """Whether the items are those of the pattern, in order; keywords in any order."""
    if any(isinstance(part, ast.keyword) for part in pattern):
        order = {part.arg: i for i, part in enumerate(pattern)}
        others = order.get(None, len(pattern))
        items = sorted(items, key=lambda keyword: order.get(keyword.arg, others))
    rests = [i for i, part in enumerate(pattern) if _rest(part)]
    if not rests:
        return len(pattern) == len(items) and all(
            _matches(part, item, holes) for part, item in zip(pattern, items, strict=True)
        )
    (at,) = rests
    after = len(items) - (len(pattern) - at - 1)
    if after < at:
        return False
    holes[_rest(pattern[at])] = items[at:after]
    return _matches_all(pattern[:at], items[:at], holes) and _matches_all(
        pattern[at + 1 :], items[after:], holes
    )


def _fill(part: Any, holes: dict[str, Any]) -> Any:
    """The pattern with what fills its holes."""
    if _hole(part):
        return deepcopy(holes[_hole(part)])
    if isinstance(part, list):
        filled = [holes[_rest(p)] if _rest(p) else [_fill(p, holes)] for p in part]
        return [item for items in filled for item in items]
    if isinstance(part, ast.AST):
        for field, value in ast.iter_fields(part):
            setattr(part, field, _fill(value, holes))
    return part


def _text(node: ast.AST | str) -> str:
    return node if isinstance(node, str) else ast.unparse(node)
