"""`workbench budget`: one budget of declared people, from which all releases about them are paid."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from workbench.cli import options, screen
from workbench.privacy import DP, ZCDP
from workbench.value import stated, stated_at_most

if TYPE_CHECKING:
    from workbench.owner import Budget


app = typer.Typer(
    no_args_is_help=True, help="Create and show a budget that many releases share."
)


@app.command()
def new(
    file: Path,
    *,
    people: str,
    unit: str,
    epsilon: float | None = None,
    rho: float | None = None,
    delta: float = 0.0,
    epsilon_is_meant: bool = False,
    relation: str = "add-remove-one-unit",
    counter: Path | None = None,
) -> None:
    """Create a budget for a group of people. Every release about them spends from it.

    Parameters
    ----------
    file
        Budget file.
    people : NAME
        People that it covers, for example 'customers of shop X'.
    unit : TEXT
        Unit of protection, for example 'a user' or 'a trip'.
    epsilon
        Privacy loss ε. Required unless you give --rho.
    rho
        Privacy loss ρ in place of ε. Many releases with Gaussian noise then cost less together.
    delta
        Failure probability δ.
    epsilon_is_meant
        Allow ε above 10, although it protects little.
    relation
        Neighbouring relation: add-remove-one-unit, replace-one-unit or local.
    counter : FILE
        Counter file that detects an older copy. Keep it where no backup restores both. By default
        FILE.count.
    """
    from workbench.owner import Budget

    options.need_one({"--epsilon": epsilon, "--rho": rho}, options.PRICE)
    cost: DP | ZCDP = ZCDP(rho or 0.0, delta) if epsilon is None else DP(epsilon, delta)
    options.refuse_unmeant(cost, 0.0, epsilon_is_meant)
    budget = Budget.create(
        file, cost, people=people, unit=unit, relation=relation, counter=counter
    )
    screen.say(f"{file}: {budget.limit} for {budget.people}; protects {budget.unit}")
    asked = f"--epsilon {stated(epsilon / 4)}" if epsilon else f"--rho {stated((rho or 0) / 4)}"
    screen.say(f"\nworkbench release … --budget {file} {asked}")


@app.command()
def show(file: Path, *, delta: float | None = None, lost: bool = False) -> None:
    """Show what was spent, for which releases, and what remains.

    Parameters
    ----------
    file
        Budget file.
    delta
        Also show a budget of ρ as an ε at this failure probability δ.
    lost
        Begin a new counter file. Use this only if the old one is lost, and if FILE is certainly the latest
        copy.
    """
    from workbench.privacy.enclosures import round_up

    budget = opened(file, lost)
    limit, ledger = budget.limit, budget.ledger
    columns = {budget.price: _sign(limit)} | ({"delta": "δ"} if limit.delta else {})
    spent = [sum(map(Fraction, ledger[name]), Fraction(0)) for name in (budget.price, "delta")]
    as_budget = _at(limit, delta)
    is_read = delta is not None and len(ledger)
    as_spent = _at(ZCDP(*map(round_up, spent)), delta) if is_read else ""
    screen.rows(
        [
            ("People", budget.people or "not declared"),
            ("Unit", f"{budget.unit or 'not declared'} ({budget.relation})"),
            ("Budget", f"{limit}{as_budget}"),
            ("Spent", f"{amount(limit, *map(float, spent))}{as_spent}"),
            ("Left", amount(limit, budget.remaining, budget.remaining_delta)),
        ]
    )
    if len(ledger):
        screen.table(
            "Ledger",
            ["", "when (UTC)", "what", *columns.values(), "file", "came out"],
            [_ledger_row(number, row, columns) for number, row in ledger.iterrows()],
            right=["", *columns.values()],
        )


def _sign(budget: DP | ZCDP) -> str:
    return "ε" if hasattr(budget, "epsilon") else "ρ"


def amount(budget: DP | ZCDP, price: float, delta: float) -> str:
    """Return an amount of a budget, in words."""
    text = f"{_sign(budget)} = {stated(price)}"
    return f"{text}, δ = {stated(delta)}" if budget.delta else text


def _at(budget: DP | ZCDP, delta: float | None) -> str:
    """Return what a budget of ρ is as an ε, where a δ is named."""
    if delta is None:
        return ""
    if not hasattr(budget, "at"):
        raise ValueError("--delta: this budget is one of ε, which needs no δ to be read")
    cost = budget.at(delta)  # with an ε that a person can read: rounded up, it is promised too
    return f", at δ = {stated(delta)} {DP(float(stated_at_most(cost.epsilon)), cost.delta)}"


def opened(file: Path, lost: bool = False) -> Budget:
    """Return the budget in a file."""
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such budget file; workbench budget new begins one")
    from workbench.owner import Budget

    return Budget(file, lost=lost)


def _ledger_row(number: int, row: Any, columns: Iterable[str]) -> list[str]:
    is_release = row.queries is None or row.queries != row.queries
    came_out = "released" if is_release else "answers"
    named = isinstance(row.file, str) and bool(row.file)
    file = Path(row.file if named else "")
    if Path.cwd() in file.parents:
        file = file.relative_to(Path.cwd())  # as it is typed here
    return [
        str(number),
        row.time.replace("T", " ").removesuffix("+00:00"),
        row.asked,
        *(stated(row[name]) for name in columns),
        str(file) if named else "",
        came_out if row.answered else "lost, or under way",
    ]


def opened_for(file: Path, unit: str | None, user: str | None) -> Budget:
    """Open a budget file. Raise a ValueError if its unit differs from `--unit` or `--user`."""
    budget = opened(file)
    if budget.people is None or budget.unit is None:
        raise ValueError(
            f"{file} declares no people or no unit: it belongs to one table. Begin a budget with "
            "workbench budget new"
        )
    try:
        budget.check(unit=unit)
    except ValueError as e:
        more = (
            f"\n\n--user {user} protects a user. If the values of that column are what the budget "
            f"protects, say so: --unit {budget.unit!r}"
        )
        raise ValueError(f"{e}{more if user is not None else ''}") from None
    return budget
