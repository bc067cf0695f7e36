"""Commands that make releases (`workbench release`, `synthesize` and `publish`) and commands that read them
(`show` and `answer`).

The module `request` checks the options of a command, and this module checks the options of a mechanism. The
module `publishing` reads the data, and makes and saves the release. Afterwards, the command prints the
privacy guarantee.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import Parameter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from workbench import mechanisms
from workbench.cli import options, screen, serving
from workbench.cli.budget import amount
from workbench.cli.options import need_one, option_of
from workbench.cli.request import Request
from workbench.compiled import stated_modules
from workbench.mechanisms import options as texts
from workbench.privacy import LOCAL
from workbench.value import did_you_mean, number

if TYPE_CHECKING:
    from workbench.estimates.release import Release
    from workbench.owner import Budget

# Options of a mechanism

_QUERIES = {
    "workload": "File with one query per line, for example origin=Bern",
    "marginals": "Number of attributes of each marginal, or a file with one marginal per line",
}  # that are stated in one of two ways
_FILES = _QUERIES | {"initial": _QUERIES["marginals"]}
_ONLY = {
    "bound": "SparseTable Records UnlistedValues",
    "count domain_from_data": "SparseTable Records",
    "item context": "Interactions",
    "box levels strings length alphabet taxonomy code": "Records",
    "workers scratch scheduler insecure": "SparseTable Interactions",
}  # options of a request that only mechanisms of some data have
_CHOSEN = {"SRA": "l", "HPA": "l", "LPA": "bound", "HighPassFilter": "theta"}  # by the data


def left_out(cls: Any) -> str:
    """Return the names of the options that a class of mechanisms does not have, separated by spaces."""
    names = [names for names, kinds in _ONLY.items() if cls.takes.__name__ not in kinds.split()]
    if cls.__name__ not in _CHOSEN:
        names.append("choose choose_epsilon")
    if getattr(cls, "relation", None) == LOCAL:
        names.append("report_cut")
    return " ".join(names)


def list_mechanisms(formatter: Any) -> None:
    """Write a line for every mechanism whose releases can be saved, below a heading for each family."""
    left = {x.__name__: x for x in each_mechanism()}
    listed = {
        heading: [name for file in files.split() for name in mechanisms.FAMILIES[file]]
        for heading, files in mechanisms.HEADINGS.items()
    }
    for heading, names in (listed | {"Of other modules": [*left]}).items():
        found = [(name, left.pop(name)) for name in names if name in left]
        if found:
            formatter.write_heading(heading)
            formatter.indent()
            rows = [(f"{name:25}", (cls.__doc__ or "").splitlines()[0]) for name, cls in found]
            formatter.write_dl(rows, col_spacing=1)
            formatter.dedent()


def own_parameters(cls: type) -> list[Parameter]:
    """Return the options that only this mechanism has, which come from its fields."""
    parameters = []
    for name, f in declared_options(cls).items():
        doc = f.metadata["doc"]
        parse: Any = options.parser(texts.parse_option, option_of(name), f)
        note = typer.Option(
            option_of(name),
            metavar="VALUE",
            parser=str if name in _FILES else parse,
            help=_FILES.get(name) or f"{doc[:1].upper()}{doc[1:]}: {texts.option_help(f)}",
            rich_help_panel=f"Options of {cls.__name__}",
        )
        kind = Annotated[Any, note]
        parameters.append(
            Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=kind)
        )
    return parameters


def refuse_options_of_others(cls: type, words: list[str], known: list[str]) -> None:
    """Raise a ValueError for the first option in a command line that this mechanism does not have."""
    for word in words:
        option = word.partition("=")[0]
        if option.startswith("--") and option not in {*known, "--", "--help"}:
            others = [c.__name__ for c in each_mechanism() if option in _all_options(c)]
            if not others:
                raise ValueError(f"No such option: {option}{did_you_mean(option, known)}")
            own = ", ".join(map(option_of, declared_options(cls))) or "none of its own"
            some = ", ".join(others[:8]) + (" and others" if others[8:] else "")
            raise ValueError(
                f"{cls.__name__} has no option {option}; it has {own}; {option} is for {some}"
            )


def _all_options(cls: Any) -> list[str]:
    """Return the options of a mechanism that some other mechanisms do not have."""
    names = " ".join([*_ONLY, "choose choose_epsilon report_cut"]).split()
    own = [name for name in names if name not in left_out(cls).split()]
    return [option_of(name) for name in (*declared_options(cls), *own)]


def mechanism_class(name: str) -> type:
    """Find the class of a mechanism by its name, in upper or lower case. Raise a ValueError if there is none
    that the command can run.
    """
    cls = mechanisms.find(name)
    if cls is None:
        known = [c.__name__ for c in each_mechanism()]
        raise ValueError(f"no mechanism {name!r}{did_you_mean(name, known)}")
    if not _can_be_asked_for(cls):
        raise ValueError(
            f"{name} cannot be asked for here: need a mechanism that takes a table of counts, records or "
            "interactions, whose fields are each a parameter(…), and whose noise is exact (releases with "
            "noise drawn in floating point cannot be saved)"
        )
    return cls


def stated_mechanism(cls: Any, request: Request, own: Mapping[str, Any]) -> Any:
    """Make the mechanism with the parameters and the budget that the command line gives."""
    name = cls.__name__
    declared = declared_options(cls)
    if "workload" in declared:
        need_one({option_of(x): own.get(x) for x in _QUERIES}, f" for {name}")
    candidates = _stated_candidates(name, request, own)
    values: dict[str, Any] = {_CHOSEN[name]: candidates[0]} if candidates else {}
    for option, f in declared.items():
        x = own.get(option)
        if x is not None:
            values[f.name] = request.workload(option, x) if option in _FILES else x
    for option, f in declared.items():
        if f.default is MISSING and f.name not in values:
            about = f"{f.metadata['doc']} ({texts.option_need(f)})"
            raise ValueError(f"{name} needs {option_of(option)}: {about}")
    mechanism = cls(request.budget_for(cls), **values)
    if not candidates:
        return mechanism
    from workbench.mechanisms import ChosenContributions, ChosenThreshold

    chosen: Any = ChosenThreshold if name == "HighPassFilter" else ChosenContributions
    return chosen(mechanism, tuple(candidates), request.choose_epsilon)


def _stated_candidates(name: str, request: Request, own: Mapping[str, Any]) -> list[Any]:
    """Return the values of a parameter among which the mechanism chooses with noise. Return an empty list if
    the command line does not ask for such a choice.
    """
    if request.choose is None and request.choose_epsilon is None:
        return []
    field = _CHOSEN[name]
    if request.choose is None or request.choose_epsilon is None:
        raise ValueError(
            "--choose and --choose-epsilon need each other: candidates that you state, and what it may "
            "cost to choose one by the data"
        )
    stated, _, numbers = request.choose.partition("=")
    if stated.strip() != field or not numbers:
        raise ValueError(
            f"--choose {request.choose!r}: need {field} of {name} and candidates, as {field}=1,3,10,30"
        )
    if own.get(field) is not None:
        raise ValueError(f"--{field} is stated and to be chosen: need one of the two")
    return texts.parse_numbers("--choose", numbers)


def each_mechanism() -> Iterator[type]:
    """Yield the classes of mechanisms that a user can name."""
    for name in mechanisms.__all__:
        if _can_be_asked_for(cls := getattr(mechanisms, name)):
            yield cls
    for module in stated_modules():
        for x in vars(module).values():
            if _can_be_asked_for(x) and not x.__module__.startswith("workbench.mechanisms."):
                yield x


def _can_be_asked_for(x: Any) -> bool:
    """Return whether x is a class of mechanisms that a command can run. Its parameters must be numbers or
    words, a command must be able to read its kind of data, and its releases can be saved.
    """
    from workbench.data import Interactions, Records, SparseTable, UnlistedValues

    takes = getattr(x, "takes", None)
    kinds = (SparseTable, Records, Interactions, UnlistedValues)
    if not isinstance(x, type) or takes not in kinds or getattr(x, "idealised", False):
        return False
    return is_dataclass(x) and all(
        "doc" in f.metadata and f.name != "mechanism" for f in fields(x)
    )


def declared_options(cls: type) -> dict[str, Field[Any]]:
    """Return the fields of a mechanism by the names of their options. The field for a workload (list of
    queries) has two options.
    """
    declared = {f.name: f for f in texts.mechanism_fields(cls)}
    if "workload" in declared:
        declared["marginals"] = declared["workload"]
    return declared


# Commands

ANY = "MECHANISM"  # the command that has the options of all
_HELP = {"-h", "--help"}
_OVERVIEW = "Make a release of a private table. Name the mechanism first, or after --mechanism."


class Mechanisms(TyperGroup):
    """Group with one command per mechanism. The user gives the name of the mechanism as the first word, or
    after `--mechanism`.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Find the mechanism before other options are read, because the options depend on the mechanism."""
        ctx.meta[screen.GIVEN] = [ctx.info_name, *args]
        name, rest = self._named(ctx, args)
        return super().parse_args(ctx, ["--help"] if name is None else [name, *rest])

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str, Any, list[str]]:
        """Return the command of the mechanism that the first word names. Also return the other words."""
        cls: Any = mechanism_class(args[0])
        own = own_parameters(cls)
        run = options.command(release, left_out(cls), own, cls=cls)
        about = (cls.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        app = typer.Typer(add_completion=False, rich_markup_mode=None)
        app.command(cls=screen.Command, help=about, epilog=screen.WITH_MODULE)(run)
        command: Any = typer.main.get_command(app)
        known = [x for p in command.params for x in p.opts]
        refuse_options_of_others(cls, args[1:], known)
        return cls.__name__, command, args[1:]

    def _named(self, ctx: Any, args: list[str]) -> tuple[str | None, list[str]]:
        """Return the name of the mechanism in a command line, and the other words.

        The name is None if the user asks for general help.
        """
        named, rest = options.take("--mechanism", args)
        if len(named) > 1:
            raise ValueError(f"--mechanism {' and '.join(named)}: need one mechanism")
        first = next(iter(rest), "-")
        is_name = mechanisms.find(first) or not Path(first).exists()
        if not named and not first.startswith("-") and is_name:
            named.append(rest.pop(0))
        if named or _HELP & {*args}:
            return next(iter(named), None), rest
        raise ValueError(
            "which mechanism? Name it first: workbench release MECHANISM TABLE… --out FILE\n"
            f"See: {ctx.command_path} --help"
        )

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help with the list of all mechanisms."""
        formatter.write_usage(ctx.command_path, "MECHANISM TABLE... --out FILE [OPTIONS]")
        formatter.write_text(_OVERVIEW)
        formatter.write_text(f"For its options: {ctx.command_path} MECHANISM --help")
        formatter.write("\n")
        list_mechanisms(formatter)
        formatter.write("\n")
        formatter.write_text(screen.WITH_MODULE)


def release(request: Request, *, cls: type, **own: Any) -> None:
    """Make a release of a private table under differential privacy.

    The command checks all options before it draws noise or writes a file.
    """
    from workbench.cli import publishing
    from workbench.estimates.release_files import tables_folder

    request.refuse_unfit(cls)
    mechanism = stated_mechanism(cls, request, own)
    if request.budget is not None:  # which may refuse it before any data is read
        request.budget.check(mechanism)
    with publishing.spending_said(request):
        made = publishing.publish(request, mechanism)
    print_release(made, request.out, delta=request.reading_delta(cls))
    if (tables := tables_folder(request.out)).exists():
        screen.say(f"{tables} has one table per marginal")
    screen.say(again(request.budget))


NOT_OF_RECORDS = (  # which options `synthesize` has not
    "rho delta item context workers scratch scheduler insecure choose choose_epsilon box levels strings length "
    "alphabet taxonomy code domain_from_data"
)


def synthesize(request: Request, *, rows: str, marginals: str) -> None:
    """Make synthetic records from a private table.

    The command measures noisy marginals (counts by some attributes) of the table, and fits a distribution of
    maximum entropy to them. Then it draws records from this distribution. You choose the marginals and the
    number of records, so these choices do not depend on the table.

    Parameters
    ----------
    rows : N|paid
        Number of records of the table, if it is public. Otherwise give `paid`, to spend budget on a noisy
        number.
    marginals : ORDER|FILE
        Marginals to measure. The number 2, for example, means all marginals with two attributes. You can also
        give a file with one marginal per line, for example `canton,hour`.
    """
    from workbench.mechanisms import MaximumEntropySynthesis

    own_rows = None if rows == "paid" else texts.parse_number("--rows", rows)
    release(request, cls=MaximumEntropySynthesis, marginals=marginals, rows=own_rows)


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
    """Publish a private table, in the browser or directly.

    Without --publish, a page opens in the browser. The page leads you from the table to the publication in
    six steps, and stores every choice in publication.json. The table does not leave your computer. With
    --publish, no page opens, and the command publishes the next edition (a new release of the table). The
    command uses the mechanism, the domain and the options under "release" in publication.json. Afterwards,
    the command adds the edition to this file. So the next data sheet can include the edition's ε in the total
    ε. If an earlier command paid for a release and then stopped, the command publishes that release, and you
    do not pay again.

    Parameters
    ----------
    table : TABLE
        Private table of this edition. If you give no table, the page lists the tables in the current folder.
    folder : --publish FOLDER
        New folder for the publication. No page opens.
    source : --from FILE
        JSON file with the facts about the publisher, and with the choices for all editions.
    seed
        Seed of the noise. The edition is then simulated, so do not publish it as real data.
    browser
        Open the page in the browser.
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
    """Make and publish the release of an edition. If an earlier command paid for the release and then
    stopped, publish this earlier release.
    """
    from workbench.estimates.release import Release
    from workbench.owner import publication

    about = publication.read_about(source)
    paid = Path(f"{folder}.parquet")
    if publication.is_unrecorded(about, folder):
        publication.record_edition(source, folder)
        screen.say(f"{folder} was published before and is recorded now. Nothing was spent.")
        return
    if paid.exists():
        found = Release.load(paid)
        name = str(found.mechanism).partition("(")[0]
        if about.release and name != about.release.mechanism:
            raise ValueError(f"{paid} is a release by {name}: choose another folder")
        publication.publish(found, folder, about, simulated=found.simulated)
        screen.say(f"{paid} was released before and is published now. Nothing was spent.")
    elif about.release is None:
        raise ValueError(
            f'{source} has no "release". Add, for example, "release": {{"mechanism": "GeometricHistogram", '
            '"domain": "domain.json", "options": {"user": "rider", "bound": "10,1", "epsilon": 1}}'
        )
    else:
        words = [*about.release.words(source.parent), *map(str, table)]
        words += ["--publish", str(folder), "--about", str(source)]
        if seed is not None:
            words += ["--seed", str(seed), "--simulated"]
        command = ctx.parent.command.get_command(ctx.parent, "release")  # type: ignore[union-attr]
        with command.make_context("release", words, parent=ctx.parent) as asked:
            command.invoke(asked)
    publication.record_edition(source, folder)


# Text of a release

_AGAIN = "every release of the same data adds its ε or ρ, also one that replaces another"


def print_release(
    release: Release, file: Path, top: int = 10, delta: float | None = None
) -> None:
    """Print a description of a release, with the cells that have the largest counts.

    If the cost is a ρ and a δ is given, the cost is also printed as an ε.
    """
    from workbench.estimates.describing import noise_in_words

    screen.say(f"{file}\n")
    screen.rows(release.describe(delta))
    columns, largest = release.largest_in_words(top)
    if largest:
        of_all = f"The {len(largest)} largest" if len(largest) > 1 else "The largest of the"
        screen.table(f"{of_all} {release.estimate.contents}", columns, largest, columns[-2:])
        chosen = release.chosen_by_counts(len(largest))
        if chosen and noise_in_words(release):
            screen.say(
                f"The table shows the {chosen}. Positive noise makes it more likely that a count is chosen, so "
                "the noise on these counts may exceed two standard deviations more often than 1 time in 20."
            )


def again(budget: Budget | None = None) -> str:
    """Return a sentence about further releases. The sentence says how much of the budget remains or, without
    a budget, that costs add up.
    """
    if budget is None:
        return _AGAIN
    left = amount(budget.limit, budget.remaining, budget.remaining_delta)
    return f"{left} of {budget.limit} remain for {budget.people} ({budget.path.name})"


# Show

_PICTURES = (".png", ".svg", ".pdf")


def show(
    file: options.File,
    *,
    top: Annotated[int, typer.Option(min=0)] = 10,
    picture: Path | None = None,
    force: bool = False,
    delta: float | None = None,
) -> None:
    """Show a release and its privacy guarantee.

    The command also shows the cost of each measurement (noisy query) and the cells with the largest counts.
    The command costs no budget, because it reads only the release file.

    Parameters
    ----------
    file
        Release file to show.
    top
        Number of cells to show. The command shows the cells with the largest counts.
    picture
        File for a picture of the release (.png, .svg or .pdf).
    force
        Overwrite an existing picture.
    delta
        If the cost is a ρ, also show the ε that it implies at this δ.
    """
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
    """Write the picture, together with a record of the release that it shows. If the process is killed, no
    incomplete picture is left.
    """
    from workbench.estimates import files
    from workbench.figures import plots, versions
    from workbench.figures.saved import release_record, save_picture

    record = {
        "command": shlex.join(["workbench", "show", file.name, "--picture", path.name]),
        "release": release_record(file),
        "noise": "simulated" if release.simulated else "system",
        "versions": versions("numpy", "matplotlib"),
        "commit": files.commit(),
    }
    fig = plots.release_picture(release)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of letters that the font does not have
        save_picture(fig, path, path.suffix.removeprefix("."), record)
    plots.close(fig)


# Answer


def answer(
    file: options.File, queries: list[str], *, error: bool = False, belief: str | None = None
) -> None:
    """Answer queries from a release file, which costs no budget.

    The command reads only the release file, and no private data.

    Parameters
    ----------
    file
        Release file.
    queries : QUERY
        Queries, for example 'origin=Bern hour=7..9'. After an attribute and =, give a label, a range that
        includes both ends, or several labels such as Bern|Genf. '*' means all cells. Put quotes around labels
        that contain spaces, commas, =, | or two dots.
    error
        Also show the standard error of each answer.
    belief
        Assumption about cells that were not released. With `empty`, they count as empty cells. Needs --error.
    """
    if belief is not None and not error:
        raise ValueError("--belief narrows error bars: add --error")

    from workbench.estimates.release import Release

    release = Release.load(file)
    answers = release.answer(queries, error=error, belief=belief)
    told = answers.in_words() if error else [(number(x),) for x in answers]
    columns = ["query", "count", "noise", "absent", "which hold"][: 5 if error else 2]
    rows = [(query, *row) for query, row in zip(queries, told, strict=True)]
    screen.table("Estimated counts", columns, rows, right=columns[1:])
    if error:
        absent = release.estimate.contents if release.absent_at_most >= 0 else "cells"
        screen.paragraph(
            "noise: one standard deviation. In about 19 of 20 cases the noise is within two of them. "
            f"absent: {absent} of the query that were not released. Together they hold no more than is "
            "shown, so the true count may be higher by as much."
        )
    screen.paragraph(release.counts_what)
    if error and release.estimate.why_unknown:
        screen.paragraph(f"unknown: {release.estimate.why_unknown}")
    if error and answers.belief:
        screen.warn(f"absent: 0 {answers.belief}")
