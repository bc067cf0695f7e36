"""Information from the publisher of a table, stored in `publication.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any

import msgspec

from workbench.figures.saved import write_json

_ABOUT_ONE_RUN = {"about", "publish", "out", "force", "seed", "simulated", "domain-from-data"}


class Earlier(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Earlier publication about the same people.

    Parameters
    ----------
    title : str
        Title of the earlier publication.
    epsilon : float
        Privacy loss ε of the earlier publication.
    """

    title: str
    epsilon: Annotated[float, msgspec.Meta(gt=0)]


class Recipe(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Options of `workbench release` for every edition of a publication.

    Parameters
    ----------
    mechanism : str
        Name of the mechanism, for example "GeometricHistogram".
    domain : str
        Path of the domain file, relative to the folder of publication.json.
    budget : str
        Path of the budget file that pays for all editions, relative to the same folder. Empty if there is
        none.
    options : mapping of str to str or number
        Other options of the command without their dashes, for example {"user": "rider", "bound": "10,1",
        "epsilon": 1}. Options for a single run, for example "seed", are not allowed here. Give them on the
        command line.
    page : mapping of str to str or number
        Other values of the page of `workbench publish`: the table's path, the folder, and beliefs.
    """

    mechanism: str
    domain: str
    budget: str = ""
    options: dict[str, str | int | float] = {}
    page: dict[str, str | int | float] = {}

    def words(self, home: Path) -> list[str]:
        """Return the command-line arguments of `workbench release` for this recipe.

        Parameters
        ----------
        home : Path
            Folder of publication.json.

        Returns
        -------
        list of str
            Mechanism and options, without a table and an output.

        Raises
        ------
        ValueError
            If an option is for a single run.
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
    """Facts about a publication that only its publisher can state.

    Parameters
    ----------
    title : str
        Title of the table, for example "Medical appointments by district, 2016".
    publisher, contact, licence : str
        Name of the publisher, an address for questions, and the terms of use, for example "CC BY 4.0".
    source, period : str
        Source of the rows, and the time that they cover.
    date : str
        Day of publication, for example 2026-11-24. Default: today.
    edition : int
        Number of the edition, starting at 1.
    person, people : str
        Name of the protected unit, singular and plural, for example "patient" and "patients".
    row, rows : str
        Name of the counted things, singular and plural, for example "appointment" and "appointments".
    one_count : str
        Sentence that explains what one count means.
    columns : mapping of str to str
        Meaning of each column.
    beliefs : sequence of str
        Beliefs of the publisher as sentences. They must not come from the private table. An example is the
        share of rows that truncation left out.
    earlier : sequence of Earlier
        Earlier publications about the same people. Their privacy losses add up.
    rounded : bool
        Whether to round published counts to integers >= 0. A separate column then contains the unbiased
        count, which you must use for sums.
    release : Recipe, optional
        Recipe by which `workbench publish` releases each edition.
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
        """Name of the counted things in the plural."""
        return self.rows or f"{self.row}s"


def read_about(about: About | Mapping[str, Any] | str | Path) -> About:
    """Read what a publisher states, from a file, a mapping or an `About`.

    Parameters
    ----------
    about : About, mapping or path
        Information, or the path of a JSON file, for example publication.json.

    Returns
    -------
    About
        Information, with the day of publication.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If a field is missing, unknown or of another type, a required text is empty, or a date or a
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


def record_edition(path: Path, folder: Path) -> None:
    """Record a published edition in publication.json, and prepare the file for the next edition.

    Parameters
    ----------
    path : Path
        File publication.json. It is replaced completely or not at all.
    folder : Path
        Published folder. Title, edition, date and ε are read from its metadata.json. A simulated edition is
        not recorded.
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
        earlier=(*told.earlier, Earlier(title, private["epsilon"])),
    )
    write_json(path, msgspec.to_builtins(told))
