"""The tests are tested: with a mistake planted in the package as it is imported, the named test fails.

`python -m tests.planted` plants them all (`make mutants`).
"""

import ast
import re
import subprocess
import symtable
import sys

import pytest

from tests.planted import rewrite
from tests.planted.mistake import MISTAKES
from tests.planted.planting import ROOT, package, plant_in

QUICK = [mistake for mistake in MISTAKES if mistake.quick]
NOT_CODE = {21, 31, 32}  # classes of bugs that no line of code makes


def planted(*options):
    """What the command says, and its exit code."""
    command = [sys.executable, "-m", "tests.planted", *options]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return run.returncode, run.stdout + run.stderr


@pytest.mark.slow
def test_planted_mistakes_are_seen():
    """Without them the named tests pass, or the suite that runs them says so."""
    code, text = planted("--sample", "--workers", "2")
    assert code == 0 and f"{len(QUICK)} of {len(QUICK)}" in text, text


@pytest.mark.long
def test_all_planted_mistakes_are_seen():
    code, text = planted()
    assert code == 0 and f"{len(MISTAKES)} of {len(MISTAKES)}" in text, text


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name.replace(" ", "-"))
def test_a_mistake_can_be_planted(mistake):
    """Its pattern stands once in its package, and what is planted is other Python."""
    path, tree = plant_in(mistake, package(mistake.where))
    text = ast.unparse(tree)
    assert text != ast.unparse(package(mistake.where)[path])
    compile(text, path, "exec")
    file, _, test = mistake.test.partition("::")
    tests = (ROOT / "tests" / file).read_text(encoding="utf-8")
    assert f"def {test.partition('[')[0]}(" in tests


@pytest.mark.parametrize(
    ("old", "why"),
    [("T.not_there", "at 0 places in value"), ("return R", r"value\.py:\d+', '")],
)
def test_a_pattern_that_stands_nowhere_or_twice_is_refused(old, why):
    mistake = MISTAKES[0]._replace(where="value", old=old)
    with pytest.raises(AssertionError, match=why):
        plant_in(mistake, package(mistake.where))


@pytest.mark.slow
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.name.replace(" ", "-"))
def test_names_and_layout_do_not_matter(mistake):
    """A mistake planted in code whose local and private names are others is the same mistake."""
    trees = package(mistake.where)
    path, tree = plant_in(mistake, trees)
    other = plant_in(mistake, trees | {path: renamed(trees[path])})
    assert other[0] == path and ast.unparse(other[1]) == ast.unparse(renamed(tree))


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


# of a NamedTuple; of a session, by the text of a mistake
NOT_PRIVATE = {"_replace", "_table"}


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
    unseen = [mistake for mistake in MISTAKES if mistake.by == "unseen"]
    assert len({mistake.name for mistake in MISTAKES}) == len(MISTAKES) >= 60
    assert 2 * len(unseen) >= len(MISTAKES) and len(QUICK) == 15
    assert all(mistake.why and "::" in mistake.test for mistake in MISTAKES)


def test_every_class_of_known_bugs_has_a_mistake():
    numbers = {mistake.number for mistake in MISTAKES} - {None}
    assert numbers == set(range(1, 35)) - NOT_CODE
