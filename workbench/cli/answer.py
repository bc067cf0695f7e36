"""`workbench answer`: what a release file says of some labels, and how far that may be off."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from workbench.cli import screen


def answer(
    file: Annotated[Path, typer.Argument(help="A release, as `workbench release` writes it.")],
    queries: Annotated[
        list[str],
        typer.Argument(
            metavar="QUERY...",
            help="'origin=Bern hour=7..9': labels, ranges of which both ends belong to it, sets as "
            "Bern|Genf; '*' is everything. Quotes around labels with spaces or any of = .. | ,",
        ),
    ],
    error: Annotated[
        bool, typer.Option("--error", help="Say how far each answer may be off.")
    ] = False,
    belief: Annotated[
        str | None,
        typer.Option(
            help="`empty`: what was not released is taken to be empty; needs --error."
        ),
    ] = None,
) -> None:
    """Answer queries by label from a release file. It costs nothing, however often: what spends is `ask`
    of a session, which looks at the data.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such release file")
    if belief is not None and not error:
        raise ValueError("--belief narrows error bars: add --error")

    from workbench.mechanism import Release
    from workbench.wording import number

    release = Release.load(file)
    answers = release.answer(queries, error=error, belief=belief)
    if not error:
        counts = [(query, number(x)) for query, x in zip(queries, answers, strict=True)]
        screen.table("Answers, in counts", ["query", "count"], counts, right=["count"])
        if release.counts_what:
            screen.paragraph(release.counts_what)
        return
    rows = [(query, *row) for query, row in zip(queries, answers.in_words(), strict=True)]
    columns = ["query", "count", "noise", "absent", "which hold"]
    screen.table("Answers, in counts", columns, rows, right=columns[1:])
    screen.paragraph(
        "noise: one standard deviation; two of them cover it some 19 times in 20. absent: "
        f"{release.estimate.contents if release.absent_at_most >= 0 else 'cells'} of the query that were "
        "not released, which hold no more than is said, together: the true count may be higher by it."
    )
    if release.counts_what:
        screen.paragraph(release.counts_what)
    if release.estimate.why_unknown:
        screen.paragraph(f"unknown: {release.estimate.why_unknown}")
    if answers.belief:
        screen.warn(f"absent: 0 {answers.belief}")
