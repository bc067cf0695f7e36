"""The commands `workbench budget`, which create a budget for all releases about the same people, and show
what was spent.
"""

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


app = typer.Typer(no_args_is_help=True, help="Create or show a budget that pays for releases.")


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
    """Create a budget for all releases about the same people.

    Parameters
    ----------
    file
        Budget file to create.
    people : NAME
        Description of the people, for example 'customers of shop X'.
    unit : TEXT
        Person, household or event that is protected, for example 'a user' or 'a trip'.
    epsilon
        Largest total privacy loss ε of all releases. Required if you do not give --rho.
    rho
        Largest total privacy loss ρ, in place of --epsilon. With a ρ, many releases with Gaussian noise cost
        less in total.
    delta
        Largest total δ of all releases.
    epsilon_is_meant
        Confirm an ε above 10, which protects little.
    relation
        Relation between neighbouring tables, which differ in one unit: add-remove-one-unit, replace-one-unit
        or local.
    counter : FILE
        File with the number of spends so far. With this number, the workbench detects an older copy of the
        budget file. So keep this file out of backups of the budget file. By default FILE.count.
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
    """Show what was spent from a budget, and what remains.

    Parameters
    ----------
    file
        Budget file to show.
    delta
        If the budget is in ρ, also show the ε that it implies at this δ.
    lost
        Create a new counter file. Use this option only if the old counter file is lost, and if you are
        certain that FILE is the latest copy.
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
    """Return a price (ε or ρ) and a δ as text, for example those that were spent from a budget."""
    text = f"{_sign(budget)} = {stated(price)}"
    return f"{text}, δ = {stated(delta)}" if budget.delta else text


def _at(budget: DP | ZCDP, delta: float | None) -> str:
    """Return a text that states a budget in ρ as an ε at the given δ. The text is empty if the user gave no
    δ.
    """
    if delta is None:
        return ""
    if not hasattr(budget, "at"):
        raise ValueError("--delta: this budget is one of ε, which needs no δ to be read")
    cost = budget.at(delta)  # with an ε that a person can read: rounded up, it is promised too
    return f", at δ = {stated(delta)} {DP(float(stated_at_most(cost.epsilon)), cost.delta)}"


def opened(file: Path, lost: bool = False) -> Budget:
    """Open a budget file, and return its budget."""
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such budget file. Create it: workbench budget new")
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
    """Open a budget file for a release. Raise a ValueError if the protected unit of the budget differs from
    what `--unit` or `--user` says.
    """
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
