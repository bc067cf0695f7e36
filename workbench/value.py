"""What a configuration is: a frozen value whose text can be pasted, and which checks its fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from inspect import formatannotation
from math import inf
from typing import Any, dataclass_transform
from unicodedata import category

_SHOWN = 60  # characters of a long value in an error


def parameter(
    default: Any = MISSING,
    low: float | None = None,
    high: float | None = None,
    *,
    unit: str = "",
    doc: str = "",
    integer: bool = False,
    strict: bool = False,
    choices: tuple[Any, ...] = (),
    check: Callable[[Any], str | None] | None = None,
    many: bool = False,
    kind: str = "setting",
) -> Any:
    """Declare one field of a value: the same words feed validation, widgets, command line and docs.

    `low` and `high` are inclusive unless `strict` (then `low` itself is refused); `choices` lists
    the only values allowed, or with `check` those that need none; `check` returns what is wrong with
    a value, or None. With `many` the value is a tuple of different such values, at least one. A field
    whose default is None may be None: it is then chosen by the value itself. `kind` is for the
    parameters of figures (`figures.KINDS`).
    """
    limits = dict(low=low, high=high, unit=unit, integer=integer, strict=strict)
    rules = limits | dict(choices=choices, check=check, many=many)
    return field(default=default, metadata=rules | {"doc": doc, "kind": kind})


def subset_of(names: Collection[str]) -> Callable[[Any], str | None]:
    """A check for `parameter`: a tuple of at least one of `names`, each at most once."""

    def wrong(chosen: Any) -> str | None:
        good = isinstance(chosen, tuple) and 0 < len(set(chosen)) == len(chosen)
        good = good and all(name in names for name in chosen)
        return None if good else f"need a tuple of different names out of {', '.join(names)}"

    return wrong


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def value(cls: type) -> type:
    """Make `cls` a frozen dataclass that checks its fields and omits defaults from its `repr`.

    Numpy scalars become Python numbers, so that equal values have equal text.

    >>> @value
    ... class Filter:
    ...     theta: float = parameter(low=0, unit="counts")
    ...     sides: int = parameter(2, choices=(1, 2))
    >>> Filter(40.0)
    Filter(theta=40.0)
    >>> Filter(-1)
    Traceback (most recent call last):
    ValueError: Filter.theta = -1 is not allowed: need a number >= 0 (counts)
    """
    after = getattr(cls, "__post_init__", None)

    def __post_init__(self: Any) -> None:
        for f in fields(self):
            x = getattr(self, f.name)
            if type(x).__module__ == "numpy" and getattr(x, "shape", None) == ():
                object.__setattr__(self, f.name, x := x.item())
            if "check" in f.metadata and not (x is None and f.default is None):
                if wrong := _wrong(x, f.metadata):
                    raise not_allowed(self, f.name, wrong)
        if after:
            after(self)

    own = {"__post_init__": __post_init__, "__repr__": _repr}
    for name, method in own.items():
        setattr(cls, name, method)
    made: Any = dataclass(frozen=True, repr=False)(cls)
    if documented := [f for f in fields(made) if f.metadata.get("doc")]:
        made.__init__.__doc__ = _parameters_text(documented)
    return made


def not_allowed(owner: Any, field: str, why: str, given: str = "") -> ValueError:
    """The error for a field of `owner` that is refused, `given` other fields or data."""
    text = (
        f"{type(owner).__name__}.{field} = {shown(getattr(owner, field))} is not allowed{given}"
    )
    return ValueError(f"{text}: {why}")


def shown(x: Any) -> str:
    """A value for an error, a long one by its beginning.

    >>> shown("Bern"), shown("x" * 200_000)
    ("'Bern'", "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx… (200,000 characters)")
    """
    text = repr(x)
    if len(text) <= 2 * _SHOWN:
        return text
    size = f" ({len(x):,} characters)" if isinstance(x, str) else ""
    return f"{text[:_SHOWN]}…{size}"


def plain(text: Any) -> str:
    """One line of text in which characters that move or colour a terminal are written out.

    >>> plain("a\\x1b[2J\\nb"), plain("zone\\u00a0é")
    ('a\\\\x1b[2J\\\\nb', 'zone\\xa0é')
    """
    return "".join(c if _harmless(c) else ascii(c)[1:-1] for c in str(text))


def _harmless(character: str) -> bool:
    """Whether a terminal only shows it; spaces other than the usual one are also shown."""
    return character.isprintable() or category(character) == "Zs"


def read_only(array: Any) -> Any:
    """The array if nobody can change it through this name, else a copy that nobody can change."""
    return sealed(array.copy()) if array.flags.writeable else array


def sealed(array: Any) -> Any:
    """The array itself, from now on unchangeable: for those that nobody else holds."""
    array.flags.writeable = False
    return array


def _repr(self: Any) -> str:
    told = (f for f in fields(self) if f.repr and not _is_default(self, f))
    return f"{type(self).__name__}({', '.join(f'{f.name}={getattr(self, f.name)!r}' for f in told)})"


def _is_default(self: Any, f: Field[Any]) -> bool:
    x = getattr(self, f.name)
    return f.default is not MISSING and type(x) is type(f.default) and x == f.default


def _wrong(x: Any, rules: Mapping[str, Any]) -> str | None:
    """What is wrong with `x`, in words; None if nothing is."""
    if not rules["many"]:
        return _wrong_one(x, rules)
    if not isinstance(x, tuple) or not x:
        return "need a tuple of at least one value"
    if len(set(x)) < len(x):
        return "need different values"
    return next(filter(None, (_wrong_one(one, rules) for one in x)), None)


def _wrong_one(x: Any, rules: Mapping[str, Any]) -> str | None:
    choices = rules["choices"]
    low = rules["low"]
    high = rules["high"]
    strict = rules["strict"]
    if choices:
        if any(type(x) is type(c) and x == c for c in choices):
            return None
        need = _need(rules)
        names = [c for c in choices if isinstance(c, str)]
        near = get_close_matches(x, names) if isinstance(x, str) else []
        if near:
            need += f"; did you mean {' or '.join(map(repr, near))}?"
        return rules["check"](x) and need if rules["check"] else need
    if rules["check"]:
        return rules["check"](x)
    kind = int if rules["integer"] else (int, float)
    good = isinstance(x, kind) and not isinstance(x, bool) and -inf < x < inf
    good = good and (low is None or x > low or (x == low and not strict))
    good = good and (high is None or x <= high)
    return None if good else _need(rules)


def _need(rules: Mapping[str, Any]) -> str:
    """What is allowed, in words."""
    if rules["choices"]:
        return f"need one of {', '.join(map(repr, rules['choices']))}"
    low, high = rules["low"], rules["high"]
    need = "need a whole number" if rules["integer"] else "need a number"
    if low is not None:
        need += f" {'>' if rules['strict'] else '>='} {low}"
    if high is not None:
        need += f"{' and' if low is not None else ''} <= {high}"
    if rules["unit"]:
        need += f" ({rules['unit']})"
    return need


def _parameters_text(declared: list[Field[Any]]) -> str:
    """The fields that `parameter` declared, as numpy's docstrings have them."""
    lines = ["Parameters", "----------"]
    for f in declared:
        kind = f.type if isinstance(f.type, str) else formatannotation(f.type)
        kind = re.sub(r"\w+\.", "", kind)  # of classes their names alone
        lines.append(f"{f.name} : {kind}" + (", optional" if f.default is not MISSING else ""))
        text = f"    {f.metadata['doc']}"
        if not f.metadata["check"]:
            text += "; " + _need(f.metadata).removeprefix("need ")
        if f.default not in (MISSING, None):
            text += f"; by default {f.default!r}"
        lines.append(text)
    return "\n".join(
        [*lines, "", "Raises", "------", "ValueError", "    For a value not allowed."]
    )
