"""Information that only the publisher of a table can give, for example the title and the licence. The file
`publication.json` contains this information.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import msgspec

from workbench.data import without_column
from workbench.figures.saved import write_json
from workbench.owner.ledger import same_unit

_ABOUT_ONE_RUN = {"about", "publish", "out", "force", "seed", "simulated", "domain-from-data"}


class Earlier(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Earlier publication about the same people. Its privacy loss adds to the loss of the new publication.

    Parameters
    ----------
    title : str
        Title of the earlier publication.
    epsilon, delta : float
        Privacy loss ε of the earlier publication, and its δ. Default δ = 0.
    """

    title: str
    epsilon: Annotated[float, msgspec.Meta(gt=0)]
    delta: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.0


class Recipe(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Options with which the command `workbench release` makes every edition of a publication, for example one
    edition per year.

    Parameters
    ----------
    mechanism : str
        Name of the mechanism, for example "GeometricHistogram".
    domain : str
        Path of the domain file (a list of all possible cells), relative to the folder of publication.json.
    budget : str
        Path of the budget file that pays for all editions, relative to the folder of publication.json. Empty
        if there is no budget file.
    options : mapping of str to str or number
        Other options of the command, without their dashes, for example {"user": "rider", "bound": "10,1",
        "epsilon": 1}. Options that make sense for a single run only, for example "seed", are not allowed.
    page : mapping of str to str or number
        Values of other fields on the page that the command `workbench publish` shows: the path of the table,
        the new folder, and your beliefs about the data.
    """

    mechanism: str
    domain: str
    budget: str = ""
    options: dict[str, str | int | float] = {}
    page: dict[str, str | int | float] = {}

    def words(self, home: Path) -> list[str]:
        """Return the arguments with which the command `workbench release` makes a release by this recipe.

        Parameters
        ----------
        home : Path
            Folder that contains publication.json.

        Returns
        -------
        list of str
            The mechanism and the options. The path of the table and the output file are not included.

        Raises
        ------
        ValueError
            If an option makes sense for a single run only.
        """
        for name in self.options:
            if name in _ABOUT_ONE_RUN or name.startswith("-"):
                raise ValueError(
                    f"$.release.options has {name!r}: need options without dashes that hold for every "
                    f"edition, not {', '.join(sorted(_ABOUT_ONE_RUN))}"
                )
        paths = {"domain": self.domain, "budget": self.budget}
        given = {name: str(home / path) for name, path in paths.items() if path}
        given |= {name: str(x) for name, x in self.options.items()}
        options = [word for name, text in given.items() for word in (f"--{name}", text)]
        return [self.mechanism, *options]


class About(
    msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True, omit_defaults=True
):
    """Facts about a publication that only its publisher can give.

    Parameters
    ----------
    title : str
        Title of the table, for example "Medical appointments by district, 2016".
    publisher, contact, licence : str
        Name of the publisher, an address for questions, and the terms of use, for example "CC BY 4.0".
    source, period : str
        Origin of the rows, and the period of time that the rows cover.
    date : str
        Day of publication, for example 2026-11-24. Default: today.
    edition : int
        Number of the edition, starting at 1.
    person, people : str
        Name of the unit that the guarantee protects, in singular and plural, for example "patient" and
        "patients".
    row, rows : str
        Name of the things that are counted, in singular and plural, for example "appointment" and
        "appointments".
    one_count : str
        Sentence that explains to readers what one count means.
    columns : mapping of str to str
        Explanation of each column of the table.
    beliefs : sequence of str
        Sentences with the publisher's beliefs about the data, for example the approximate share of rows that
        truncation left out. The beliefs must not come from the private table.
    earlier : sequence of Earlier
        Earlier publications about the same people. The privacy losses of all publications add up.
    rounded : bool
        Whether to round the published counts to integers >= 0. The table then has a second column with the
        unbiased counts, which readers should use for sums.
    release : Recipe, optional
        Options with which `workbench publish` makes the release of each edition.
    """

    title: str
    publisher: str
    contact: str
    licence: str
    source: str = ""
    period: str = ""
    date: str = ""
    edition: Annotated[int, msgspec.Meta(ge=1)] = 1
    person: str = "person"
    people: str = ""
    row: str = "record"
    rows: str = ""
    one_count: str = ""
    columns: dict[str, str] = {}
    beliefs: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()
    rounded: bool = True
    release: Recipe | None = None

    @property
    def persons(self) -> str:
        """Name of the protected unit in the plural."""
        return self.people or f"{self.person}s"

    @property
    def unit(self) -> str:
        """Name of the protected unit with its article, for example "a patient"."""
        return f"{'an' if self.person[:1].lower() in 'aeio' else 'a'} {self.person}"

    @property
    def several(self) -> str:
        """Name of the things that are counted, in the plural."""
        return self.rows or f"{self.row}s"


def read_about(about: About | Mapping[str, Any] | str | Path) -> About:
    """Read and check the facts that the publisher gives.

    Parameters
    ----------
    about : About, mapping or path
        The facts, or the path of a JSON file that contains them, for example publication.json.

    Returns
    -------
    About
        The facts. If they contain no date, the day of publication is today.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a field is missing, unknown or of the wrong type, if a required text is empty, or if a date or a
        number is impossible. The message names the file and the field.
    """
    name = str(about) if isinstance(about, str | Path) else "about"
    try:
        if isinstance(about, str | Path):
            found = msgspec.json.decode(Path(about).read_bytes(), type=About)
        else:
            found = about if isinstance(about, About) else msgspec.convert(about, About)
        for field in ("title", "publisher", "contact", "licence"):
            if not getattr(found, field).strip():
                raise ValueError(f"{field} is empty")
        day = date.fromisoformat(found.date) if found.date else date.today()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{name} does not exist. Write a JSON file with title, publisher, contact and licence"
        ) from None
    except (ValueError, msgspec.MsgspecError) as e:
        known = ", ".join(About.__struct_fields__) if "unknown field" in str(e) else ""
        raise ValueError(f"{name}: {e}{known and f'. Known fields: {known}'}") from None
    return msgspec.structs.replace(found, date=day.isoformat())


def refuse_other_person(about: About | str | Path, unit: str) -> None:
    """Raise a ValueError if a release protects another unit than the publication names. For example, the
    release protects a trip, and the publication names a rider.

    Parameters
    ----------
    about : About or path
        Facts from the publisher. Every text of the publication uses the name of the unit in the field `person`.
    unit : str
        Unit that the release protects. If the unit is only "a user", or is not known, the function raises no
        error, because `person` then says who the users are.
    """
    protected, told = without_column(unit), read_about(about).unit
    if protected and not any(same_unit(protected, x) for x in ("a user", told)):
        raise ValueError(
            f"the release protects {protected!r}, but the publication would say {told!r}. Name the "
            'protected unit in the field "person", for example "trip"'
        )


def is_unrecorded(about: About, folder: Path) -> bool:
    """Return whether a folder and its zip file already contain the next edition that publication.json
    announces. If so, a process published this edition, but was stopped before it recorded the edition in
    publication.json.

    Parameters
    ----------
    about : About
        Content of publication.json.
    folder : Path
        Folder of the publication, which need not exist.
    """
    file = folder / "metadata.json"
    if not file.exists() or not folder.with_name(f"{folder.name}.zip").exists():
        return False
    made = json.loads(file.read_bytes())
    is_next = (made["title"], made["version"]) == (about.title, f"{about.edition}")
    return is_next and not made["differential_privacy"]["simulated"]


def record_edition(path: Path, folder: Path) -> None:
    """Record in publication.json that an edition was published, and prepare the file for the next edition.

    Parameters
    ----------
    path : Path
        Path of publication.json. If the process is killed, the file keeps its old content.
    folder : Path
        Published folder. The function reads the title, edition, date and ε from the file metadata.json in this
        folder. It does not record a simulated edition.
    """
    told = msgspec.json.decode(path.read_bytes(), type=About)
    made = json.loads((folder / "metadata.json").read_bytes())
    private = made["differential_privacy"]
    if private["simulated"]:
        return
    title = f"{made['title']}, edition {made['version']} ({made['created'][:10]})"
    told = msgspec.structs.replace(
        told,
        edition=int(made["version"]) + 1,
        date="",
        earlier=(*told.earlier, Earlier(title, private["epsilon"], private["delta"])),
    )
    write_json(path, msgspec.to_builtins(told))
