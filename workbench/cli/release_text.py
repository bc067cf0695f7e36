"""`workbench show` and `workbench answer`, and the text that describes a release."""

from __future__ import annotations

import shlex
import warnings
from math import exp, inf
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from workbench.cli import screen
from workbench.value import cell, format_number, number, stated

if TYPE_CHECKING:
    from workbench.cli.budget import Account
    from workbench.estimates.release import Release
    from workbench.privacy import DP, Receipt


# Release text

_AGAIN = "every release of the same data adds its ε or ρ, also one that replaces another"


def print_release(
    release: Release, file: Path, top: int = 10, delta: float | None = None
) -> None:
    """All that a release file says of itself, in words; nothing here has seen the table.

    Where a δ is named, its price is said as an ε as well.
    """
    from workbench.estimates.answering import cautions, described, users_cut_in_words

    at_delta = "" if delta is None else guarantee_at(release, delta)
    screen.say(f"{file}\n")
    screen.say(screen.plain(guarantee(release)))
    if at_delta:
        screen.say(at_delta)
    if release.bound:
        screen.say(screen.plain(release.bound.in_words))
    users_cut = users_cut_in_words(release)
    if users_cut:
        screen.say(users_cut)
    for warning in cautions(release):
        screen.warn(warning)
    screen.table(
        "What paid for it",
        ["measurement", "ε", "ρ", "δ", "relation", "part", "noise"],
        [_ledger_row(receipt) for receipt in release.ledger],
        right=["ε", "ρ", "δ"],
    )
    lines = [
        ("Mechanism", screen.plain(release.mechanism)),
        ("Size", sizes(release, file)),
        *described(release),
        ("Versions", screen.plain(_versions(file))),
    ]
    for name, text in lines:
        if text:
            screen.say(f"{name:10} {text}")
    if top and len(release.estimate):
        print_largest(release, top)


def again(account: Account | None = None) -> str:
    """What a person has to know who releases again."""
    return _AGAIN if account is None else account.remaining_in_words()


def _ledger_row(receipt: Receipt) -> tuple[str, ...]:
    drawn = "simulated" if receipt.simulated else "system"
    epsilon = getattr(receipt.cost, "epsilon", None)
    if epsilon == inf and not receipt.simulated:
        drawn = "none"
    rho = getattr(receipt.cost, "rho", receipt.rho)
    return (
        receipt.description,
        "" if epsilon is None else number(epsilon),
        "" if rho is None else format_number(rho),
        number(receipt.cost.delta),
        receipt.relation,
        " / ".join(receipt.part or ()),
        drawn,
    )


def _versions(file: Path) -> str:
    from workbench.estimates.release_files import read_record

    versions = read_record(file)["versions"]
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def print_largest(release: Release, top: int) -> None:
    """The largest released cells, each with the standard deviation of its noise."""
    try:
        labels, counts, noise = release.largest(top)
    except ValueError:  # nothing like cells
        return
    rows = [
        (*map(cell, row), number(count), f"± {format_number(deviation)}")
        for row, count, deviation in zip(
            labels.itertuples(index=False), counts, noise, strict=True
        )
    ]
    of_all = f"The {len(rows)} largest" if len(rows) > 1 else "The largest of the"
    title = f"{of_all} {release.estimate.contents}"
    columns = [*labels.columns, "count", "noise"]
    screen.table(title, columns, rows, right=["count", "noise"])


def guarantee(release: Release) -> str:
    """What the release promises, for someone who has not read the papers."""
    from workbench import privacy
    from workbench.estimates.answering import promises_nothing

    cost = release.privacy
    if promises_nothing(release):
        return "It promises nothing: part of it was read off the data without any protection."
    unit = release.bound.unit if release.bound else ""
    whose = f"the records of {unit}" if unit else "one unit's records"
    usually = "" if unit else " (usually one person's)"
    moves = {
        privacy.ADD_REMOVE: f"{whose}{usually} are added or removed",
        privacy.REPLACE: f"{whose} are replaced by any others",
        privacy.LOCAL: "one unit's own value is any other",
    }.get(release.relation, f"the data changes in this way: {release.relation}")
    if isinstance(cost, privacy.ZCDP):
        failing = f", but for a chance of {number(cost.delta)}" if cost.delta else ""
        return (
            f"{cost}: if {moves}, outcomes differ by at most α·{stated(cost.rho)} in the Rényi divergence "
            f"of every order α > 1{failing}. It promises an ε at every δ: name one with workbench show "
            "FILE --delta D."
        )
    promise = f"{cost}: if {moves}, no outcome becomes more than {_times(cost)} as likely"
    if cost.delta:
        return f"{promise}, but for a chance of {number(cost.delta)}."
    return f"{promise}."


def _times(cost: DP) -> str:
    """By what factor a chance may grow."""
    factor = f"e^{stated(cost.epsilon)}"
    if cost.epsilon < 700:
        factor = f"{factor} = {exp(cost.epsilon):.3g}"
    return f"{factor} times"


def guarantee_at(release: Release, delta: float) -> str:
    """What the release promises at a δ, by the best proven line over all that paid for it."""
    cost = screen.rounded(release.at(delta))
    return (
        f"At δ = {stated(delta)} it is {cost}: no outcome becomes more than {_times(cost)} as likely, but "
        f"for a chance of {number(delta)}."
    )


def sizes(release: Release, file: Path) -> str:
    """Cells and bytes, against the table with every cell of the domain."""
    estimate = release.estimate
    cells = estimate.domain.size
    written = file.stat().st_size
    dense = 8 * cells
    saved = f"{dense / written:,.3g} times smaller" if written < dense else "no smaller"
    held = f"{len(estimate):,} {estimate.contents}"
    if estimate.contents == "cells":
        held = f"{len(estimate):,} of {cells:,} cells"
    dense_size = screen.size(dense)
    return f"{held} in {screen.size(written)}, {saved} than the dense table's {dense_size}"


# Show

_PICTURES = (".png", ".svg", ".pdf")


def show(
    file: Annotated[Path, typer.Argument(help="A release, as `workbench release` writes it.")],
    top: Annotated[int, typer.Option(min=0, help="How many of its largest cells.")] = 10,
    picture: Annotated[
        Path | None,
        typer.Option(help="Draw it into this file: .png, .svg or .pdf."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the picture.")] = False,
    delta: Annotated[
        float | None,
        typer.Option(help="Say what it costs as an ε at this failure probability δ."),
    ] = None,
) -> None:
    """Show a release: its guarantee in words, what paid for it, its size and its largest cells.

    All of it comes from the file alone.
    """
    if not file.is_file():
        raise FileNotFoundError(f"{file}: no such release file")
    if picture is not None:
        _refuse_picture(picture, file, force)

    from workbench.estimates.release import Release

    release = Release.load(file)
    print_release(release, file, top, delta)
    if picture is not None:
        _draw(release, file, picture)
        screen.say(f"Picture    {picture}")


def _refuse_picture(path: Path, file: Path, force: bool) -> None:
    from workbench.estimates.files import sidecar
    from workbench.estimates.release_files import refuse_existing, refuse_input

    if path.suffix not in _PICTURES:
        raise ValueError(f"--picture {path}: need a name that ends in {' or '.join(_PICTURES)}")
    refuse_input(path, [file, sidecar(file)])
    refuse_existing(path, force)


def _draw(release: Release, file: Path, path: Path) -> None:
    """The picture, whole or not at all, which says what release it shows."""
    from workbench.estimates import files
    from workbench.figures import plots, versions, write_atomically
    from workbench.figures.saved import release_record

    record = {
        "command": shlex.join(["workbench", "show", file.name, "--picture", path.name]),
        "release": release_record(file),
        "noise": "simulated" if release.simulated else "system",
        "versions": versions("numpy", "matplotlib"),
        "commit": files.commit(),
    }
    kind = path.suffix.removeprefix(".")
    metadata = files.picture_metadata(kind, record)
    fig = plots.release_picture(release)

    def fill(draft: Path) -> None:
        fig.savefig(draft, format=kind, dpi=200, metadata=metadata)
        files.seal(draft)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font does not have
        write_atomically(path, fill)
    plots.close(fig)


# Answer


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

    from workbench.estimates.release import Release

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
