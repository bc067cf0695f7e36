"""Laws of a mechanism as a value: its text, its budget, its fields, its file."""

from __future__ import annotations

import copy
import inspect
import re
import sys
from dataclasses import FrozenInstanceError, fields
from math import inf, nan
from typing import Any

from workbench.laws.subject import Subject, demand
from workbench.privacy import DP, ZCDP


def frozen_value(subject: Subject) -> None:
    """It is a frozen value: equal to its like, hashable, and the same when copied."""
    mechanism = subject.cls.example(subject.budget())
    same = subject.cls.example(subject.budget())
    demand(mechanism == same and hash(mechanism) == hash(same), "two examples differ")
    try:
        setattr(mechanism, fields(mechanism)[0].name, None)
    except FrozenInstanceError:
        pass
    else:
        demand(False, "its fields can be changed: need a frozen dataclass")
    demand(copy.deepcopy(mechanism) == mechanism, "a copy of it is another")
    demand(mechanism.budget == subject.budget(), "its budget is not the one it was given")


def refuses_budgets(subject: Subject) -> None:
    """It refuses budgets that cannot be spent: ε of 0 or without end, a δ it has no use for."""
    delta = subject.budget().delta
    wrong: list[DP | ZCDP] = [ZCDP(1.0, 0.0 if delta else 1e-6)]
    if not subject.zcdp:
        wrong = [subject.budget(0.0), subject.budget(inf), DP(1.0, 1.0 if delta else 1e-6)]
    if not getattr(subject.cls, "accepts_zcdp", False):
        wrong.append(ZCDP(1.0))
    if not getattr(subject.cls, "accepts_dp", True):
        wrong.append(DP(1.0))
    for bad in (*wrong, 1.0, None):
        _refused(subject, "budget|epsilon|delta", budget=bad)


def refuses_numbers(subject: Subject) -> None:
    """Numbers out of the range of a field are refused by its name and range."""
    for f in fields(subject.cls):
        if "low" not in f.metadata or f.metadata["check"]:
            continue
        for bad in (nan, -1, "x", inf):
            _refused(subject, rf"{f.name} = .*need", **{f.name: bad})


def states_promises(subject: Subject) -> None:
    """Its file says Guarantee, Assumes, Source, Differs and Cost."""
    doc = inspect.getdoc(sys.modules[subject.cls.__module__]) or ""
    for word in ("Guarantee", "Assumes", "Source", "Differs", "Cost"):
        demand(re.search(rf"^{word}\s+\S", doc, re.M), f"its file states no {word}")
    demand(subject.cls.takes and subject.cls.__doc__, "it has no docstring, or takes nothing")


def _refused(subject: Subject, says: str, **changed: Any) -> None:
    try:
        subject.rebuilt(**changed)
    except ValueError as e:
        demand(re.search(says, str(e)), f"{changed} is refused without its name: {e}")
    else:
        demand(False, f"{changed} is not refused")
