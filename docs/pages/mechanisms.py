"""A page a mechanism, from the docstring of its file, its fields, and one small example."""

from __future__ import annotations

import re
import tomllib
from dataclasses import MISSING, Field, fields
from inspect import getdoc, getmembers, isfunction, signature
from pathlib import Path

import workbench
from docs.pages import pictures
from docs.pages.text import capitalised, cell, markdown
from workbench import Interactions, Records, SparseTable, mechanisms
from workbench.data import UnlistedValues
from workbench.mechanisms.laws import Subject
from workbench.mechanisms.options import option_need, release_options
from workbench.mechanisms.protocol import Mechanism, promises_of
from workbench.privacy import ADD_REMOVE, LOCAL, REPLACE

DOCS = Path(__file__).parents[1]
SECTION = re.compile(r"^(Guarantee|Assumes|Source|Differs|Cost)  +(.*(?:\n(?: +.*)?)*)", re.M)
NEIGHBOURS = {
    ADD_REMOVE: "Neighbouring inputs differ by all records of one unit, added or removed.",
    REPLACE: "Neighbouring inputs differ by one unit that is replaced by another.",
    LOCAL: "The guarantee is local: it holds for the report of each tuple by itself.",
}
GIVEN = {
    SparseTable: "table",
    Records: "records",
    Interactions: "interactions",
    UnlistedValues: "values",
}
MADE = {  # lines that make the data, where nobody would guess them
    UnlistedValues: """
words = ["hut"] * 600 + ["axe"] * 500 + ["yurt"]  # one row a user, private
values = UnlistedValues.from_values("word", words, Bound(), users=range(len(words)))"""
}
PAGES = (*mechanisms.ALL, *(cls for cls in mechanisms.COMPOSED if cls.takes is UnlistedValues))
RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
IDEALISED = (
    " Its noise is *idealised*: drawn with floating point, which the proof does not cover, so that its "
    "releases cannot be saved for publication."
)


def write(folder: Path) -> None:
    """Write `<class>.md` and its picture for each mechanism, and the table of all."""
    when = when_to_use()
    proofs = proof_sketches()
    for cls in PAGES:
        name = cls.__name__
        pictures.draw(cls, folder)
        (folder / f"{name}.md").write_text(page(cls, when[name], proofs[name]), "utf-8")
    (folder / "table.inc").write_text(table(), "utf-8")


def when_to_use() -> dict[str, str]:
    """For each mechanism what it is for, and what to take instead."""
    return tomllib.loads((DOCS / "when_to_use.toml").read_text(encoding="utf-8"))


def proof_sketches() -> dict[str, str]:
    """For each mechanism why its guarantee holds."""
    return tomllib.loads((DOCS / "proofs.toml").read_text(encoding="utf-8"))


def table() -> str:
    """All mechanisms by family, a line each."""
    headings = mechanisms.HEADINGS
    families = {file: name for name, files in headings.items() for file in files.split()}
    parts = {name: ["| mechanism | what it does |", "|---|---|"] for name in headings}
    for cls in PAGES:
        link = f"[{capitalised(cls.title)}](/mechanisms/{cls.__name__}.md)"
        line = f"| {link}<br>`{cls.__name__}` | {cell(markdown(summary(cls)))} |"
        parts[families[cls.__module__.rpartition(".")[2]]].append(line)
    return (
        "\n\n".join(f"## {name}\n\n" + "\n".join(lines) for name, lines in parts.items()) + "\n"
    )


def summary(cls: type) -> str:
    """The first paragraph of its class."""
    return (getdoc(cls) or "").split("\n\n")[0]


def sections(cls: type) -> dict[str, str]:
    """The five sections of a mechanism's docstring."""
    doc = getdoc(cls) or ""
    return {name: capitalised(markdown(text)) for name, text in SECTION.findall(doc)}


def page(cls: type, when: str, proof: str) -> str:
    """The page of a mechanism."""
    name = cls.__name__
    about = sections(cls)
    idealised = IDEALISED if cls.idealised else ""
    parts = [
        f"# {capitalised(cls.title)}",
        f"`workbench.mechanisms.{name}`",
        markdown((getdoc(cls) or "").removesuffix(promises_of(cls))),
        pictures.markdown(cls),
        f"## When to use it\n\n{when}",
        f"## Guarantee\n\n{about['Guarantee']}",
        NEIGHBOURS[cls.relation] + idealised,
        f"### Why it holds\n\n{proof}",
        f"## What it assumes\n\n{about['Assumes']}",
        f"## Parameters\n\n{parameters(cls)}",
        f"## Example\n\n{example(cls)}",
        f"## Source\n\n{about['Source']}",
        f"## Where it differs from the paper\n\n{about['Differs']}",
        f"## Time and memory\n\n{about['Cost']}",
        f"## Class\n\n{methods(cls)}",
    ]
    return "\n\n".join(parts) + "\n"


def parameters(cls: type) -> str:
    """Its fields, as they are declared."""
    lines = ["| parameter | meaning | allowed | default |", "|---|---|---|---|"]
    for f in fields(cls):
        columns = (f"`{f.name}`", f.metadata.get("doc") or "—", allowed(f), default(f))
        lines.append("| " + " | ".join(map(cell, columns)) + " |")
    return "\n".join(lines)


def allowed(f: Field) -> str:
    """The values that a field takes."""
    if f.name == "budget":
        return "`DP(epsilon)`, or `DP(epsilon, delta)` where a δ is spent"
    if "doc" not in f.metadata:
        return f"`{f.type}`"
    return re.sub(r"\d{8,}", power_of_two, markdown(option_need(f)))


def power_of_two(number: re.Match) -> str:
    """A large number as a power of two, where it is one."""
    exponent = int(number[0]).bit_length() - 1
    return f"2{str(exponent).translate(RAISED)}" if int(number[0]) == 2**exponent else number[0]


def default(f: Field) -> str:
    """The default of a field; a dash where it must be given."""
    return "—" if f.default is MISSING else f"`{f.default!r}`"


def example(cls: type) -> str:
    """Its example, as Python and as a command."""
    mechanism = cls.example(Subject(cls).budget(0.5))
    made, given = MADE.get(cls.takes, ""), GIVEN[cls.takes]
    names = set(re.findall(r"\b([A-Z]\w+)[(.]", f"{mechanism!r}{made}"))
    rooms = {
        "workbench": workbench.__all__,
        "workbench.data": [UnlistedValues.__name__],
        "workbench.mechanisms": mechanisms.__all__,
    }
    imports = [(room, ", ".join(sorted(names & set(own)))) for room, own in rooms.items()]
    lines = [f"from {room} import {own}" for room, own in imports if own]
    lines += [made, f"mechanism = {mechanism!r}", f"release = mechanism({given})"]
    code = "\n".join(lines)
    options = release_options(mechanism)
    command = (
        "On the command line:\n\n```sh\nworkbench release table.csv --domain domain.json "
        f"--user user_id --bound 1,1 \\\n    {options} --out release.parquet\n```"
    )
    return f"```python\n{code}\n```" + (f"\n\n{command}" if options else "")


def methods(cls: type) -> str:
    """The directives that document its class and its public methods."""
    arguments = ", ".join(map(str, signature(cls).parameters))
    name = f"workbench.mechanisms.{cls.__name__}"
    lines = [f".. py:class:: {name}({arguments})"]
    skipped = {"example", *vars(Mechanism)}
    for method, _ in getmembers(cls, isfunction):
        if method not in skipped and not method.startswith(("_", "refuse_")):
            lines.append(f".. automethod:: {name}.{method}")
    return "```{eval-rst}\n" + "\n\n".join(lines) + "\n```"
