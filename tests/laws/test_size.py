"""Each package stays within its budget of lines, and nobody packs lines to meet it.

A line counts if it holds a token outside docstrings and comments. `sizes.toml` has the budgets.
"""

import ast
import io
import tokenize
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SIZES = tomllib.loads((Path(__file__).parent / "sizes.toml").read_text(encoding="utf-8"))
SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


@cache
def size(path):
    """Lines of code of a file, and its tokens."""
    text = path.read_text(encoding="utf-8")
    docstrings = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str())) as doc, *_]:
                    docstrings.update(range(doc.lineno, doc.end_lineno + 1))
    tokens = [
        t for t in tokenize.generate_tokens(io.StringIO(text).readline) if t.type not in SILENT
    ]
    lines = {line for t in tokens for line in range(t.start[0], t.end[0] + 1)}
    return len(lines - docstrings), len(tokens)


def files(folder, ending=".py"):
    """The files of a folder that belong to the project, and not to a run of it."""
    paths = (ROOT / folder).rglob(f"*{ending}")
    return [path for path in paths if "results" not in path.relative_to(ROOT).parts]


def test_packages_stay_within_their_budgets():
    lines = Counter()
    for path in files("workbench"):
        package, *inside = path.relative_to(ROOT / "workbench").parts
        lines[package if inside else "loose files"] += size(path)[0]
    assert lines.keys() == SIZES["packages"].keys()
    over = {name: n for name, n in lines.items() if n > SIZES["packages"][name]}
    assert not over, f"over their budgets: {over}; remove something, or change sizes.toml"


@pytest.mark.parametrize("tree", SIZES["trees"])
def test_trees_stay_within_their_budgets(tree):
    budget = SIZES["trees"][tree]
    lines, tokens = map(sum, zip(*map(size, files(tree)), strict=True))
    assert lines <= budget["lines"]
    assert tokens / lines <= budget["tokens_per_line"], (
        "lines are packed: remove a concept instead"
    )


other_text = pytest.mark.parametrize(
    "tree, ending", [key.split("/*") for key in SIZES["other"]]
)


def other_lines(tree, ending):
    texts = [path.read_text(encoding="utf-8").splitlines() for path in files(tree, ending)]
    return [line for text in texts for line in text if line.strip()]


@other_text
def test_other_text_that_works_as_code_stays_within_its_ceiling(tree, ending):
    assert len(other_lines(tree, ending)) <= SIZES["other"][f"{tree}/*{ending}"]


@other_text
def test_lines_of_other_text_are_not_packed(tree, ending):
    assert not [line for line in other_lines(tree, ending) if len(line) > 120]


def test_a_file_holds_one_subject():
    large = {
        str(path): n for path in files("workbench") if (n := size(path)[0]) > SIZES["file"]
    }
    assert not large
    assert len(files("workbench")) <= SIZES["files"]
