"""`workbench release` and `workbench synthesize`: private summaries and synthetic records.

What is asked is checked (`request`, `mechanism_options`), the data is read, the release made and saved
(`publishing`), and what it promises is said (`release_text`).
"""

from __future__ import annotations

from typing import Annotated

import typer

from workbench.cli import mechanism_options, options, publishing, release_text, screen
from workbench.cli import options as cluster
from workbench.cli.options import StatedSpace
from workbench.cli.request import Request

# Release


def release(
    ctx: typer.Context,
    table: options.Tables,
    out: options.Out,
    mechanism: Annotated[str, typer.Option(help="One of those below.")],
    epsilon: options.EpsilonOrRho = None,
    rho: options.Rho = None,
    table_name: options.TableName = None,
    count: options.Count = None,
    domain: options.DomainFile = None,
    bound: options.BoundText = None,
    delta: options.DeltaOrNone = None,
    epsilon_is_meant: options.EpsilonIsMeant = False,
    budget: options.Budget = None,
    user: options.User = None,
    user_type: options.UserType = None,
    unit: options.Unit = None,
    report_cut: options.ReportCut = None,
    item: options.Item = None,
    context: options.Context = None,
    workers: options.Workers = None,
    scratch: options.Scratch = None,
    scheduler: cluster.Scheduler = None,
    insecure: cluster.Insecure = False,
    choose: options.Choose = None,
    choose_epsilon: options.ChooseEpsilon = None,
    box: options.Box = None,
    levels: options.Levels = 20,
    strings: options.Strings = None,
    length: options.Length = 20,
    alphabet: options.Alphabet = None,
    taxonomy: options.Taxonomy = None,
    code: options.Code = "code",
    force: options.Force = False,
    seed: options.Seed = None,
    simulated: options.Simulated = False,
    domain_from_data: options.DomainFromData = False,
) -> None:
    """Release a table of counts, records or interactions under differential privacy.

    Nothing is written, and no noise is drawn, before everything that was asked for has been checked.
    """
    request = Request(
        table=table,
        table_name=table_name,
        out=out,
        epsilon=epsilon,
        rho=rho,
        delta=delta,
        epsilon_is_meant=epsilon_is_meant,
        budget_file=budget,
        count=count,
        domain_file=domain,
        bound_text=bound,
        force=force,
        seed=seed,
        simulated=simulated,
        domain_from_data=domain_from_data,
        user=user,
        user_type=user_type,
        unit=unit,
        report_cut=report_cut,
        workers=workers,
        scratch=scratch,
        scheduler=scheduler,
        insecure=insecure,
        choose_epsilon=choose_epsilon,
        item=item,
        context=context,
        space=StatedSpace(
            box=box,
            levels=levels,
            strings=strings,
            length=length,
            alphabet=alphabet,
            taxonomy=taxonomy,
            code=code,
        ),
    )
    # they start while this process loads what it needs
    with publishing.started_workers(request) as started:
        choice = mechanism_options.stated_choice(choose, choose_epsilon)
        cls = mechanism_options.mechanism_class(ctx, mechanism)
        request.refuse_unfit(cls)
        chosen = mechanism_options.stated_mechanism(ctx, cls, request, choice)
        request.refuse_unpaid(chosen)
        if request.is_in_parts:
            made = publishing.publish_in_parts(request, chosen, started)
        else:
            private = publishing.read(request, cls)
            made = publishing.publish(request, chosen, private)

    release_text.print_release(made, out, delta=request.reading_delta(cls))
    screen.say(release_text.again(request.account))


# Synthesize


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
    from workbench.mechanisms.options import parse_number

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
