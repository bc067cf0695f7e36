"""Patches of the syntax tree: replace one expression or statement inside one function.

In a pattern, `_1`, `_2`, … stand for any expression (the same one wherever the number comes again,
also in the replacement) and `**_rest` for all other keywords of a call, so that a patch outlives the
renaming of local names. A pattern that stands there never, or more than once, is an error: the code
has changed.
"""

from __future__ import annotations

import ast
import copy
from typing import Any


def patched(source: str, inside: str, old: str, new: str) -> str:
    """The source with `old` replaced by `new` inside the function `inside` ("f" or "Class.f")."""
    module = ast.parse(source)
    function = _definition(module, inside.split("."))
    pattern, replacement = _parsed(old), _parsed(new)
    replacer = _Replacer(pattern, replacement)
    body = [replacer.visit(statement) for statement in function.body]
    function.body = [x for item in body for x in (item if isinstance(item, list) else [item])]
    if replacer.count != 1:
        raise LookupError(f"{old!r} stands {replacer.count} times in {inside}")
    return ast.unparse(ast.fix_missing_locations(module))


def _definition(tree: ast.AST, names: list[str]) -> Any:
    """The function or class of that dotted name."""
    for name in names:
        scope = tree
        matches = [
            node
            for node in ast.walk(scope)
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name
        ]
        if not matches:
            raise LookupError(f"there is no {'.'.join(names)}")
        tree = matches[0]
    return tree


def _parsed(text: str) -> ast.AST:
    """An expression where the text is one, else its one statement."""
    (statement,) = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


class _Replacer(ast.NodeTransformer):
    """Replaces what matches, and counts it."""

    def __init__(self, pattern: ast.AST, replacement: ast.AST):
        self.pattern = pattern
        self.replacement = replacement
        self.count = 0

    def visit(self, node: ast.AST) -> ast.AST:
        bound: dict[str, Any] = {}
        if _matches(self.pattern, node, bound):
            self.count += 1
            return _Filler(bound).visit(copy.deepcopy(self.replacement))
        return self.generic_visit(node)


class _Filler(ast.NodeTransformer):
    """Puts what the pattern's names stood for into the replacement."""

    def __init__(self, bound: dict[str, Any]):
        self.bound = bound

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return copy.deepcopy(self.bound.get(node.id, node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        keywords = []
        for keyword in node.keywords:
            rest = keyword.arg is None and isinstance(keyword.value, list)
            keywords += keyword.value if rest else [keyword]
        node.keywords = keywords
        return node


def _matches(pattern: Any, node: Any, bound: dict[str, Any]) -> bool:
    """Whether the node has the pattern's shape; fills `bound`."""
    if (
        isinstance(pattern, ast.Name)
        and pattern.id.startswith("_")
        and pattern.id[1:].isdigit()
    ):
        if not isinstance(node, ast.expr):
            return False
        if pattern.id in bound:
            return ast.dump(bound[pattern.id]) == ast.dump(node)
        bound[pattern.id] = node
        return True
    if type(pattern) is not type(node):
        return False
    if isinstance(pattern, ast.Call):
        return _call_matches(pattern, node, bound)
    if isinstance(pattern, ast.AST):
        fields = [name for name in pattern._fields if name not in ("ctx", "type_comment")]
        return all(_matches(getattr(pattern, f), getattr(node, f), bound) for f in fields)
    if isinstance(pattern, list):
        same_length = len(pattern) == len(node)
        return same_length and all(map(_matches, pattern, node, [bound] * len(pattern)))
    return pattern == node


def _call_matches(pattern: ast.Call, node: ast.Call, bound: dict[str, Any]) -> bool:
    """Calls match by function, positions and keyword names, in any order of keywords."""
    takes_rest = any(
        k.arg is None and ast.unparse(k.value) == "_rest" for k in pattern.keywords
    )
    named = {k.arg: k.value for k in pattern.keywords if ast.unparse(k.value) != "_rest"}
    given = {k.arg: k.value for k in node.keywords}
    rest = [k for k in node.keywords if k.arg not in named]
    if rest and not takes_rest or not set(named) <= set(given):
        return False
    if takes_rest:
        bound["_rest"] = rest
    return (
        _matches(pattern.func, node.func, bound)
        and _matches(pattern.args, node.args, bound)
        and all(_matches(value, given[name], bound) for name, value in named.items())
    )
