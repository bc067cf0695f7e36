"""What a caller says that a session's file belongs to, as the file holds it."""

from __future__ import annotations

from math import inf
from pathlib import Path
from typing import Any, cast

from workbench.inference import KernelPCA
from workbench.mechanism import sensitivity
from workbench.privacy import DP, RELATIONS, ZCDP
from workbench.session import file as session_file
from workbench.table import SparseTable


def checked_total(total: Any) -> float | None:
    """How many tuples there are, as a caller or a file says; its square has to be a float, too."""
    if total is None:
        return None
    number = cast(float, KernelPCA(1.0, total=total).total)
    if not 1e-100 <= number <= 1e100:
        raise ValueError(
            f"total = {total!r} is not allowed: need a number from 1e-100 to 1e100"
        )
    return number


def stated_data(table: Any, budget: Any, total: Any, dataset: Any) -> dict[str, Any]:
    """What the caller says that the session belongs to, as the file holds it."""
    stated: dict[str, Any] = {}
    if dataset is not None or table is not None:
        stated["dataset"] = dataset
    if dataset is not None and not isinstance(dataset, str):
        raise ValueError(f"dataset = {dataset!r} is not allowed: need text, name and version")
    if total is not None:
        stated["total"] = checked_total(total)
    if budget is not None:
        is_finite = isinstance(budget, DP) and 0 < budget.epsilon < inf and budget.delta < 1
        if not is_finite and not isinstance(budget, ZCDP):
            raise ValueError(
                f"budget = {budget!r} is not allowed: need DP(0 < epsilon < inf, 0 <= delta < 1), or "
                "ZCDP(rho)"
            )
        stated["budget"] = session_file.budget_record(budget)
    if table is not None:
        if not isinstance(table, SparseTable):
            raise ValueError(f"table = {type(table)} is not allowed: need a SparseTable")
        l1 = float(sensitivity(table))
        bound: Any = table.bound
        stated["bound"] = [int(bound.l0), float(bound.linf), l1]
        stated["domain"] = table.domain.to_dict()
    return stated


def stated_people(people: str | None, unit: str | None, relation: str | None) -> dict[str, Any]:
    """Whom the caller takes the file to be about, as the file holds it."""
    stated = {}
    for name, text in {"people": people, "unit": unit}.items():
        if text is not None:
            if not isinstance(text, str) or not text.strip() or not text.isprintable():
                raise ValueError(f"{name} = {text!r} is not allowed: need a name in words")
            stated[name] = " ".join(text.split())
    if relation is not None:
        if relation not in RELATIONS:
            raise ValueError(
                f"relation = {relation!r} is not allowed: need one of {', '.join(RELATIONS)}"
            )
        stated["relation"] = relation
    return stated


def of_the_bank(stated: dict[str, Any]) -> dict[str, Any]:
    """Of what was stated, what belongs to the answers and not to the budget."""
    return {name: x for name, x in stated.items() if name in session_file.OF_THE_BANK}


def resolved(path: str | Path) -> Path:
    """The file that is meant, wherever the process goes from here."""
    path = Path(path).resolve()
    if path.is_dir():
        raise ValueError(f"{path} is a folder: need the path of a file")
    return path
