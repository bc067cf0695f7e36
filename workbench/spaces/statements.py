"""Rules as JSON has them: the fields of their classes under the same names, checked by a schema."""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import msgspec

from workbench.spaces.labels import Bins, Cross, Labels, Map
from workbench.spaces.rules import Rule, some
from workbench.spaces.times import TimePart
from workbench.value import plain, shown

BLANK = "FILL IN"
_KINDS = {  # by a word that only this one has; the first that fits
    "edges": Bins,
    "low": Bins,
    "high": Bins,
    "width": Bins,
    "bins": Bins,
    "time": TimePart,
    "map": Map,
    "cross": Cross,
    "labels": Labels,
    "from": Labels,
    "to": Labels,
    "file": Labels,
}
_WHOLE = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_TYPES: dict[str, Any] = {  # of words that are no text
    "missing_values": list[str | int],
    "edges": list[float],
    **dict.fromkeys(("low", "high", "width"), float),
    "bins": int,
    **dict.fromkeys(("first", "last"), str | int),
    "date_only": bool,
    "labels": list,
    "map": dict[str, str | int] | list | str,
    "cross": list[dict[str, Any]],
    **dict.fromkeys(("from", "to", "step"), _WHOLE),
}
_IN_WORDS = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "an integer",
    "object": "an object",
    "str": "text",
}


def rule_from_dict(name: str, stated: Any, folder: Path | None = Path()) -> Rule:
    """The rule of an attribute.

    Parameters
    ----------
    name : str
        The attribute, for errors.
    stated : Rule, list, dict or int
        As `Domain.from_dict` takes it.
    folder : Path, optional
        Where files of labels and maps are; None, if none is to be read.

    Returns
    -------
    Rule

    Raises
    ------
    ValueError
        Anything else, or a rule that is refused, with the path of the field as in `$.age.width`.
    """
    if isinstance(stated, Rule):
        return stated
    where = f"$.{name}" if name.isidentifier() and len(name) < 60 else f"$[{shown(name)}]"
    try:
        match stated:
            case bool():
                pass
            case int():
                return Labels(_numbered(stated))
            case [*_] if stated:
                return Labels(tuple(stated))
            case {} if stated:
                return _rule_from_words(stated, name, folder)
    except msgspec.ValidationError as e:
        raise ValueError(f"{where}{field_in_words(e)}") from None
    except ValueError as e:
        raise ValueError(f"{where}: {e}") from None
    raise ValueError(
        f'{where}: need a number of values, {{"from": a, "to": b}}, a list of labels, {{"file": name}} or a '
        f"rule; got {shown(stated)}"
    )


@cache
def _schema(kind: type[Rule]) -> Any:
    """The words that make a rule of this kind, each with its type."""
    words = [f.name for f in fields(kind)]
    types = dict(_TYPES)
    if kind is Labels:
        words += ["from", "to", "step", "file"]
        types["labels"] |= int
    typed = [(f"_{word}", types.get(word, str) | None, None) for word in words]
    names = {f"_{word}": word for word in words}
    return msgspec.defstruct(kind.__name__, typed, rename=names, forbid_unknown_fields=True)


def field_in_words(e: msgspec.ValidationError) -> str:
    """The path of a field below the attribute, and what is expected there."""
    text, _, path = str(e).partition(" - at `$")
    found = re.match("Expected `([^`]+)`(.*?)(?:, got `([^`]+)`)?$", text)
    if found:
        allowed = found[1].replace("int | float", "float").split(" | ")
        kinds = [_IN_WORDS.get(kind, kind) for kind in allowed if kind != "null"]
        text = f"expected {' or '.join(kinds)}{found[2]}"
        text += f", got {_IN_WORDS.get(found[3], found[3])}" if found[3] else ""
    return plain(f"{path.removesuffix('`')}: {text}")[:300]


def _rule_from_words(words: Mapping[str, Any], name: str, folder: Path | None) -> Rule:
    chosen = {word: content for word, content in words.items() if content is not None}
    kind: Any = next((kind for word, kind in _KINDS.items() if word in chosen), None)
    if kind is None:
        raise ValueError(
            "it does not say what its labels are: need labels, from and to, file, edges, low and high, "
            f"time, map or cross; got {some(list(words))}"
        )
    plain = {word: x for word, x in chosen.items() if not _is_pythons(x)}
    try:
        msgspec.convert(plain, _schema(kind))
    except msgspec.ValidationError as e:
        if "unknown field" not in str(e):
            raise
        known = ", ".join(_schema(kind).__struct_encode_fields__)
        raise ValueError(f"{field_in_words(e).removeprefix(': ')}; need {known}") from None
    if kind is Labels:
        chosen["labels"] = _labels(chosen, folder)
        for word in ("from", "to", "step", "file"):
            chosen.pop(word, None)
    elif kind is Map:
        chosen["map"] = _map(chosen["map"], folder, chosen.get("column", name))
    elif kind is Cross:
        if any("cross" in part for part in chosen["cross"] if isinstance(part, dict)):
            raise ValueError("cross stands in cross: need rules of one column each")
        chosen["cross"] = [rule_from_dict(name, part, folder) for part in chosen["cross"]]
    made: Rule = kind(**chosen)
    return made


def _is_pythons(x: Any) -> bool:
    """Whether it is what no JSON holds."""
    is_list = isinstance(x, list | tuple)
    return isinstance(x, range) or (is_list and any(isinstance(part, Rule) for part in x))


def _labels(words: Mapping[str, Any], folder: Path | None) -> Any:
    """Labels that are stated in one of the ways."""
    if ("labels" in words) + ("file" in words) + bool({"from", "to", "step"} & set(words)) > 1:
        raise ValueError("its labels are stated twice: need labels, from and to, or file")
    if "file" in words:
        return _labels_from_file(_beside(folder, words["file"]))
    if "labels" in words:
        labels = words["labels"]
        return _numbered(labels) if isinstance(labels, int) else labels
    if not {"from", "to"} <= set(words):
        raise ValueError("need from and to, the first and the last integer")
    first, last, step = words["from"], words["to"], words.get("step", 1)
    if step == 0:
        raise ValueError("step = 0 is not allowed: need an integer, not 0")
    labels = range(first, last + (1 if step > 0 else -1), step)
    if not labels:
        raise ValueError(f"there is no number from {first} to {last} by steps of {step}")
    if (labels[-1] - first) // step >= 2**63 - 1:
        raise ValueError(f"from {first} to {last} are too many values: need < 2⁶³")
    return labels


def _numbered(size: int) -> range:
    if not 1 <= size < 2**63:
        raise ValueError(f"{shown(size)} values are not possible: need 1 … {2**63 - 1}")
    return range(size)


def rule_to_dict(rule: Rule) -> dict[str, Any]:
    """What `rule_from_dict` reads; the labels always stand in it."""
    stated: dict[str, Any] = {}
    for f in fields(rule):
        content = getattr(rule, f.name)
        if f.name == "labels" or content != f.default:
            stated[f.name] = list(content) if isinstance(content, tuple) else content
    if isinstance(rule, Map):
        stated["map"] = dict(rule.map)
    elif isinstance(rule, Cross):
        stated["cross"] = [rule_to_dict(part) for part in rule.cross]
    labels = stated["labels"]
    if isinstance(labels, range) and isinstance(rule, Labels):
        stated |= range_to_dict(labels)
        del stated["labels"]
    elif isinstance(labels, range):
        stated["labels"] = list(labels)
    return stated


def range_to_dict(labels: range) -> dict[str, Any]:
    """A range as `from_dict` reads it."""
    stated = {"from": labels[0], "to": labels[-1]}
    return stated if labels.step == 1 else stated | {"step": labels.step}


def read_json(path: Path) -> Any:
    """A JSON file of which nothing is read in two ways.

    Raises
    ------
    FileNotFoundError
        No such file, or what is none: a folder, a device.
    ValueError
        Another encoding than UTF-8, a key that stands twice in one object, NaN or Infinity, or lists
        in lists without end.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    content = path.read_bytes()
    if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(f"{path}: it is written as UTF-16; save it as UTF-8")
    try:
        return json.loads(
            content.decode("utf-8-sig"),
            object_pairs_hook=object_of_different_keys,
            parse_constant=refuse_constant,
        )
    except json.JSONDecodeError as e:
        raise ValueError(f"{path}, line {e.lineno}: not JSON ({e.msg})") from None
    except UnicodeDecodeError as e:
        line = content.count(b"\n", 0, e.start) + 1
        raise ValueError(f"{path}, line {line}: it is not UTF-8; save it as UTF-8") from None
    except RecursionError:
        raise ValueError(f"{path}: too many lists or objects in each other") from None
    except ValueError as e:
        raise ValueError(f"{path}: {e}") from None


def object_of_different_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """What `json.loads` takes; a ValueError for a key that stands twice."""
    stated: dict[str, Any] = {}
    for key, content in pairs:
        if key in stated:
            raise ValueError(f"the key {shown(key)} stands twice in one object")
        stated[key] = content
    return stated


def refuse_constant(text: str) -> None:
    """What `json.loads` takes; a ValueError for NaN and Infinity."""
    raise ValueError(f"{text} is not a number that JSON has")


def _beside(folder: Path | None, name: str) -> Path:
    """A file of labels, which a file that strangers wrote may not name."""
    if folder is None:
        raise ValueError(f"the file {shown(name)} is not read: need its labels")
    return folder / name


def _lines(path: Path) -> list[str]:
    try:
        if stat.S_ISREG(path.stat().st_mode) or path.is_dir():
            content = path.read_bytes()
        else:  # a device, or a pipe, that may never end
            raise ValueError(f"{shown(str(path))} is no file")
    except OSError as e:
        raise ValueError(f"{shown(str(path))}: {e.strerror}") from None
    try:
        return content.decode("utf-8-sig").splitlines()
    except UnicodeDecodeError:
        raise ValueError(f"{path}: it is not UTF-8; save it as UTF-8") from None


def _labels_from_file(path: Path) -> tuple[str, ...]:
    """Labels from a file, one a line; blank lines and a byte-order mark are not labels."""
    labels = tuple(line.strip() for line in _lines(path) if line.strip())
    if not labels:
        raise ValueError(f"{path}: it holds no labels")
    return labels


def _map(stated: Any, folder: Path | None, column: Any) -> Any:
    """A map from an object, a JSON file, or lines of value,label.

    A first line whose first field is the column's name names the columns.
    """
    if not isinstance(stated, str):
        return stated
    path = _beside(folder, stated)
    if path.suffix == ".json":
        _lines(path)
        content = read_json(path)
        if not isinstance(content, dict):
            raise ValueError(f"{path}: need an object from values to labels")
        return content
    import csv

    line_of: dict[str, int] = {}
    pairs: list[Any] = []
    reader = csv.reader(_lines(path))
    for row in _rows(reader, path):
        if not any(field.strip() for field in row):
            continue
        if len(row) != 2:
            raise ValueError(
                f"{path}, line {reader.line_num}: need value,label; got {shown(row)}"
            )
        source, label = (field.strip() for field in row)
        if not pairs and not line_of and source == column:
            line_of[source] = 0  # a header
            continue
        if line_of.get(source):
            raise ValueError(
                f"{path}, line {reader.line_num}: {shown(source)} stood in line {line_of[source]} "
                "already; need one label for each value"
            )
        line_of[source] = reader.line_num
        pairs.append((source, label))
    return pairs


def _rows(reader: Any, path: Path) -> Iterator[list[str]]:
    import csv

    try:
        yield from reader
    except csv.Error as e:
        raise ValueError(f"{path}, line {reader.line_num}: {e}") from None


def refuse_blanks(attributes: Mapping[str, Any]) -> None:
    """A ValueError that names the attributes in which `workbench domain new` left something blank."""
    blanks = {name: _blanks(stated) for name, stated in attributes.items()}
    names = [shown(name) for name, words in blanks.items() if words is not None]
    if not names:
        return
    words = next(words for words in blanks.values() if words is not None)
    which = f" ({', '.join(words)})" if words else ""
    others = f"; so are {some(names[1:])}" if len(names) > 1 else ""
    raise ValueError(
        f"attribute {names[0]} of the domain is still to be filled in{which}: say what values there can "
        f"be, or take it out{others}"
    )


def _blanks(stated: Any) -> list[str] | None:
    """The words of a rule that are blank; None if nothing is."""
    if stated == BLANK or (isinstance(stated, list) and BLANK in stated):
        return []
    if not isinstance(stated, dict):
        return None
    words = [str(word) for word, x in stated.items() if _blanks(x) is not None]
    parts = stated.get("cross")
    if isinstance(parts, list) and any(_blanks(part) is not None for part in parts):
        words.append("cross")
    return words or None
