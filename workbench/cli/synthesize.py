"""`workbench synthesize`: microdata, records that nobody has, with about the table's noisy marginals."""

from __future__ import annotations

from typing import Annotated

import typer

from workbench.cli import options, publishing, release_text, screen
from workbench.cli.request import Request


def synthesize(
    table: options.Tables,
    out: options.Out,
    epsilon: options.Epsilon,
    rows: Annotated[
        str,
        typer.Option(
            metavar="N|paid",
            help="How many records: a public number, or `paid`, which buys a noisy count of the table's.",
        ),
    ],
    marginals: Annotated[
        str,
        typer.Option(
            metavar="ORDER|FILE",
            help="Which counts to buy: all marginals on so many attributes, or a file with one marginal a "
            "line, its attributes parted by commas.",
        ),
    ],
    epsilon_is_meant: options.EpsilonIsMeant = False,
    budget: options.Budget = None,
    table_name: options.TableName = None,
    count: options.Count = None,
    domain: options.DomainFile = None,
    bound: options.BoundText = None,
    user: options.User = None,
    user_type: options.UserType = None,
    unit: options.Unit = None,
    report_cut: options.ReportCut = None,
    force: options.Force = False,
    seed: options.Seed = None,
    simulated: options.Simulated = False,
) -> None:
    """Make synthetic records under differential privacy: noisy counts of marginals are bought, and records
    are drawn from the model of maximum entropy that has about these.

    Marginals and number are stated: nothing is chosen by looking at the table.
    """
    if out.suffix not in (".csv", ".parquet"):
        raise ValueError(f"--out {out}: need a name that ends in .csv or .parquet")
    request = Request(
        table=table,
        table_name=table_name,
        out=out,
        epsilon=epsilon,
        epsilon_is_meant=epsilon_is_meant,
        budget_file=budget,
        count=count,
        domain_file=domain,
        bound_text=bound,
        user=user,
        user_type=user_type,
        unit=unit,
        report_cut=report_cut,
        force=force,
        seed=seed,
        simulated=simulated,
    )

    from workbench.mechanisms import MaximumEntropySynthesis
    from workbench.option_grammar import parse_number

    request.refuse_unfit(MaximumEntropySynthesis)
    mechanism = MaximumEntropySynthesis(
        request.budget_for(MaximumEntropySynthesis),
        request.workload("--marginals", marginals),
        rows=None if rows == "paid" else parse_number("--rows", rows),
    )
    request.refuse_unpaid(mechanism)
    private = publishing.read(request, MaximumEntropySynthesis)
    made = publishing.publish(request, mechanism, private)
    release_text.print_release(made, out)
    screen.say(release_text.again(request.account))
