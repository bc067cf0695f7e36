"""What a file keeps of receipts and of the bound, and how it is read again."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from workbench.privacy import DP, WITHDRAWN, ZCDP, Receipt
from workbench.table import STATED, Bound
from workbench.value import shown


def users_cut_of_file(path: Any, record: dict[str, Any]) -> int | None:
    """How many users were cut, as a file says it."""
    number = record.get("users_cut")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise ValueError(f"{path}: users_cut = {str(number)[:40]!r} is no whole number")
    return number


def bound_record(bound: Bound) -> dict[str, Any]:
    """What a file keeps of a bound: nothing of whom it is about, where nothing was said."""
    return {name: x for name, x in asdict(bound).items() if x not in ("", STATED)}


def bound_of_file(path: Any, stated: dict[str, Any] | None) -> Bound | None:
    """The bound of a file's record, if it has one; what moves is stated whole."""
    if stated is None:
        return None
    if not {"l0", "linf", "l1"} <= set(stated):
        raise ValueError(f"{path}: bound = {shown(stated)} is not allowed: need l0, linf, l1")
    return Bound(**stated)


def receipt_record(receipt: Receipt) -> dict[str, Any]:
    """What a file keeps of a receipt: its description is all that is said of its price."""
    return {
        "name": receipt.description,
        "cost": _cost_record(receipt.cost),
        "relation": receipt.relation,
        "simulated": receipt.simulated,
        "idealised": receipt.idealised,
        "part": receipt.part,
        **({} if receipt.rho is None else {"rho": receipt.rho}),
    }


def _cost_record(cost: DP | ZCDP) -> dict[str, Any]:
    if isinstance(cost, ZCDP):
        return {"rho": cost.rho, "delta": cost.delta}
    return {"epsilon": str(cost.epsilon), "delta": cost.delta}  # may be ∞


def receipt_of_file(
    path: Any, name: str, cost: dict[str, Any], part: Any = None, **rest: Any
) -> Receipt:
    """The receipt of a file's record; a name holds what `Receipt.description` adds to it."""
    own, by_theorem, theorem = name.partition(" (by theorem: ")
    if by_theorem and theorem.endswith(")"):
        rest |= dict(name=own, theorem=theorem[:-1])
    elif name.endswith(f" {WITHDRAWN}"):
        rest |= dict(name=name.removesuffix(f" {WITHDRAWN}"), withdrawn=True)
    else:
        rest |= dict(name=name)
    if part is not None and [type(x) for x in part] != [str, str]:
        raise ValueError(f"{path}: not a part of a partition: {part!r}; need two texts")
    if bools := [field for field, number in cost.items() if isinstance(number, bool)]:
        raise ValueError(f"{path}: {bools[0]} = {cost[bools[0]]} is not allowed: need a number")
    try:
        paid: DP | ZCDP
        if "rho" in cost:
            paid = ZCDP(cost["rho"], cost["delta"])
        else:
            paid = DP(float(cost["epsilon"]), cost["delta"])
        return Receipt(cost=paid, part=part and tuple(part), **rest)
    except ValueError as e:
        raise ValueError(f"{path}: not a receipt that this workbench writes ({e})") from None
