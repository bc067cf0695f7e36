"""Every place of some packages where a small change makes another program, and a seeded draw of them.

A place is named by its function, its text and the change, not by file and line: the draw stays the same
while files are split and other functions change.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple

from tests.planted.planting import ROOT

FOLDERS = ("noise", "mechanisms")

_PAIRS = {
    "boundary": "Lt LtE, Gt GtE",
    "comparison": "Eq NotEq, Is IsNot, In NotIn, And Or",
    "arithmetic": "FloorDiv Mult, Pow Mult, BitXor BitOr, Add Sub, Div Mult, LShift RShift, BitAnd BitOr",
}
_OTHER = {}  # what kind of change an operator has, and the operator that takes its place
for _kind, _pairs in _PAIRS.items():
    for _one, _two in (pair.split() for pair in _pairs.split(", ")):
        _OTHER[_one] = _kind, getattr(ast, _two)
        _OTHER[_two] = _kind, getattr(ast, _one)
_NO_PROGRAM = {"annotation", "returns", "decorator_list", "bases"}  # and what a message says
_SWAPPED = {"min": "max", "max": "min", "floor": "ceil", "ceil": "floor"}


class Place(NamedTuple):
    """One of the changes of a file, the `index`th, and the `count`th of the same text."""

    file: Path
    index: int
    scope: str
    kind: str
    old: str
    new: str
    lines: range
    count: int

    @property
    def name(self) -> str:
        """Of the place and the change, without file and line."""
        again = f" (number {self.count})" if self.count > 1 else ""
        return f"{self.file.parts[1]}.{self.scope}: {self.old} → {self.new}{again}"


def drawn(seed: int, size: int) -> list[Place]:
    """So many places, of all equally likely ones; what is drawn first stays in larger draws."""
    listed = sorted(every_place(), key=lambda place: _hash(seed, place.name))
    first: dict[tuple, Place] = {}
    for place in listed:  # one change of each place
        first.setdefault((place.scope, place.lines, place.old), place)
    return list(first.values())[:size]


def every_place() -> Iterator[Place]:
    """All changes of all places."""
    counts: Counter = Counter()
    for name in FOLDERS:
        for path in sorted((ROOT / "workbench" / name).rglob("*.py")):
            file = path.relative_to(ROOT)
            for index, (scope, kind, node, changed) in enumerate(_changes_of(_parsed(file))):
                old, new = ast.unparse(node), ast.unparse(changed)
                lines = range(node.lineno, node.end_lineno + 1)
                place = Place(file, index, ".".join(scope), kind, old, new, lines, 1)
                counts[place.name] += 1
                yield place._replace(count=counts[place.name])


def changed_text(place: Place) -> str:
    """The file with the change made."""
    tree = _parsed(place.file)
    _, _, node, changed = list(_changes_of(tree))[place.index]
    changed = deepcopy(changed)  # which may hold the node
    node.__class__, node.__dict__ = changed.__class__, changed.__dict__
    return ast.unparse(ast.fix_missing_locations(tree))


def _parsed(file: Path) -> ast.AST:
    return ast.parse((ROOT / file).read_text(encoding="utf-8"))


def _hash(seed: int, name: str) -> bytes:
    return hashlib.blake2b(f"{seed} {name}".encode()).digest()


def _changes_of(
    parent: ast.AST, scope: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str, ast.AST, ast.AST]]:
    """Scope, kind, node and what may stand for it, of every node below one."""
    if isinstance(parent, ast.Raise | ast.JoinedStr):
        return
    if isinstance(parent, ast.FunctionDef | ast.ClassDef):
        scope = (*scope, parent.name)
    for field, value in ast.iter_fields(parent):
        if field in _NO_PROGRAM:
            continue
        for node in value if isinstance(value, list) else [value]:
            if isinstance(node, ast.AST):
                yield from ((scope, kind, node, new) for kind, new in _changes(node, field))
                yield from _changes_of(node, scope)


def _changes(node: ast.AST, field: str) -> Iterator[tuple[str, ast.AST]]:
    """Each other node that may stand there, and what kind of change it is."""
    if field == "test" and isinstance(node, ast.expr):
        yield "negated condition", ast.UnaryOp(ast.Not(), node)
    (operator,) = [getattr(node, "op", None), *getattr(node, "ops", [])][-1:]
    kind, other = _OTHER.get(type(operator).__name__, ("", None))
    match node:
        case ast.Compare(left, [_], right) if other:
            yield kind, ast.Compare(left, [other()], right)
        case ast.BoolOp() | ast.BinOp() | ast.AugAssign() if other:
            yield kind, type(node)(**{**dict(ast.iter_fields(node)), "op": other()})
        case ast.UnaryOp(ast.USub() | ast.Not(), operand):
            yield "arithmetic", operand
        case ast.Constant(bool() as value):
            yield "constant", ast.Constant(not value)
        case ast.Constant(int() as value):
            yield "boundary", ast.Constant(value + 1)
        case ast.Constant(float() as value):
            yield "constant", ast.Constant(2 * value if value else 1.0)
        case ast.Expr(ast.Call()):
            yield "removed call", ast.Pass()
        case ast.Call(ast.Name(name), args, keywords) if name in _SWAPPED:
            yield "comparison", ast.Call(ast.Name(_SWAPPED[name]), args, keywords)
        case ast.Call(function, [first, second, *rest], keywords) if not _starred(
            first, second
        ):
            yield "swapped argument", ast.Call(function, [second, first, *rest], keywords)
        case ast.Call(_, [only], []) if not _starred(only):
            yield "removed call", only


def _starred(*nodes: ast.expr) -> bool:
    return any(isinstance(node, ast.Starred | ast.GeneratorExp) for node in nodes)
