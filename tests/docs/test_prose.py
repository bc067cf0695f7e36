"""Pages and docstrings are written as STYLE asks, and the checker sees a page that is not."""

from importlib import import_module

import pytest

from docs.pages import api
from tests.docs import prose
from tests.docs.test_docs import BY_HAND, DOCS, ROOT

FIRST = [
    ROOT / "README.md",
    DOCS / "start.md",
    DOCS / "guarantee.md",
    DOCS / "how-to/publish.md",
]
MOST_WORDS = 19_700  # of all pages, code included
BAD = (
    "# Bad\n\n"
    + "A file says so; it is not; `code;` is no matter. " * 9
    + "word " * 41
    + "ends.\n"
)


@pytest.mark.parametrize("path", BY_HAND, ids=lambda path: path.name)
def test_a_page_has_few_semicolons(path):
    assert not prose.semicolons(path.read_text())


@pytest.mark.parametrize("path", FIRST, ids=lambda path: path.name)
def test_first_pages_have_no_long_sentence(path):
    assert prose.long_sentences(path.read_text()) == []


def test_pages_stay_short():
    pages = [path for path in BY_HAND if path.is_relative_to(DOCS)]
    assert sum(len(path.read_text().split()) for path in pages) <= MOST_WORDS
    assert len((DOCS / "how-to/publish.md").read_text().split()) <= 300


@pytest.mark.parametrize("package", api.PACKAGES)
def test_docstrings_begin_with_a_verb_or_a_noun_phrase(package):
    members = dict(api.public(import_module(f"workbench.{package}")))
    found = {
        name: [prose.opening(doc) for doc in prose.docstrings(each) if doc]
        for name, each in members.items()
    }
    assert {
        name: faults for name, all_of in found.items() if (faults := [*filter(None, all_of)])
    } == {}


def test_the_checker_sees_bad_prose_and_leaves_code_alone():
    assert prose.semicolons(BAD) == "18 semicolons, and 1 are allowed"
    assert len(prose.long_sentences(BAD)) == 1
    for bad in ("What it costs.", "Of a user, the records.", "Return a list without end"):
        assert prose.opening(bad)
    good = (
        "Return the cost; see [a page](x;y).\n\n```sh\na; b; c\n```\n\n    d; e; f\n\n$x;y$\n"
    )
    assert not prose.semicolons(good) and not prose.long_sentences(
        "```\n" + "w " * 50 + "\n```"
    )
    assert not prose.opening("Return the cost.\n\nWhat it is.") and not prose.opening(
        "Cost of a release."
    )
