"""Conversion of rules to and from JSON, and strict reading of JSON and CSV files. A rule computes the label
of an attribute from the columns of a row.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import msgspec

from workbench.spaces.labels import Bins, Cross, Labels, Map, Unlisted
from workbench.spaces.rules import Rule, some
from workbench.spaces.times import TimePart
from workbench.value import plain, shown

BLANK = "FILL IN"
_KINDS: dict[Any, str] = {  # a rule needs one of its words
    Bins: "edges low high width bins",
    TimePart: "time",
    Map: "map",
    Cross: "cross",
    Labels: "labels from to file",
}
_WAYS = "from", "to", "step", "file"  # keys that state labels


def rule_from_dict(name: str, stated: Any, folder: Path | None = Path()) -> Rule:
    """Create the rule of an attribute from a description, for example from the content of a JSON file. The
    rule computes the attribute's label from the columns of a row.

    Parameters
    ----------
    name : str
        Name of the attribute, for error messages. By default, the attribute's column has the same name.
    stated : Rule, list, dict or int
        Description of the attribute, in one of the forms that `Domain.from_dict` accepts.
    folder : Path, optional
        Folder that contains the files of labels and maps. Default: the current folder. With None, a description
        that names a file raises an error.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError
        If the description has another form, or if a field of the rule is not allowed. The message names the
        field, for example `$.age.width`.
    """
    where = f"$.{name}" if name.isidentifier() and len(name) < 60 else f"$[{shown(name)}]"
    try:
        return _rule(stated, name, folder)
    except (ValueError, OSError, OverflowError) as e:
        text = re.sub(
            "^[A-Z][A-Za-z]+(?=[.][a-z_]+ = )", "", str(e)
        )  # keep only the path of the field
        raise ValueError(f"{where}{'' if text[:1] == '.' else ': '}{text[:500]}") from None


def _rule(stated: Any, name: str, folder: Path | None) -> Rule:
    match stated:
        case Rule():
            return stated
        case int() if stated > 0 and stated is not True:
            return Labels(range(stated))
        case [*_] if stated:
            return Labels(tuple(stated))
        case {} if stated:
            return _rule_from_words(stated, name, folder)
    raise ValueError(
        'need a number of values, {"from": a, "to": b}, a list of labels, {"file": name} or a rule; '
        f"got {shown(stated)}"
    )


def field_in_words(e: msgspec.ValidationError) -> str:
    """Return the text of a schema error. The text contains the path of the wrong field, and the values that the
    schema expects there.
    """
    text, _, path = str(e).partition(" - at `$")
    return plain(f"{path.removesuffix('`')}: {text}")[:300]


def _rule_from_words(words: Mapping[str, Any], name: str, folder: Path | None) -> Rule:
    chosen = {word: content for word, content in words.items() if content is not None}
    kind = next((kind for kind in _KINDS if set(_KINDS[kind].split()) & set(chosen)), None)
    if kind is None:
        raise ValueError(
            "it does not say what its labels are: need labels, from and to, file, edges, low and high, "
            f"time, map or cross; got {some(list(words))}"
        )
    if chosen.get("labels") == "unlisted" and kind is Labels:
        kind = Unlisted
    known = [f.name for f in fields(kind)]
    if kind is Labels:
        known += _WAYS
    if unknown := [word for word in chosen if word not in known]:
        raise ValueError(f"unknown field {shown(unknown[0])}. Known fields: {', '.join(known)}")
    if kind is Labels:
        ways = {word: chosen.pop(word) for word in ("labels", *_WAYS) if word in chosen}
        chosen["labels"] = _labels(folder, **ways)
    elif kind is Map:
        chosen["map"] = _map(
            chosen["map"], folder, chosen.get("column", name), "labels" in chosen
        )
    elif kind is Cross and isinstance(chosen["cross"], list | tuple):
        chosen["cross"] = [_rule(part, name, folder) for part in chosen["cross"]]
    made: Rule = kind(**chosen)
    return made


def _labels(
    folder: Path | None, labels: Any = None, file: Any = None, step: Any = 1, **ends: Any
) -> Any:
    """Return the labels of an attribute from a list, a number of values, a range (`from` and `to`), or a
    file.
    """
    if (labels is not None) + (file is not None) + bool(ends or step != 1) > 1:
        raise ValueError("its labels are stated twice: need labels, from and to, or file")
    if file is not None:
        lines = read_text(_beside(folder, file)).splitlines()
        return tuple(line.strip() for line in lines if line.strip())
    if labels is not None:
        return range(labels) if type(labels) is int else labels
    first: Any = ends.get("from")
    last: Any = ends.get("to")
    if all(type(x) is int and abs(x) < 2**63 for x in (first, last, step)) and step:
        if found := range(first, last + (1 if step > 0 else -1), step):
            return found
    raise ValueError(
        "need from and to, the first and the last integer, and a step other than 0 that leads from one "
        f"to the other; got from {shown(first)} to {shown(last)} by {shown(step)}"
    )


def rule_to_dict(rule: Rule) -> dict[str, Any]:
    """Return a dictionary with the fields of a rule, which computes labels from rows. `rule_from_dict` reads
    such dictionaries. Fields that have their default value are left out.
    """
    stated = {f.name: x for f in fields(rule) if (x := getattr(rule, f.name)) != f.default}
    if isinstance(rule, Labels) and isinstance(rule.labels, range):
        stated |= range_to_dict(stated.pop("labels"))
    elif isinstance(rule, Map):
        stated["map"] = dict(rule.map)
    elif isinstance(rule, Cross):
        stated["cross"] = [rule_to_dict(part) for part in rule.cross]
    return {word: list(x) if isinstance(x, tuple | range) else x for word, x in stated.items()}


def range_to_dict(labels: range) -> dict[str, Any]:
    """Return a dictionary that describes a range of integers by the first value ("from") and the last value
    ("to"). The entry "step" is added if the step is not 1.
    """
    stated = {"from": labels[0], "to": labels[-1]}
    return stated if labels.step == 1 else stated | {"step": labels.step}


def read_text(path: Path) -> str:
    """Return the content of a text file in UTF-8. Raise a FileNotFoundError if the path is not an ordinary
    file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        return path.read_text("utf-8-sig")
    except UnicodeDecodeError:
        raise ValueError(f"{path}: it is not UTF-8. Save it as UTF-8") from None


def read_json(path: Path) -> Any:
    """Read a JSON file. Unlike Python's own reader, the function raises an error if an object has a key
    twice.

    Raises
    ------
    FileNotFoundError
        If the path is not an ordinary file, for example because it does not exist or is a folder.
    ValueError
        If the file is not JSON in UTF-8, if an object has a key twice, if a number is NaN or infinite, or if
        lists are nested too deeply.
    """
    text = read_text(path)
    try:
        return json.loads(
            text, object_pairs_hook=object_of_different_keys, parse_constant=refuse_constant
        )
    except json.JSONDecodeError as e:
        raise ValueError(f"{path}, line {e.lineno}: not JSON ({e.msg})") from None
    except (ValueError, RecursionError) as e:
        raise ValueError(f"{path}: {e}") from None


def object_of_different_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a dictionary with the `pairs` of keys and values of a JSON object. Raise a ValueError if a key
    occurs twice.
    """
    stated: dict[str, Any] = {}
    for key, content in pairs:
        if key in stated:
            raise ValueError(f"the key {shown(key)} occurs twice in one object")
        stated[key] = content
    return stated


def refuse_constant(text: str) -> None:
    """Raise a ValueError for NaN and Infinity, which standard JSON does not allow."""
    raise ValueError(f"{text} is not a number that JSON has")


def _beside(folder: Path | None, name: Any) -> Path:
    """Return the path of a file of labels in `folder`. If `folder` is None, raise a ValueError, because
    untrusted input may not name files.
    """
    if folder is None:
        raise ValueError(f"the file {shown(name)} is not read: need its labels")
    return folder / str(name)


def _map(stated: Any, folder: Path | None, column: Any, is_checked: bool) -> Any:
    """Return a map from values to labels. The map is given as an object, as the name of a JSON file, or as
    the name of a CSV file.

    Each line of the CSV file contains a value and its label. The first line is a header with the name of the
    column.

    Older CSV files have no such header. In an older file, the first line is read as a pair if the labels were
    given separately, or if the line's label occurs in another line. Otherwise, the function raises a ValueError
    that asks whether the first line is a header.
    """
    if not isinstance(stated, str):
        return stated
    path = _beside(folder, stated)
    if path.suffix == ".json":
        return read_json(path)
    pairs = read_fields(path)
    if pairs and pairs[0][0] == column:
        return pairs[1:]
    if pairs and not is_checked and pairs[0][1:] not in [pair[1:] for pair in pairs[1:]]:
        raise ValueError(
            f"{path}: is the first line, {shown(','.join(pairs[0]))}, a header? Write a line "
            f"{shown(f'{column},label')} in its place if it is one, or above it"
        )
    return pairs


def read_fields(path: Path) -> list[list[str]]:
    """Return the content of a CSV file as a list of lines, each a list of its fields. Spaces around fields
    are removed, and blank lines are left out.
    """
    try:
        rows = list(csv.reader(read_text(path).splitlines(), strict=True))
    except csv.Error as e:
        raise ValueError(f"{path}: {e}") from None
    return [[field.strip() for field in row] for row in rows if any(map(str.strip, row))]


def refuse_blanks(attributes: Mapping[str, Any]) -> None:
    """Raise a ValueError if a domain file still contains the text FILL IN. The command `workbench domain new`
    writes this text where you have to state the possible values.
    """
    names = [shown(name) for name, stated in attributes.items() if repr(BLANK) in repr(stated)]
    if names:
        others = f"; so are {some(names[1:])}" if len(names) > 1 else ""
        raise ValueError(
            f"attribute {names[0]} of the domain is still to be filled in: state which values are possible, "
            f"or remove it{others}"
        )
