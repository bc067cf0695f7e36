"""A small checker of prose: what STYLE asks of pages and docstrings, in numbers."""

import inspect
import re

WORDS_PER_SEMICOLON = 200
LONGEST = 40  # words of a sentence where a newcomer begins
OPENINGS = (
    "What Of Whose Who Whoever Those That As Whether Which Where When How If So And But".split()
)
CODE = re.compile(r"^(`{3,}|:{3,}).*?^\1|^ {4}\S.*?$", re.M | re.S)
MARKUP = re.compile(r"\$\$.*?\$\$|\$[^$\n]+\$|`[^`]*`|<[^>]*>|&\w+;|(?<=\])\([^)]*\)", re.S)


def prose(page: str) -> str:
    """The text of a page without code, formulas and targets of links."""
    return MARKUP.sub("x", CODE.sub("", page))


def sentences(page: str) -> list[str]:
    """The sentences of its paragraphs and items, without tables and headings."""
    kept = [line for line in prose(page).splitlines() if not re.match(r"\s*(\||#|!\[)", line)]
    paragraphs = re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", "\n".join(kept))
    return [part for text in paragraphs for part in re.split(r"(?<=[.?!:])\s+", text.strip())]


def semicolons(page: str) -> str:
    """A fault, if the page has more semicolons than one in 200 words."""
    text = prose(page)
    found, allowed = text.count(";"), max(1, len(text.split()) // WORDS_PER_SEMICOLON)
    return f"{found} semicolons, and {allowed} are allowed" if found > allowed else ""


def long_sentences(page: str) -> list[str]:
    """The sentences beyond 40 words."""
    return [text for text in sentences(page) if len(text.split()) > LONGEST]


def opening(doc: str) -> str:
    """A fault, if a docstring begins with neither a verb nor a noun phrase."""
    first = doc.strip().partition("\n\n")[0]
    word = re.match(r"\w+", first)
    if not first.endswith((".", ":")):
        return f"no sentence: {first[-40:]}"
    return f"begins with {word[0]!r}" if word and word[0] in OPENINGS else ""


def docstrings(member: object) -> list[str]:
    """The docstrings of a class and its public methods, or of a function."""
    if not inspect.isclass(member):
        return [member.__doc__ or ""]
    methods = (each for name, each in vars(member).items() if name[0] != "_")
    return [
        member.__doc__ or "",
        *(each.__doc__ or "" for each in methods if inspect.isfunction(each)),
    ]
