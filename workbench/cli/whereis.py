"""`workbench whereis`: where a picture, a table or a release comes from, by what it says itself."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench import provenance
from workbench.cli import screen

if TYPE_CHECKING:
    import pandas as pd

_COMMANDS = ("export", "reproduce")


def whereis(
    file: Annotated[
        Path, typer.Argument(help="A picture, a table, a release, or a saved figure's folder.")
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Run it again: do its rows agree?")
    ] = False,
) -> None:
    """Say how a file was made, and print the command that makes it again.

    The exit code of --check is 1 if rows differ. What was made with system noise is never run again:
    that would spend privacy once more.
    """
    record = provenance.read(file)
    for name, text in _lines(record).items():
        if text:
            screen.say(f"{name:10} {screen.plain(text)}")
    words = _words(record)
    if words:
        screen.say(f"\n{shlex.join(words)}")
    if check:
        _check(file, record, words)


def _lines(record: Mapping[str, Any]) -> dict[str, str]:
    """What a record says, by what it says it of."""
    release = record.get("release", {}) or (record if "mechanism" in record else {})
    files = record.get("files", {})
    data = record.get("datasets", [])
    hashes = [f"{name} sha256 {text}" for name, text in files.items()]
    changed = str(record.get("commit") or "").endswith(" with changes")
    commit = record.get("commit")
    return {
        "Figure": ", ".join(
            str(record[name]) for name in ("figure", "title") if name in record
        ),
        "Profile": str(record.get("profile", "")),
        "Parameters": ", ".join(f"{k} = {x}" for k, x in record.get("parameters", {}).items()),
        "Release": " · ".join(
            str(release[x])
            for x in ("guarantee", "mechanism", "file", "sha256")
            if isinstance(release.get(x), str)
        ),
        "Data": "; ".join(map(str, [*data, *hashes])),
        "Seeds": str(record.get("seeds") or ""),
        "Noise": _noise(record),
        "Commit": f"{commit}{'' if changed else ', clean'}" if commit else "not of a checkout",
        "Versions": ", ".join(f"{k} {x}" for k, x in record.get("versions", {}).items()),
    }


def _noise(record: Mapping[str, Any]) -> str:
    if "mechanism" in record:
        return "simulated" if record.get("simulated") else "system"
    return str(record.get("noise", ""))


def _words(record: Mapping[str, Any]) -> list[str]:
    """The words of the command, if it is one of the workbench's that only makes figures."""
    try:
        words = shlex.split(str(record.get("command", "")))
    except ValueError:
        return []
    return words if words[:1] == ["workbench"] and words[1:2] and words[1] in _COMMANDS else []


def _check(file: Path, record: Mapping[str, Any], words: list[str]) -> None:
    from workbench.figures.records import row_digest

    if _noise(record) == "system":
        raise ValueError(
            f"{file} was made with system noise: to run it again would spend its ε once more, and no "
            "row would agree"
        )
    if "rows" not in record or not words:
        raise ValueError(f"{file} was made by no command that can be run again")
    if row_digest(_rows_again(record, words)) == record["rows"]:
        screen.say("It was run again: all rows agree, times left out.")
        return
    here = provenance.commit()
    then = "" if here == record.get("commit") else "; it was made by other sources"
    screen.complain(f"it was run again, and rows differ{then}")
    raise typer.Exit(1)


def _rows_again(record: Mapping[str, Any], words: list[str]) -> pd.DataFrame:
    """Rows by the record's figure and settings alone: none of its words is run as a command."""
    from workbench import widgets
    from workbench.figures.exported import rows_again

    if record.get("profile") == "explorer":
        settings = [word for word in words[3:] if "=" in word and not word.startswith("-")]
        return widgets.from_settings(words[2], settings).to_export().rows
    with tempfile.TemporaryDirectory() as store:
        return rows_again(record, Path(store))
