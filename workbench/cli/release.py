"""`workbench release` and `workbench synthesize`: private summaries and synthetic records.

What is asked is checked (`request`, `mechanism_options`), the data is read, the release made and saved
(`publishing`), and what it promises is said (`release_text`).
"""

from __future__ import annotations

from typing import Annotated

import typer

from workbench.cli import mechanism_options, publishing, release_text, screen
from workbench.cli.request import Request


def release(
    request: Request,
    ctx: typer.Context,
    choose: Annotated[
        str | None,
        typer.Option(
            metavar="l=N,N,…",
            help="Numbers that you state, of which the data choose one: l of SRA and HPA, bound of LPA, theta "
            "of HighPassFilter.",
        ),
    ] = None,
) -> None:
    """Release a table of counts, records or interactions under differential privacy.

    Nothing is written, and no noise is drawn, before everything that was asked for has been checked.
    """
    # they start while this process loads what it needs
    with publishing.started_workers(request) as started:
        choice = mechanism_options.stated_choice(choose, request.choose_epsilon)
        cls = mechanism_options.asked_mechanism(ctx)
        request.refuse_unfit(cls)
        mechanism = mechanism_options.stated_mechanism(ctx, request, choice)
        request.refuse_unpaid(mechanism)
        if request.is_in_parts:
            made = publishing.publish_in_parts(request, mechanism, started)
        else:
            private = publishing.read(request, cls)
            made = publishing.publish(request, mechanism, private)

    release_text.print_release(made, request.out, delta=request.reading_delta(cls))
    screen.say(release_text.again(request.account))


NOT_OF_RECORDS = (  # which options `synthesize` has not
    "rho delta item context workers scratch scheduler insecure choose_epsilon box levels strings length "
    "alphabet taxonomy code domain_from_data"
)


def synthesize(
    request: Request,
    rows: Annotated[
        str,
        typer.Option(
            metavar="N|paid",
            help="Number of records: a public number, or `paid` to buy a noisy count of the table's.",
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
) -> None:
    """Make synthetic records: buy noisy marginals, and draw records from the maximum entropy model.

    Marginals and number are stated: nothing is chosen by looking at the table.
    """
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
    release_text.print_release(made, request.out)
    screen.say(release_text.again(request.account))
