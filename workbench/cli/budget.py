"""`workbench budget`: one budget of declared people, from which all releases about them are paid."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from workbench.cli import options, screen
from workbench.value import stated

if TYPE_CHECKING:
    from workbench.owner import Booking, Budget
    from workbench.privacy import DP, ZCDP


_SIGNS = {"epsilon": "ε", "rho": "ρ"}

app = typer.Typer(
    no_args_is_help=True, help="Create and show a budget that many releases share."
)
File = Annotated[Path, typer.Argument(help="Budget file.")]


@app.command()
def new(
    file: File,
    people: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="People that it covers, for example 'customers of shop X'.",
        ),
    ],
    unit: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="What is protected, for example 'a user' or 'a trip'."
        ),
    ],
    epsilon: Annotated[
        float | None, typer.Option(help="Privacy loss ε. Required unless you give --rho.")
    ] = None,
    rho: Annotated[
        float | None,
        typer.Option(
            help="Privacy loss ρ, under which many releases with Gaussian noise add up to less."
        ),
    ] = None,
    delta: Annotated[float, typer.Option(help="Failure probability δ.")] = 0.0,
    epsilon_is_meant: options.EpsilonIsMeant = False,
    relation: Annotated[
        str,
        typer.Option(
            help="Neighbouring relation: add-remove-one-unit, replace-one-unit or local."
        ),
    ] = "add-remove-one-unit",
    counter: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Counter file that detects an older copy. Keep it where no backup restores both.",
            show_default="FILE.count",
        ),
    ] = None,
) -> None:
    """Create a budget for a group of people, from which every table about them spends."""
    from workbench.owner import Budget
    from workbench.privacy import DP, ZCDP

    cost: DP | ZCDP
    if epsilon is not None and rho is None:
        cost = DP(epsilon, delta)
        asked = f"--epsilon {stated(epsilon / 4)}"
    elif rho is not None and epsilon is None:
        cost = ZCDP(rho, delta)
        asked = f"--rho {stated(rho / 4)}"
    else:
        raise ValueError("need --epsilon or --rho, what all releases may cost: one of the two")
    options.refuse_unmeant(cost, 0.0, epsilon_is_meant)
    budget = Budget.create(
        file, cost, people=people, unit=unit, relation=relation, counter=counter
    )
    screen.say(f"{file}: {budget.limit} for {budget.people}; protects {budget.unit}")
    screen.say(f"\nworkbench release … --budget {file} {asked}")


@app.command()
def show(
    file: File,
    delta: Annotated[
        float | None,
        typer.Option(help="Also show a budget of ρ as an ε at this failure probability δ."),
    ] = None,
) -> None:
    """Show what was spent, on what, and what remains."""
    budget = _opened(file)
    ledger = budget.ledger
    price = budget.price
    columns = [price, "delta"] if budget.limit.delta else [price]
    signs = {price: _SIGNS[price], "delta": "δ"}
    left = {price: budget.remaining, "delta": budget.remaining_delta}
    spent = {name: float(sum(map(Fraction, ledger[name]))) for name in columns}
    screen.say(f"People    {screen.plain(budget.people or 'not declared')}")
    screen.say(f"Unit      {screen.plain(budget.unit or 'not declared')} ({budget.relation})")
    screen.say(f"Budget    {budget.limit}{_at(budget.limit, delta)}")
    for title, amounts in {"Spent": spent, "Left": left}.items():
        text = ", ".join(f"{signs[name]} = {stated(amounts[name])}" for name in columns)
        screen.say(f"{title:10}{text}{_spent_at(budget, delta) if title == 'Spent' else ''}")
    if len(ledger):
        screen.table(
            "Ledger",
            ["", "when (UTC)", "what", *(signs[name] for name in columns), "file", "came out"],
            [_ledger_row(number, row, columns) for number, row in ledger.iterrows()],
            right=["", *signs.values()],
        )


def _at(budget: DP | ZCDP, delta: float | None) -> str:
    """What a budget of ρ is as an ε, where a δ is named."""
    if delta is None:
        return ""
    if not hasattr(budget, "at"):
        raise ValueError("--delta: this budget is one of ε, which needs no δ to be read")
    return f", at δ = {stated(delta)} {screen.rounded(budget.at(delta))}"


def _spent_at(budget: Budget, delta: float | None) -> str:
    from workbench.privacy import ZCDP
    from workbench.privacy.enclosures import round_up

    if delta is None or not len(budget.ledger):
        return ""
    spent = [
        round_up(sum(map(Fraction, budget.ledger[name]), Fraction(0)))
        for name in ("rho", "delta")
    ]
    return _at(ZCDP(*spent), delta)


def _opened(file: Path) -> Budget:
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such budget file; workbench budget new begins one")
    from workbench.owner import Budget

    return Budget(file)


def _ledger_row(number: int, row: Any, columns: list[str]) -> list[str]:
    is_release = row.queries is None or row.queries != row.queries
    came_out = "released" if is_release else "answers"
    file = Path(row.file or "")
    if Path.cwd() in file.parents:
        file = file.relative_to(Path.cwd())  # as it is typed here
    return [
        str(number),
        row.time.replace("T", " ").removesuffix("+00:00"),
        row.asked,
        *(stated(row[name]) for name in columns),
        str(file) if row.file else "",
        came_out if row.answered else "lost, or under way",
    ]


@dataclass(frozen=True)
class Account:
    """The budget file that a command spends from.

    Parameters
    ----------
    budget : what it holds.
    unit : whom the data are about, where the command says so.
    """

    budget: Budget
    unit: str | None

    @classmethod
    def of(cls, file: Path, *, unit: str | None, user: str | None) -> Account:
        """Open the file; a ValueError if it is about another unit than `--unit` or `--user` says."""
        budget = _opened(file)
        if budget.people is None or budget.unit is None:
            raise ValueError(
                f"{file} declares no people or no unit: it belongs to one table. Begin a budget with "
                "workbench budget new"
            )
        if user is not None and unit is None:
            unit = "a user"
        try:
            budget.check(unit=unit)
        except ValueError as e:
            more = (
                f"\n\n--user {user} protects a user. If the values of that column are what the budget "
                f"protects, say so: --unit {budget.unit!r}"
            )
            raise ValueError(f"{e}{more if user is not None else ''}") from None
        return cls(budget, unit)

    def book(
        self, mechanism: Any, private: Any, out: Path, also: Sequence[tuple[DP, str]] = ()
    ) -> Booking:
        """Book the release, and what else is drawn for it, before the first draw."""
        from workbench.owner.costs import description

        cost: Any = self.budget.check(mechanism, private, unit=self.unit)
        what = description(mechanism, self.budget.limit)
        return self.budget.book(cost, what, also=also, out=out)

    def remaining_in_words(self) -> str:
        """What is left, in a line."""
        budget = self.budget
        left = f"{_SIGNS[budget.price]} = {stated(budget.remaining)}"
        if budget.limit.delta:
            left += f", δ = {stated(budget.remaining_delta)}"
        return f"{left} of {budget.limit} remain for {budget.people} ({budget.path.name})"
