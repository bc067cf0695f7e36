"""`workbench release` and `workbench synthesize`: private summaries and synthetic records.

What is asked is checked (`request`, `mechanism_options`), the data is read, the release made and saved
(`publishing`), and what it promises is said (`release_text`).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import mechanism_options, publishing, release_text, screen, serving
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


def publish(
    ctx: typer.Context,
    table: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[TABLE...]", help="The table of this edition. The page offers a list."
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--publish",
            metavar="FOLDER",
            help="The new folder to write, without a page.",
        ),
    ] = None,
    source: Annotated[
        Path,
        typer.Option(
            "--from",
            metavar="FILE",
            help="What the publisher says and chose for all editions (JSON).",
        ),
    ] = Path("publication.json"),
    seed: Annotated[
        int | None,
        typer.Option(min=0, help="Seed of a simulated edition, which is not for publication."),
    ] = None,
    browser: serving.Browser = True,
    port: Annotated[int, typer.Option(min=1, max=65535, help="First port to try.")] = 8886,
) -> None:
    """Publish a table, on a page in the browser or at once.

    Without --publish, a page leads from the table to the publication in six steps and keeps every choice in
    publication.json. Nothing of the table leaves this machine. With --publish, the next edition is published
    as publication.json describes it: its "release" names the mechanism, the domain and the options of
    `workbench release`. After the release, the file lists this edition, so that the next data sheet names it
    and adds its ε. A release that was paid for before its folder was written is published without paying
    again.
    """
    from workbench.owner.publication import alone_in

    if folder is None:
        serving.publishing_page(table or [], source, port, browser)
        return
    if not table:
        raise ValueError("TABLE is missing. Name the table of this edition")
    with alone_in(source.resolve().parent):
        _publish_edition(ctx, table, folder, source, seed)


def _publish_edition(
    ctx: typer.Context, table: list[Path], folder: Path, source: Path, seed: int | None
) -> None:
    """Release as the recipe says, or publish what was paid for before."""
    from workbench.estimates.release import Release
    from workbench.owner import publication

    about = publication.read_about(source)
    if about.release is None:
        raise ValueError(
            f'{source} has no "release". Add, for example, "release": {{"mechanism": "GeometricHistogram", '
            '"domain": "domain.json", "options": {"user": "rider", "bound": "10,1", "epsilon": 1}}'
        )
    publication.refuse_folder(folder)
    words = about.release.words(source.parent)
    paid = Path(f"{folder}.parquet")
    if paid.exists():
        found = Release.load(paid)
        name = str(found.mechanism).partition("(")[0]
        if name != about.release.mechanism:
            raise ValueError(f"{paid} is a release by {name}: choose another folder")
        publication.publish(found, folder, about, simulated=found.simulated)
        screen.say(f"{paid} was released before and is published now. Nothing was spent.")
    else:
        words += [str(path) for path in table]
        words += ["--publish", str(folder), "--about", str(source)]
        if seed is not None:
            words += ["--seed", str(seed), "--simulated"]
        command = ctx.parent.command.get_command(ctx.parent, "release")  # type: ignore[union-attr]
        with command.make_context("release", words, parent=ctx.parent) as asked:
            command.invoke(asked)
    publication.record_edition(source, folder)
