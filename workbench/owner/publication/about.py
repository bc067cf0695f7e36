"""What a publisher says about a table: `publication.json`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any

import msgspec


class Earlier(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """An earlier publication about the same people.

    Parameters
    ----------
    title : str
        Its title.
    epsilon : float
        Its privacy loss ε.
    """

    title: str
    epsilon: float


class About(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Facts about a publication that its publisher states, and that no mechanism knows.

    Parameters
    ----------
    title : str
        Title of the table, for example "Medical appointments by district, 2016".
    publisher, contact, licence : str
        Who publishes it, an address for questions, and the terms of use, for example "CC BY 4.0".
    source, period : str
        Where the rows come from, and the time that they cover.
    date : str
        Day of publication as 2026-11-24. Today by default.
    edition : int
        Number of the edition, from 1.
    person, people : str
        What the protected unit is called, for example "patient" and "patients".
    row, rows : str
        What is counted, for example "appointment" and "appointments".
    one_count : str
        A sentence that says what one count is.
    columns : mapping of str to str
        What each column means.
    beliefs : sequence of str
        Sentences that the publisher believes without having looked at the table, for example about the
        share of rows that truncation left out.
    earlier : sequence of Earlier
        Publications about the same people, whose losses add up.
    rounded : bool
        Whether the published count is an integer that is never negative. The unbiased count is then
        a column of its own, which is right for sums.
    """

    title: str
    publisher: str
    contact: str
    licence: str
    source: str = ""
    period: str = ""
    date: str = ""
    edition: int = 1
    person: str = "person"
    people: str = ""
    row: str = "record"
    rows: str = ""
    one_count: str = ""
    columns: dict[str, str] = {}
    beliefs: tuple[str, ...] = ()
    earlier: tuple[Earlier, ...] = ()
    rounded: bool = True

    @property
    def persons(self) -> str:
        """Several protected units."""
        return self.people or f"{self.person}s"

    @property
    def several(self) -> str:
        """Several rows."""
        return self.rows or f"{self.row}s"


def read_about(about: About | Mapping[str, Any] | str | Path) -> About:
    """What a publisher says, from a file, a mapping or an `About`.

    Parameters
    ----------
    about : About, mapping or path
        A path names a JSON file, for example publication.json.

    Returns
    -------
    About
        With the day of publication.

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
                raise ValueError(f"$.{field} is empty")
        if found.edition < 1:
            raise ValueError(f"$.edition = {found.edition}: need an integer >= 1")
        for i, each in enumerate(found.earlier):
            if not 0 < each.epsilon < float("inf"):
                raise ValueError(
                    f"$.earlier[{i}].epsilon = {each.epsilon}: need a finite number > 0"
                )
        day = date.fromisoformat(found.date) if found.date else date.today()
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{name} does not exist. Write a JSON file with title, publisher, contact and licence"
        ) from None
    except (ValueError, msgspec.MsgspecError) as e:
        known = ", ".join(About.__struct_fields__) if "unknown field" in str(e) else ""
        raise ValueError(f"{name}: {e}{known and f'. Known fields: {known}'}") from None
    return msgspec.structs.replace(found, date=day.isoformat())
