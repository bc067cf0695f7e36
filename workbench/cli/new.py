"""`workbench new mechanism NAME`: the file that a mechanism of one's own begins with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import screen

app = typer.Typer(no_args_is_help=True, help="Begin a file of one's own.")

_HEAD = '''"""{name}: what it does, in one sentence in the field's words.

Guarantee  ε-DP per unit; which part of the budget pays for what.
Assumes    the table's bound; a domain that fits in memory.
Source     authors, venue, year; the theorem or algorithm.
Differs    where and why it departs from the source, or "nothing".
Cost       time and memory, in non-empty cells, output size and domain size.
"""
'''


@app.callback()
def new() -> None:
    """Begin a file of one's own."""


@app.command()
def mechanism(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its class, as in MyHistogram.")],
) -> None:
    """Write NAME's file into the current folder: a mechanism that works, to be changed into yours.

    It is our shortest one, noise on every count, under your name; `workbench laws` says whether what you
    make of it still obeys what every mechanism must.
    """
    if not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
        raise ValueError(
            f"NAME = {name!r} is not allowed: need a class's name, as in MyHistogram"
        )
    words = re.findall(r"[A-Z]+(?![a-z])|[A-Z][a-z0-9]*", name)
    path = Path(f"{'_'.join(words).lower()}.py")
    if path.exists():
        raise ValueError(f"{path} exists: choose another name")

    from workbench.mechanisms import laplace_histogram

    source = Path(laplace_histogram.__file__).read_text(encoding="utf-8")
    body = source.partition('"""\n\n')[2]
    body = body.replace("LaplaceHistogram", name).replace("Laplace histogram", " ".join(words))
    body = re.sub(r'cite = "\w+"', 'cite = ""  # the key of its source', body)
    path.write_text(f"{_HEAD.format(name=name)}\n{body}", encoding="utf-8")
    module = path.stem
    screen.say(
        f"{path}: change it, then try\n  workbench laws {module}:{name}\n"
        f"  workbench audit {module}:{name} --epsilon 1\n"
        f"  workbench release TABLE --with {module} --mechanism {name} …"
    )
