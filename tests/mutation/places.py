"""Every place of some packages where a small change makes another program, and a seeded draw of them.

A place is named by its function, its text and the change, not by file and line: the draw stays the same
while files are split and other functions change.
"""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.planted.planting import ROOT

FOLDERS = ("noise", "mechanisms")

_OTHER = {
    ast.Lt: ("boundary", ast.LtE),
    ast.LtE: ("boundary", ast.Lt),
    ast.Gt: ("boundary", ast.GtE),
    ast.GtE: ("boundary", ast.Gt),
    ast.Eq: ("comparison", ast.NotEq),
    ast.NotEq: ("comparison", ast.Eq),
    ast.Is: ("comparison", ast.IsNot),
    ast.IsNot: ("comparison", ast.Is),
    ast.In: ("comparison", ast.NotIn),
    ast.NotIn: ("comparison", ast.In),
    ast.Add: ("arithmetic", ast.Sub),
    ast.Sub: ("arithmetic", ast.Add),
    ast.Mult: ("arithmetic", ast.Div),
    ast.Div: ("arithmetic", ast.Mult),
    ast.FloorDiv: ("arithmetic", ast.Mult),
    ast.Pow: ("arithmetic", ast.Mult),
    ast.LShift: ("arithmetic", ast.RShift),
    ast.RShift: ("arithmetic", ast.LShift),
    ast.BitAnd: ("arithmetic", ast.BitOr),
    ast.BitOr: ("arithmetic", ast.BitAnd),
    ast.BitXor: ("arithmetic", ast.BitOr),
    ast.And: ("comparison", ast.Or),
    ast.Or: ("comparison", ast.And),
}
_NO_PROGRAM = {"annotation", "returns", "decorator_list", "bases"}  # and what a message says
_SWAPPED = {"min": "max", "max": "min", "floor": "ceil", "ceil": "floor"}


class Place(NamedTuple):
    """A change of one node of a file: `parent.field`, or its item at `index`."""

    file: Path
    scope: str
    kind: str
    old: str
    new: str
    count: int
    lines: range
    parent: ast.AST
    field: str
    index: int | None
    changed: ast.AST

    @property
    def name(self) -> str:
        """Of the place and the change, without file and line."""
        package = self.file.parts[1]
        again = f" (number {self.count})" if self.count > 1 else ""
        return f"{package}.{self.scope}: {self.old} → {self.new}{again}"


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
        top = ROOT / "workbench" / name
        for path in [top] if top.is_file() else sorted(top.rglob("*.py")):
            file = path.relative_to(ROOT)
            for place in _places(file, ast.parse(path.read_text(encoding="utf-8")), ()):
                counts[place.name] += 1
                yield place._replace(count=counts[place.name])


def changed_text(place: Place) -> str:
    """The file with the change made."""
    tree = ast.parse((ROOT / place.file).read_text(encoding="utf-8"))
    (same,) = (
        other
        for other in _places(place.file, tree, ())
        if other[1:5] == place[1:5]
        and other.lines == place.lines
        and _spot(other) == _spot(place)
    )
    if same.index is None:
        setattr(same.parent, same.field, same.changed)
    else:
        getattr(same.parent, same.field)[same.index] = same.changed
    return ast.unparse(ast.fix_missing_locations(tree))


def _spot(place: Place) -> tuple:
    node = getattr(place.parent, place.field)
    node = node if place.index is None else node[place.index]
    return node.lineno, node.col_offset, place.field


def _hash(seed: int, name: str) -> bytes:
    return hashlib.blake2b(f"{seed} {name}".encode()).digest()


def _places(file: Path, parent: ast.AST, scope: tuple[str, ...]) -> Iterator[Place]:
    """Those below a node."""
    if isinstance(parent, ast.Raise | ast.JoinedStr):
        return
    if isinstance(parent, ast.FunctionDef | ast.ClassDef):
        scope = (*scope, parent.name)
    for field, value in ast.iter_fields(parent):
        if field in _NO_PROGRAM:
            continue
        items = value if isinstance(value, list) else [value]
        for i, node in enumerate(items):
            if not isinstance(node, ast.AST):
                continue
            index = i if isinstance(value, list) else None
            for kind, changed in _changes(node, field):
                old, new = ast.unparse(node), ast.unparse(changed)
                lines = range(node.lineno, node.end_lineno + 1)
                where = ".".join(scope)
                spot = (parent, field, index, changed)
                yield Place(file, where, kind, old, new, 1, lines, *spot)
            yield from _places(file, node, scope)


def _changes(node: ast.AST, field: str) -> Iterator[tuple[str, ast.AST]]:
    """Each other node that may stand there, and what kind of change it is."""
    if field == "test" and isinstance(node, ast.expr):
        yield "negated condition", ast.UnaryOp(ast.Not(), node)
    match node:
        case ast.Compare(left, [operator], right):
            kind, other = _OTHER[type(operator)]
            yield kind, ast.Compare(left, [other()], right)
        case ast.BoolOp(operator, values):
            kind, other = _OTHER[type(operator)]
            yield kind, ast.BoolOp(other(), values)
        case ast.BinOp(left, operator, right) if type(operator) in _OTHER:
            kind, other = _OTHER[type(operator)]
            yield kind, ast.BinOp(left, other(), right)
        case ast.AugAssign(target, operator, value) if type(operator) in _OTHER:
            kind, other = _OTHER[type(operator)]
            yield kind, ast.AugAssign(target, other(), value)
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
