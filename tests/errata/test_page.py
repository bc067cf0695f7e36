"""docs/errata.md: every entry is complete and has its test, and every test has its entry."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "errata.md").read_text()
ENTRIES = re.split(r"^### ", PAGE, flags=re.M)[1:]
PARTS = ["Printed", "Right", "Here"]
PAPERS = ["cormode2012", "hay2010", "fan2015", "chen2012", "adaptive2009"]
SOURCES = [*PAPERS, "rivals"]


def anchor(entry):
    return re.match(r'<a id="(\w+)-([\w-]+)"></a>\S', entry)


def heading_anchor(title):
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def written_tests(paper):
    path = Path(__file__).with_name(f"test_{paper}.py")
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield paper, node.name


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.splitlines()[0][:60])
def test_an_entry_is_complete(entry):
    assert anchor(entry)
    assert re.findall(r"^- \*\*(\w+)\*\*", entry, re.M) == PARTS
    printed, *_ = entry.split("- **Right**")
    assert re.search(
        r"\((§|Table|Definition|Theorem|Lemma|Appendix|Remark|Figure|code)", printed
    )
    paper, slug = anchor(entry).groups()
    name = "test_" + slug.replace("-", "_")
    assert f"([`{name}`](../tests/errata/test_{paper}.py))." in entry.split("- **Here**")[1]


def test_every_test_has_its_entry_and_every_entry_its_test():
    listed = Counter(
        (paper, "test_" + slug.replace("-", "_"))
        for paper, slug in (anchor(entry).groups() for entry in ENTRIES)
    )
    written = Counter(test for paper in SOURCES for test in written_tests(paper))
    assert listed == written
    assert max(listed.values()) == 1
    files = {path.stem for path in Path(__file__).parent.glob("test_*.py")}
    assert files == {"test_page", *(f"test_{paper}" for paper in SOURCES)}


def test_entries_stand_under_their_paper():
    for section in re.split(r"^## ", PAGE, flags=re.M)[1:]:
        papers = {anchor(entry)[1] for entry in re.split(r"^### ", section, flags=re.M)[1:]}
        assert len(papers) == (len(PAPERS) if section.startswith("Printed amb") else 1)


def test_links_within_the_page_lead_somewhere():
    titles = re.findall(r"^## (.*)$", PAGE, re.M)
    there = {heading_anchor(title) for title in titles} | set(re.findall(r'id="([^"]+)"', PAGE))
    asked = set(re.findall(r"\]\(#([^)]+)\)", PAGE))
    assert asked and asked <= there


def test_docstrings_point_to_entries_that_exist():
    for folder in ("workbench", "experiments"):
        for path in (ROOT / folder).rglob("*.py"):
            for name in re.findall(r"errata\.md#([\w-]+)", path.read_text()):
                assert f'id="{name}"' in PAGE, path
