"""Pages that the documentation needs are there, their links lead somewhere, and their Python runs."""

import ast
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

import workbench.mechanisms
from docs.pages import api, audit, guarantee, mechanisms, text, tutorials
from docs.pages.mechanisms import PAGES
from workbench.cli import app
from workbench.mechanisms import ALL

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
WRITTEN = (
    "api",
    "audit",
    "guarantee",
    "mechanisms",
    "tutorials",
)  # when the documentation is built
BY_HAND = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(path for path in DOCS.rglob("*.md") if path.relative_to(DOCS).parts[0] not in WRITTEN),
]
RUN = ["start.md", *(f"how-to/{path.name}" for path in (DOCS / "how-to").glob("*.md"))]
TYPED = {  # whose command lines are run too, after the Python of the page on publishing
    f"how-to/{name}.md"
    for name in "publish columns people choose budgets series read large".split()
}
SECONDS = {
    "start.md",
    *(f"how-to/{name}.md" for name in ("add-a-mechanism", "figures")),
    *TYPED,
}


def will_be_written(path: Path) -> bool:
    """Whether the path is that of a page which is not committed."""
    if not path.is_relative_to(DOCS):
        return False
    folder, _, name = path.relative_to(DOCS).as_posix().partition("/")
    names = {
        "api": [*(f"{package}.md" for package in api.PACKAGES), "command_line.md"],
        "audit": ["table.inc"],
        "guarantee": ["odds.inc", "rho.inc"],
        "mechanisms": [f"{cls.__name__}.md" for cls in PAGES] + ["table.inc"],
        "tutorials": [f"{tour}.ipynb" for tour in tutorials.TOURS],
    }
    return name in names.get(folder, ())


@pytest.mark.parametrize("cls", PAGES)
def test_every_mechanism_has_a_page(cls):
    assert list(mechanisms.sections(cls)) == "Guarantee Assumes Source Differs Cost".split()
    when, proof = mechanisms.when_to_use(), mechanisms.proof_sketches()
    page = mechanisms.page(cls, when[cls.__name__], proof[cls.__name__])
    assert mechanisms.summary(cls) in mechanisms.table().replace("<br>", "")
    for heading in ("When to use it", "Why it holds", "Parameters", "Example", "Class"):
        assert re.search(rf"^##+ {heading}\n\n\S", page, re.M), heading
    assert when[cls.__name__].endswith(".") and proof[cls.__name__].endswith(".")


@pytest.mark.parametrize("name", ["GeometricSelection", "WeightedSelection"])
def test_the_example_of_values_runs_as_it_stands(name):
    cls = getattr(workbench.mechanisms, name)
    code = re.search(r"```python\n(.*?)```", mechanisms.example(cls), re.S)[1]
    names: dict = {}
    exec(compile(code, name, "exec"), names)
    assert names["release"].to_frame()["word"].tolist() == ["axe", "hut"]
    assert f"--mechanism {name}" in mechanisms.example(cls)


def test_every_package_of_the_reference_is_in_its_contents():
    listed = re.findall(r"^api/([\w.]+)$", (DOCS / "api.md").read_text(), re.M)
    assert sorted(listed) == sorted([*api.PACKAGES, "command_line"])


def test_nothing_is_said_of_mechanisms_that_are_none():
    names = {cls.__name__ for cls in PAGES}
    assert set(mechanisms.when_to_use()) == set(mechanisms.proof_sketches()) == names


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: path.name)
def test_links_lead_somewhere(path):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)(?:#[^)]*)?\)", path.read_text())
    links += re.findall(r"^```\{include\} (\S+)", path.read_text(), re.M)
    for link in links:
        start = DOCS if link.startswith("/") else path.parent
        target = (start / link.lstrip("/")).resolve()
        assert target.exists() or will_be_written(target), link


def test_every_promise_names_tests_that_are_there():
    page = (DOCS / "promises.md").read_text()
    promised = page.partition("## What is promised")[2].partition("\n## ")[0]
    promises = promised.split("\n- ")[1:]
    assert len(promises) >= 5
    for promise in promises:
        named = re.findall(r"\[`(test_\w+)`\]\((\S+?)\)", promise)
        assert named, promise
        for test, path in named:
            tree = ast.parse((DOCS / path).resolve().read_text())
            assert test in {getattr(node, "name", "") for node in tree.body}, test


def test_every_page_is_in_a_table_of_contents():
    listed = set()
    for path in BY_HAND:
        for entries in re.findall(r"^```\{toctree\}\n(.*?)^```", path.read_text(), re.M | re.S):
            lines = [line for line in entries.splitlines() if not line.startswith(":")]
            names = [re.sub(r".*<(.*)>", r"\1", line) for line in lines if line]
            listed |= {(path.parent / name).with_suffix(".md").resolve() for name in names}
    pages = {path for path in BY_HAND if path.is_relative_to(DOCS)}
    assert pages - listed == {DOCS / "index.md"}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.slow] if n in SECONDS else []) for n in RUN]
)
def test_python_of_a_page_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = blocks_of(name)
    assert "python" in dict(blocks)
    if name in TYPED - {"how-to/publish.md"}:
        before = [
            ("python", block)
            for kind, block in blocks_of("how-to/publish.md")
            if kind == "python"
        ]
        blocks = before + blocks
    names: dict = {"__name__": "page"}
    for language, block in blocks:
        if language == "python":
            exec(compile(block, name, "exec"), names)
        elif name in TYPED:
            type_lines(block)


def blocks_of(name):
    """The blocks of Python and of command lines of a page."""
    return re.findall(r"```(python|sh)\n(.*?)```", (DOCS / name).read_text(), re.S)


def type_lines(block):
    """Run the lines of a block as they are typed."""
    for line in block.replace("\\\n", " ").splitlines():
        program, *words = shlex.split(line)
        assert program == "workbench"
        done = CliRunner().invoke(app, words)
        assert done.exit_code == 0, f"{line}: {done.output}"


def test_docstrings_become_markdown_in_which_only_code_is_markup():
    assert text.markdown("the |v| of `a_b`\nx_1*y <z>") == r"the \|v\| of `a_b` x\_1\*y \<z\>"
    assert text.markdown("`one`  first\n`two`  second") == "- `one`: first\n- `two`: second"
    assert text.markdown("Two\n    `a`, `b`  x_y") == "```text\nTwo\n    `a`, `b`  x_y\n```"


def test_the_page_on_guarantees_computes_its_numbers(tmp_path):
    guarantee.write(tmp_path)
    rows = (tmp_path / "odds.inc").read_text()
    assert "| 1 | 2.72 | 73.1 % | 88.1 % |" in rows
    # ρ + 2·sqrt(ρ·ln(1/δ)) is the usual bound, and the exact one is below
    assert 0 < guarantee.epsilon_of_rho() < 0.1 + 2 * (0.1 * 13.8156) ** 0.5


def test_every_paper_has_its_errata():
    papers = re.findall(r"^\| \[(.*)\]\(", (DOCS / "papers.md").read_text(), re.M)
    headings = re.findall(r"^## (.*)$", (DOCS / "errata.md").read_text(), re.M)
    assert len(papers) == 5 and {*papers} <= {*headings}


def test_the_table_of_audits_has_every_mechanism_and_no_leak():
    recorded = audit.rows()
    assert {row["leaks"] for row in recorded} == {"False"}
    shown = audit.table(recorded)
    for cls in ALL:
        of_class = [row for row in recorded if row["name"].startswith(f"{cls.__name__}(")]
        assert {float(row["epsilon"]) for row in of_class} == {0.3, 1.0, 3.0}, cls.__name__
        assert f"[`{cls.__name__}`]" in shown
        for epsilon in (0.3, 1.0, 3.0):
            best = max(float(r["reached"]) for r in of_class if float(r["epsilon"]) == epsilon)
            computed = any(row["exact"] for row in of_class)
            hidden = not cls.accepts_dp  # by δ, from so few runs
            assert best >= 0.7 or computed or hidden, (cls.__name__, epsilon)
