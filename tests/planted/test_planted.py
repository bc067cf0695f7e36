"""The tests are tested: with a mistake planted in the package as it is imported, the named test fails."""

import ast
import os
import re
import subprocess
import symtable
import sys
from copy import deepcopy
from functools import cache
from hashlib import sha256
from pathlib import Path

import pytest

from tests.planted import plant, rewrite
from tests.planted.mistakes import MISTAKES

ROOT = Path(__file__).parents[2]


def outcome(test, module, text, folder):
    """Exit code and output of pytest on one test, while `module` of the package is `text`."""
    planted = folder / "planted.py"
    planted.write_text(text, encoding="utf-8")
    told = {"PYTHONPATH": str(ROOT), plant.MODULE: module, plant.TEXT: str(planted)}
    if (
        "@njit" in text
    ):  # what calls a kernel that was changed would be kept with it, or without
        told["NUMBA_CACHE_DIR"] = str(folder)
    options = ("-x", "-q", "--tb=short", "-p", "no:cacheprovider", "-p", plant.__name__)
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"tests/{test}"],
        cwd=ROOT,
        env=os.environ | told,
        capture_output=True,
        text=True,
    )
    return run.returncode, run.stdout + run.stderr


SAMPLE = 15  # in test-all; test-long plants the others too
sampled = [
    pytest.param(mistake, marks=pytest.mark.slow if i < SAMPLE else pytest.mark.long)
    for i, mistake in enumerate(
        sorted(MISTAKES, key=lambda m: sha256(m.name.encode()).hexdigest())
    )
]


@cache
def room(where):
    """The files of the room of `where`, parsed, by their paths in the package; nobody changes them."""
    top = ROOT / "workbench" / where.partition(".")[0]
    paths = sorted(top.rglob("*.py")) if top.is_dir() else [top.with_suffix(".py")]
    return {
        path.relative_to(ROOT): ast.parse(path.read_text(encoding="utf-8")) for path in paths
    }


def plant_in(mistake, trees):
    """The file in which the mistake can stand, and a copy of its tree where it does."""
    old, new = rewrite.parse_pair(mistake.old, mistake.new)
    name = mistake.where.partition(".")[2]

    def places_in(tree):
        parts = (
            [part for part in tree.body if getattr(part, "name", "") == name]
            if name
            else [tree]
        )
        return [place for part in parts for place in rewrite.places(part, old)]

    spots = [(path, place) for path, tree in trees.items() for place in places_in(tree)]
    assert len(spots) == 1, (
        f"tests/planted/mistakes.py: {mistake.name!r} can be planted at {len(spots)} places in "
        f"{mistake.where}, not at one: {[f'{path}:{place.line}' for path, place in spots]}; "
        f"the code has changed, so change the pattern of this mistake:\n{mistake.old}"
    )
    ((path, _),) = spots
    tree = deepcopy(trees[path])
    (place,) = places_in(tree)
    rewrite.replace(place, new)
    return path, tree


@pytest.mark.parametrize("mistake", sampled, ids=lambda m: m.name.replace(" ", "-"))
def test_a_planted_mistake_is_found(mistake, tmp_path):
    """Without the mistake the named test passes, or the suite that runs both says so."""
    file, tree = plant_in(mistake, room(mistake.where))
    module = ".".join(file.with_suffix("").parts).removesuffix(".__init__")
    code, told = outcome(mistake.test, module, ast.unparse(tree), tmp_path)
    assert code == 1, (
        f"{mistake.test} does not see that {mistake.why} (exit code {code}):\n{told}"
    )
    refused = (
        r"^E +(assert|AssertionError|Failed: DID NOT RAISE|workbench\.laws\.subject\.Broken)"
    )
    judged = re.search(refused, told, re.M)
    assert judged, f"the mistake crashes where it should be judged wrong:\n{told}"


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name.replace(" ", "-"))
def test_a_mistake_can_be_planted(mistake):
    """Its pattern stands once in its room, and what is planted is other Python."""
    path, tree = plant_in(mistake, room(mistake.where))
    planted = ast.unparse(tree)
    assert planted != ast.unparse(room(mistake.where)[path])
    compile(planted, path, "exec")
    file, _, test = mistake.test.partition("::")
    tests = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert f"def {test.partition('[')[0]}(" in tests


@pytest.mark.parametrize(
    ("old", "why"),
    [("T.not_there", "at 0 places in shares"), ("return R", r"shares\.py:\d+', '")],
)
def test_a_pattern_that_stands_nowhere_or_twice_is_refused(old, why):
    mistake = MISTAKES[0]._replace(where="shares", old=old)
    with pytest.raises(AssertionError, match=why):
        plant_in(mistake, room(mistake.where))


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name.replace(" ", "-"))
def test_names_and_layout_do_not_matter(mistake):
    """A mistake planted in code whose local and private names are others is the same mistake."""
    trees = room(mistake.where)
    path, planted = plant_in(mistake, trees)
    other = plant_in(mistake, trees | {path: renamed(trees[path])})
    assert other[0] == path and ast.unparse(other[1]) == ast.unparse(renamed(planted))


def renamed(tree):
    """The code formatted anew, every local and private name in it replaced."""
    text = ast.unparse(tree)
    top = symtable.symtable(text, "", "exec")
    variables = local_names(top) - {s.get_name() for s in top.get_symbols()} - {"self", "cls"}
    other = ast.parse(text)
    for node in ast.walk(other):
        for field in ("id", "arg", "attr", "name"):
            name = getattr(node, field, None)
            if isinstance(node, ast.alias | ast.keyword) or name in NOT_PRIVATE:
                continue  # names of modules and of other functions' parameters stay
            private = isinstance(name, str) and re.match("_[a-zA-Z]", name)
            if private or (field in ("id", "arg") and name in variables):
                setattr(node, field, f"{name}_renamed")
    return ast.parse(ast.unparse(other))


NOT_PRIVATE = {"_replace"}  # of a NamedTuple


def local_names(table):
    """Variables and parameters of all functions within, as `symtable` finds them."""
    names = {n for child in table.get_children() for n in local_names(child)}
    if table.get_type() == "function":
        symbols = table.get_symbols()
        names |= {s.get_name() for s in symbols if s.is_local() and not s.is_imported()}
    return names


@pytest.mark.parametrize(
    ("old", "new", "code", "then"),
    [
        ("X - X", "0", "z = (a - b, a.c - a.c)", "z = (a - b, 0)"),
        ("f(*A, S.start)", "f(*A, 0)", "f(x.start)\nf(y, z.start)", "f(0)\nf(y, 0)"),
        ("f(*A, S.start)", "f(*A, 0)", "f(y.start, k=1)\ng(y.start)", None),
        ("f(l=L, **K)", "f(L, **K)", "f(j=1, k=2, l=3, **m)", "f(3, j=1, k=2, **m)"),
        ("f(l=L)", "f()", "f(l=3, k=2)", None),
        ("X = 1\n...\nY = X", "Y = X\n...", "a = 1\nb = 2\nc = a", "c = a\nb = 2"),
        ("if X: f(Y)", "pass", "if x:\n    f(1)\nelse:\n    f(2)", None),
        ("self.A = 1", "self.A = 2", "self.b = 1", "self.b = 2"),
    ],
)
def test_a_pattern_matches_what_it_says(old, new, code, then):
    old, new = rewrite.parse_pair(old, new)
    tree = ast.parse(code)
    for place in list(rewrite.places(tree, old)):
        rewrite.replace(place, new)
    assert ast.unparse(tree) == (then or code)


def test_planted_mistakes_say_what_they_break():
    assert len({m.name for m in MISTAKES}) == len(MISTAKES) >= 8
    assert all(m.why and "::" in m.test for m in MISTAKES)
