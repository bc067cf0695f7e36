"""Which tests may see a change: those that run its lines, the quickest of each first."""

import ast
import json
from collections import Counter
from functools import cache

from tests.planted.planting import ROOT

_MOST_SECONDS = 12.0  # of tests that run one line, in all


class Reach:
    """What `tests.mutation.reach` wrote."""

    def __init__(self, *files):
        self.seconds = {}
        self.tests = {}
        for file in files:
            for test, (seconds, lines) in json.loads(file.read_text(encoding="utf-8")).items():
                self.seconds[test] = seconds
                for line in lines:
                    self.tests.setdefault(line, set()).add(test)

    def tests_of(self, place):
        """Their names, in the order in which they are tried."""
        for lines in _ever_wider(place):
            if reached := set().union(*(self.tests.get(line, ()) for line in lines)):
                return self._in_turn(reached)
        return []

    def _in_turn(self, tests):
        """The quickest case of each test, then the next of each, while there is time."""
        ranks = Counter()
        ordered = []
        for test in sorted(tests, key=self.seconds.get):
            function = test.partition("[")[0]
            ordered.append((ranks[function], self.seconds[test], test))
            ranks[function] += 1
        chosen = []
        left = _MOST_SECONDS
        for _, seconds, test in sorted(ordered):
            if seconds <= left:
                left -= seconds
                chosen.append(test)
        return chosen


def _ever_wider(place):
    """Lines of the change, of its function and of what calls it, of its class, and of its file."""
    yield [f"{place.file}:{line}" for line in place.lines]
    scopes = place.scope.split(".") if place.scope else []
    for depth in range(len(scopes), 0, -1):
        yield _lines_of(place.file, tuple(scopes[:depth]))
        yield _calls_of(scopes[depth - 1])
    yield [f"{place.file}:{line}" for line in range(1, 2000)]


@cache
def _lines_of(file, scopes):
    """All lines of a function or class but its first, which its definition runs."""
    node = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    for name in scopes:
        node = next(n for n in ast.walk(node) if getattr(n, "name", "") == name)
    return [f"{file}:{line}" for line in range(node.body[0].lineno, node.end_lineno + 1)]


@cache
def _calls_of(name):
    """Where in the package something of this name is called, as compiled loops are."""
    lines = []
    for path in sorted((ROOT / "workbench").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and name in (
                getattr(node.func, "id", ""),
                getattr(node.func, "attr", ""),
            ):
                lines.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    return lines
