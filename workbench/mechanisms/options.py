"""Functions that write field values as text and read them back, for the command line and panels."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from dataclasses import MISSING, Field, fields
from math import inf
from shlex import quote
from typing import TYPE_CHECKING, Any

from workbench.value import LARGE_LIMIT

if TYPE_CHECKING:
    from workbench.data import Bound


_SWITCH = {"on": True, "off": False}


# ---- numbers


def parse_number(name: str, text: str) -> int | float:
    """Read a number from a text. If the text is not a number, raise a ValueError that contains `name`, the
    name of the option.
    """
    for kind in (int, float):
        try:
            if "_" not in text:  # which Python reads over, and nobody types but by mistake
                return kind(text)
        except ValueError:
            pass
    raise ValueError(f"{name} = {text!r} is not allowed: need a number{with_point(text)}")


def with_point(text: str) -> str:
    """Return a hint if a number was typed with a decimal comma. The hint is the same number with a point. For
    other texts, return "".

    >>> with_point("0,5"), with_point("x")
    (', with a point: 0.5', '')
    """
    is_decimal = re.fullmatch("-?[0-9]+,[0-9]+", text)
    return f", with a point: {text.replace(',', '.')}" if is_decimal else ""


def numbers_text(numbers: Iterable[float]) -> str:
    """Return numbers as comma-separated text, as you type them on the command line.

    >>> numbers_text([1, 2.5]), parse_numbers("--queries", "1, 2.5")
    ('1,2.5', [1, 2.5])
    """
    return ",".join(map(repr, numbers))


def parse_numbers(name: str, text: str) -> list[int | float]:
    """Read comma-separated numbers from a text. `name` is the name of the option in error messages."""
    return [parse_number(name, part.strip()) for part in text.split(",")]


def bound_text(bound: Bound) -> str:
    """Return a bound as text of the form L0,LINF,L1, as you type it on the command line."""
    return numbers_text((bound.l0, bound.linf, bound.l1))


def parse_bound(name: str, text: str) -> Bound:
    """Read a `Bound` from a text of the form L0,LINF or L0,LINF,L1. `name` is the name of the option in error
    messages.
    """
    from workbench.data import Bound

    if text.count(",") not in (1, 2):
        raise ValueError(f"{name} {text!r}: need L0,LINF or L0,LINF,L1")
    numbers: list[Any] = parse_numbers(name, text)
    return Bound(*numbers)


def parse_box(text: str) -> dict[str, tuple[float, float]]:
    """Read a box, which is one interval per column, from a text of the form COLUMN=LOW..HIGH,…. Each interval
    includes both of its ends.

    >>> parse_box("x=0..10,y=-1.5..2")
    {'x': (0, 10), 'y': (-1.5, 2)}
    """
    sides: dict[str, tuple[float, float]] = {}
    for part in text.split(","):
        name, equals, ends = part.strip().partition("=")
        low, dots, high = ends.partition("..")
        if not (name and equals and dots) or name in sides:
            raise ValueError(
                f"--box {text!r}: need COLUMN=LOW..HIGH for one or more columns, separated by commas"
            )
        sides[name] = (parse_number("--box", low), parse_number("--box", high))
    return sides


# ---- choices and switches


def choice_text(choice: Any) -> str:
    """Return one of an option's choices as text, as you type it on the command line.

    >>> from workbench.queries import Dyadic
    >>> choice_text(Dyadic()), choice_text(None), choice_text("count sketch")
    ('dyadic', 'none', 'countsketch')
    """
    return str(choice).lower().removesuffix("()").replace(" ", "")


def parse_choice(choices: Iterable[Any], text: str) -> Any:
    """Return the member of `choices` whose name is `text`. Capitals and spaces do not matter. If no choice
    has this name, return the text.
    """
    typed = choice_text(text)
    return next((x for x in choices if typed in (choice_text(x), choice_text(repr(x)))), text)


def parse_switch(name: str, text: str) -> bool:
    """Read the value of an on/off option from a text, which must be `on` or `off`. Return True or False."""
    if text not in _SWITCH:
        raise ValueError(f"{name} = {text!r} is not allowed: need on or off")
    return _SWITCH[text]


# ---- fields of a mechanism, as options


def option_name(f: Field[Any]) -> str:
    """Return the command-line option that sets a field of a mechanism, for example `--popularity-share`."""
    return f"--{f.name.replace('_', '-')}"


def option_help(f: Field[Any]) -> str:
    """Return a text with the allowed values and the default of a field's command-line option."""
    need = option_need(f, LARGE_LIMIT)
    if f.default is MISSING:
        return f"{need}. Required."
    return f"{need}." if f.default is None else f"{need}. By default {choice_text(f.default)}."


def option_need(f: Field[Any], largest: float = inf) -> str:
    """Return a text with the allowed values of a field's command-line option. The text leaves out an upper
    limit that is above `largest`.
    """
    declared = f.metadata
    if declared["choices"]:
        need = " or ".join(map(choice_text, declared["choices"]))
    elif declared["check"]:
        need = re.sub("^need (an? )?", "", declared["check"]("") or "")
    else:
        need = "integer" if declared["integer"] else "number"
        if declared["low"] is not None:
            need += f" {'>' if declared['strict'] else '≥'} {declared['low']}"
        if declared["high"] is not None and declared["high"] <= largest:
            need += f"{' and' if declared['low'] is not None else ''} ≤ {declared['high']}"
    if declared["unit"]:
        need += f" {declared['unit']}"
    return need


def option_text(f: Field[Any], x: Any) -> str:
    """Return a field's option and the value `x` as text, as you type them on the command line."""
    return f"{option_name(f)} {quote(str(x).removesuffix('()'))}"


def parse_option(name: str, f: Field[Any], text: str) -> Any:
    """Read the value of a field's command-line option from a text. If only the mechanism's class can
    interpret the text, return the text unchanged.
    """
    if f.metadata["choices"]:
        return parse_choice(f.metadata["choices"], text)
    if f.metadata["check"] and "," in text:
        return tuple(parse_numbers(name, text))
    if (f.metadata["check"] or f.metadata["integer"]) and text.strip("0123456789.+-e"):
        return text
    return parse_number(name, text)


# ---- parameters of a figure


def parameter_text(x: Any, between: str = ",") -> str:
    """Return the value of a figure's parameter as text, as you type it on the command line. `between`
    separates the members of a list.

    If `between` is a comma, a member that contains a comma is quoted.

    >>> parameter_text(0.5), parameter_text((10, 20)), parameter_text("Dyadic()"), parameter_text(None)
    ('0.5', '10,20', 'Dyadic()', 'none')
    >>> parameter_text(("Adult", "Adult, training"))
    'Adult,"Adult, training"'
    """
    if isinstance(x, tuple | list):
        members: Iterable[str] = map(str, x)
        if between == ",":
            members = (
                f'"{m.replace(chr(34), 2 * chr(34))}"' if "," in m else m for m in members
            )
        return between.join(members)
    return "none" if x is None else str(x)


def parse_parameter(f: Field[Any], x: Any) -> Any:
    """Read the value of a figure's parameter from a text. If `x` already has the right type, return `x`
    unchanged.

    A list may be in brackets, and an integer may be typed as 1e5. If the default of the parameter is None,
    the text `none` means None. For parameters of the kind "effort", for example a number of seeds, the text
    `none` is also allowed. The figure's profile (quick or paper) then determines the value.
    """
    may_be_none = f.default is None or f.metadata["kind"] == "effort"
    if may_be_none and (x is None or isinstance(x, str) and x.strip().lower() == "none"):
        return None
    if f.metadata["many"]:
        if isinstance(x, str):
            bare = x.strip()
            if bare[:1] + bare[-1:] in ("[]", "()"):
                bare = bare[1:-1]
            parts = next(csv.reader([bare], skipinitialspace=True), [])
            x = [part.strip(" '") for part in parts if part.strip()]
        members = x if isinstance(x, list | tuple) else [x]
        return tuple(_parse_member(f, member) for member in members)
    return _parse_member(f, x)


def _parse_member(f: Field[Any], x: Any) -> Any:
    if isinstance(x, str) and f.metadata["choices"]:
        return parse_choice(f.metadata["choices"], x)
    if isinstance(x, str) and (f.metadata["integer"] or not f.metadata["check"]):
        x = parse_number(f.name, x)
    if f.metadata["integer"] and isinstance(x, float) and x.is_integer():
        return int(x)
    return x


def parameter_help(f: Field[Any]) -> str:
    """Return one line of text that describes a field and its allowed values."""
    choices = f.metadata["choices"]
    need = ", ".join(map(repr, choices)) if choices else option_need(f)
    article = "an" if need.startswith("integer") else "a"
    many = f"a list; each {article} " if f.metadata["many"] else ""
    if choices:
        many = "some of " if f.metadata["many"] else "one of "
    return f"{f.metadata['doc']}: {many}{need}"


def release_options(mechanism: Any) -> str:
    """Return the command-line options with which `workbench release` runs a mechanism. Return "" if the
    mechanism accepts neither a `SparseTable` nor `UnlistedValues`.
    """
    from workbench.data import SparseTable, UnlistedValues

    is_read = mechanism.takes in (SparseTable, UnlistedValues)  # from a domain file alone
    return mechanism_options(mechanism) if is_read else ""


def mechanism_options(mechanism: Any) -> str:
    """Return the command-line options that select a mechanism and its parameters. Return "" if releases of
    the mechanism cannot be saved.

    >>> from workbench import DP, Marginals
    >>> from workbench.mechanisms import LaplaceQueries
    >>> mechanism_options(LaplaceQueries(DP(0.5), Marginals(2)))
    '--epsilon 0.5 --mechanism LaplaceQueries --marginals 2'
    """
    from workbench.privacy import ZCDP
    from workbench.queries import Marginals

    cls = type(mechanism)
    if getattr(cls, "idealised", False) or cls.__module__ == "__main__":
        return ""
    budget = mechanism.budget
    is_rho = isinstance(budget, ZCDP)
    words = [f"--rho {budget.rho!r}" if is_rho else f"--epsilon {budget.epsilon!r}"]
    if budget.delta:
        words.append(f"--delta {budget.delta!r}")
    if not cls.__module__.startswith("workbench."):
        words.append(f"--with {cls.__module__}")
    words.append(f"--mechanism {cls.__name__}")
    for f in mechanism_fields(cls):
        x = getattr(mechanism, f.name)
        if x == f.default:
            continue
        if isinstance(x, Marginals):
            words.append(f"--marginals {x.k}")
        elif isinstance(x, tuple):
            words.append(f"{option_name(f)} {numbers_text(x)}")
        elif isinstance(x, str | int | float) or x in f.metadata.get("choices", ()):
            words.append(option_text(f, x))
        else:
            return ""
    return " ".join(words)


def mechanism_fields(cls: type) -> list[Field[Any]]:
    """Return the fields of a mechanism's class that have command-line options of their own. These are all
    except `budget`.
    """
    return [f for f in fields(cls) if f.name != "budget"]
