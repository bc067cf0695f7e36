"""`workbench release` and `workbench synthesize`: private summaries and synthetic records.

What is asked is checked (`request`, `mechanism_options`), the data is read, the release made and saved
(`publishing`), and what it promises is said (`release_text`).
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from workbench.cli import mechanism_options, options, publishing, release_text, screen, serving
from workbench.cli.request import Request
from workbench.mechanisms.options import parse_number

ANY = "MECHANISM"  # the command that has the options of all
_HELP = {"-h", "--help"}


class Mechanisms(TyperGroup):
    """A command per mechanism, whose name is the first word, or follows `--mechanism`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Find the mechanism before anything else is asked."""
        ctx.meta[screen.GIVEN] = [ctx.info_name, *args]
        name, rest = self._named(ctx, args)
        return super().parse_args(ctx, ["--help"] if name is None else [name, *rest])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str, Any, list[str]]:
        """Return the command of the mechanism that is named first, and the other words."""
        cls: Any = mechanism_options.mechanism_class(args[0])
        own = mechanism_options.own_parameters(cls)
        run = options.command(release, mechanism_options.left_out(cls), own, cls=cls)
        about = (cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        app = typer.Typer(add_completion=False)
        app.command(cls=screen.Command, help=about)(run)
        command: Any = typer.main.get_command(app)
        known = [x for p in command.params for x in p.opts]
        mechanism_options.refuse_options_of_others(cls, args[1:], known)
        return cls.__name__, command, args[1:]

    def _named(self, ctx: Any, args: list[str]) -> tuple[str | None, list[str]]:
        """Return the mechanism that the words name, and the other words.

        None if the words ask for general help.
        """
        params: Any = self.commands[ANY].params
        flags = {x for p in params if getattr(p, "is_flag", False) for x in p.opts} | _HELP
        named: list[str] = []
        rest: list[str] = []
        places = []  # of the words that are no options, nor their values
        words = iter(args)
        for word in words:
            option, equals, text = word.partition("=")
            if option == "--mechanism":
                named.append(text if equals else next(words, ""))
                continue
            if not word.startswith("-"):
                places.append(len(rest))
            rest.append(word)
            if word.startswith("-") and not equals and word not in flags:
                rest += islice(words, 1)
        find = mechanism_options.find_mechanism
        tables = [rest[place] for place in places]
        known = [x for x in tables[:2] if not Path(x).exists() and find(x)]
        if len(named) > 1:
            raise ValueError("--mechanism is given twice: need it once")
        if len(known) + len(named) > 1:
            several = [*known, *(f"--mechanism {x}" for x in named)]
            raise ValueError(f"{' and '.join(several)}: need one mechanism")
        if not named and tables and (find(tables[0]) or not Path(tables[0]).exists()):
            named.append(rest.pop(places[0]))
        if named or _HELP & {*args}:
            return next(iter(named), None), rest
        raise ValueError(
            "which mechanism? Name it first: workbench release MECHANISM TABLE… --out FILE\n"
            f"See: {ctx.command_path} --help"
        )

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write which mechanisms there are."""
        screen.say(mechanism_options.overview(ctx.command_path))


def release(request: Request, *, cls: type, **own: str | None) -> None:
    """Release a table of counts, records or interactions under differential privacy.

    Nothing is written, and no noise is drawn, before everything that was asked for has been checked.
    """
    request.refuse_unfit(cls)
    mechanism = mechanism_options.stated_mechanism(cls, request, own)
    if request.budget is not None:  # which may refuse it before any data is read
        request.budget.check(mechanism)
    if request.is_in_parts:
        made = publishing.publish_in_parts(request, mechanism)
    else:
        private = publishing.read(request, cls)
        made = publishing.publish(request, mechanism, private)
    release_text.print_release(made, request.out, delta=request.reading_delta(cls))
    screen.say(release_text.again(request.budget))


NOT_OF_RECORDS = (  # which options `synthesize` has not
    "rho delta item context workers scratch scheduler insecure choose choose_epsilon box levels strings length "
    "alphabet taxonomy code domain_from_data"
)


def synthesize(request: Request, *, rows: str, marginals: str) -> None:
    """Make synthetic records: buy noisy marginals, and draw records from the maximum entropy model.

    Marginals and number are stated: nothing is chosen by looking at the table.

    Parameters
    ----------
    rows : N|paid
        Number of records: a public number, or `paid` to buy a noisy count of the table's.
    marginals : ORDER|FILE
        Which counts to buy: all marginals on so many attributes, or a file with one marginal a
        line, its attributes separated by commas.
    """
    from workbench.mechanisms import MaximumEntropySynthesis

    own_rows = None if rows == "paid" else str(parse_number("--rows", rows))
    own = {"own_marginals": marginals, "own_rows": own_rows}
    release(request, cls=MaximumEntropySynthesis, **own)


def publish(
    ctx: typer.Context,
    table: list[Path] | None = None,
    *,
    folder: Path | None = None,
    source: Path = Path("publication.json"),
    seed: options.Seed = None,
    browser: bool = True,
    port: options.Port = 8886,
) -> None:
    """Publish a table, on a page in the browser or at once.

    Without --publish, a page leads from the table to the publication in six steps and keeps every choice in
    publication.json. Nothing of the table leaves this machine. With --publish, the next edition is published
    as publication.json describes it: its "release" names the mechanism, the domain and the options of
    `workbench release`. After the release, the file lists this edition, so that the next data sheet names it
    and adds its ε. A release that was paid for before its folder was written is published without paying
    again.

    Parameters
    ----------
    table : [TABLE...]
        The table of this edition. The page offers a list.
    folder : --publish FOLDER
        The new folder to write, without a page.
    source : --from FILE
        What the publisher says and chose for all editions (JSON).
    seed
        Seed of a simulated edition, which is not for publication.
    browser
        Open the page in a browser.
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
