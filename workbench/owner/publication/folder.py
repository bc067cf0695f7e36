"""Writer of the folder of a publication. The folder contains the table, a data sheet, a statement on privacy,
metadata, a notebook, and the commands that made the release.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from html import escape
from importlib.util import find_spec
from io import BytesIO
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from workbench.compiled import load_nbformat
from workbench.estimates.files import temporary_folder
from workbench.owner.publication.about import About, read_about, refuse_other_person
from workbench.owner.publication.sheet import Sheet

if TYPE_CHECKING:
    from workbench.estimates.release import Release

fcntl: Any = None
if find_spec("fcntl"):  # not on Windows
    import fcntl

_PAGE, _TEXT = (Path(__file__).with_name(f"sheet.{kind}") for kind in ("html", "md"))
_EARLIEST = (1980, 1, 1, 0, 0, 0)  # that a zip file can name: nothing in it depends on a clock
_ERRORS = {"sd": "standard deviation of the noise", "low": "lower limit", "high": "upper limit"}
_MEANINGS = {
    "count": "published count",
    "count_for_sums": "count before negative values became 0",
    "noisy": "count with its noise, before sampling",
    **{name: f"{text} of the unbiased count" for name, text in _ERRORS.items()},
}


def refuse_folder(folder: str | Path) -> Path:
    """Raise a FileExistsError if the folder of a new publication, or its zip file, already exists. Raise a
    FileNotFoundError if the parent folder does not exist. Call this function before any budget is spent.
    """
    target = Path(folder)
    for path in (target, _zip_of(target)):
        if path.exists():
            raise FileExistsError(
                f"{path} exists already. Choose another folder for the publication"
            )
    if not target.resolve().parent.is_dir():
        raise FileNotFoundError(f"{target.parent}: no such folder")
    return target


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Lock a folder for the `with` block, so that only one process at a time makes a publication in it.

    Raises
    ------
    BlockingIOError
        If another process has locked the folder.
    """
    if fcntl is None:
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise BlockingIOError(
            f"{folder}: another process is publishing from this folder. Wait until it is done"
        ) from None
    finally:
        os.close(held)


def publish(
    release: Release,
    folder: str | Path,
    about: About | Mapping[str, Any] | str | Path,
    *,
    command: str = "",
    simulated: bool = False,
) -> Path:
    """Write a folder that presents a release to the public, and then a zip file of the same name.

    If an earlier call for the same release was stopped before it wrote the zip file, the function writes only
    this file.

    Parameters
    ----------
    release : Release
        Release to publish. The content of the files depends only on the release, on `about` and on `command`.
    folder : path
        Path of the folder. No folder or zip file with this name may exist, except for the folder of a call
        that was stopped.
    about : About, mapping or path
        Information from the publisher: title, publisher, contact, licence and more.
    command : str
        Command that made the release. The publication shows this command to readers, so it must not contain
        paths of private files.
    simulated : bool
        Set this to True to publish a release whose noise came from a seed. The data sheet then warns that the
        release is simulated.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    FileExistsError
        If the folder or the zip file already exists.
    ValueError
        If a field in `about` is missing or names another protected unit than the release, or if the release
        may not be published.
    """
    if getattr(release.privacy, "epsilon", 0) == inf:
        raise ValueError(f"this release has {release.privacy}, so it is never published")
    target = Path(folder)
    told = read_about(about)
    refuse_other_person(told, getattr(release.bound, "unit", ""))
    may_leave = simulated or not release.simulated  # which saving it checks as well
    if not (may_leave and _lacks_only_its_zip(target, release)):
        refuse_folder(target)
        _write_folder(release, target, told, command, simulated)
    _write_zip(target)
    return target


def _zip_of(folder: Path) -> Path:
    return folder.with_name(f"{folder.name}.zip")


def _lacks_only_its_zip(folder: Path, release: Release) -> bool:
    """Return whether a folder contains the publication of this release, but has no zip file. If so, the
    process that wrote the folder was stopped.
    """
    if _zip_of(folder).exists():
        return False
    try:
        found = type(release).load(folder / "release.parquet")
    except (OSError, ValueError):  # something else is there, or nothing
        return False
    is_same = found.estimate.to_arrow().equals(release.estimate.to_arrow())
    return is_same and tuple(found.ledger) == tuple(release.ledger)


def _write_folder(
    release: Release, target: Path, about: About, command: str, simulated: bool
) -> None:
    """Write the folder of a publication. It gets its name when all its files are written."""
    with temporary_folder(str(target.resolve().parent)) as home:
        draft = home / target.name
        draft.mkdir()
        release.save(draft / "release.parquet", simulated=simulated)
        tables = published_tables(release, about)
        for name, table in tables.items():
            table.to_csv(draft / name, index=False, encoding="utf-8-sig", lineterminator="\n")
        sheet = Sheet(release, about, tables)
        picture = _picture(release)
        if picture:
            (draft / "picture.svg").write_text(picture, encoding="utf-8")
        shown = {"sheet": sheet, "about": about, "release": release, "picture": picture}
        files = {
            "README.html": template(_PAGE).render(**shown),
            "README.md": template(_TEXT).render(**shown).replace("<", "&lt;"),
            "statement.txt": sheet.statement + "\n",
            "metadata.json": json.dumps(metadata(sheet), indent=1, ensure_ascii=False) + "\n",
            "reproduce.ipynb": _notebook(sheet, bool(picture)),
            "commands.txt": (command or "release.publish(folder, about)") + "\n",
        }
        for name, text in files.items():
            (draft / name).write_text(text, encoding="utf-8")
        draft.rename(target)  # fails if another run has published there since


def published_tables(release: Release, about: About) -> dict[str, pd.DataFrame]:
    """Return the tables of a publication by file name. If the release consists of marginals, there is one
    table per marginal. Otherwise there is one table.

    Parameters
    ----------
    release : Release
        Release whose rows are written.
    about : About
        Facts from the publisher, which determine whether counts are rounded.

    Returns
    -------
    dict of str to DataFrame
        One row per released cell with its labels, its `count` and the errors of the count. If counts are
        rounded, the column `count_for_sums` contains the unbiased counts.
    """
    frame = release.to_frame()
    if about.rounded and release.estimate.rows_are_counts:
        frame = _rounded(frame)
    frame = _few_digits(frame)
    marginals = release.estimate.marginals(frame)
    return {f"table_{name}.csv": x for name, x in marginals.items()} or {"table.csv": frame}


def _rounded(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with counts rounded to integers >= 0, and with the unbiased counts in a separate
    column.
    """
    if "count" not in frame:
        return frame
    limits = [_column(frame, name) for name in ("low", "high")]
    single = frame["noisy" if "noisy" in frame else "count"]
    attrs = frame.attrs
    frame = frame.assign(**{name: frame[name].clip(lower=0) for name in limits})
    frame.insert(frame.columns.get_loc("count") + 1, "count_for_sums", frame["count"])
    frame["count"] = single.clip(lower=0).round().astype("int64")
    frame.attrs = attrs
    return frame


def _few_digits(frame: pd.DataFrame) -> pd.DataFrame:
    """Return the table with its columns of errors rounded, to two digits after the first digit of the
    smallest standard deviation.
    """
    columns = [_column(frame, name) for name in _ERRORS]
    if columns[0] not in frame:
        return frame
    deviations = frame[columns[0]].to_numpy(float)
    least = deviations[np.isfinite(deviations) & (deviations > 0)].min(initial=np.inf)
    if np.isinf(least):
        return frame
    digits = max(0, 2 - int(np.floor(np.log10(least))))
    return frame.assign(**{name: frame[name].round(digits) for name in columns})


def _column(frame: pd.DataFrame, name: str) -> str:
    """Return the name of an error column, for example `sd`, in a table. If an attribute is also called `sd`,
    the name of the error column is `sd_`.
    """
    return f"{name}_" if f"{name}_" in frame else name


def _picture(release: Release) -> str:
    """Return a picture of the release as SVG. Return an empty text if the workbench cannot draw this kind of
    release.
    """
    import matplotlib as mpl

    from workbench.figures import plots

    try:
        drawing = plots.release_picture(release)
    except ValueError:
        return ""
    out = BytesIO()
    plots.lay_out(drawing)
    with mpl.rc_context({"svg.hashsalt": "workbench", "svg.fonttype": "path"}):
        drawing.savefig(out, format="svg", metadata={"Date": None})
    plots.close(drawing)
    text = out.getvalue().decode()
    return text[text.index("<svg") :]


def metadata(sheet: Sheet) -> dict[str, Any]:
    """Return the metadata of a publication in the format of Frictionless data packages. The metadata include
    the privacy guarantee.

    Parameters
    ----------
    sheet : Sheet
        Data sheet.
    """
    about, release = sheet.about, sheet.release
    bound = release.bound
    return {
        "name": re.sub(r"[^a-z0-9]+", "-", about.title.lower()).strip("-") or "table",
        "title": about.title,
        "description": sheet.statement,
        "created": f"{about.date}T00:00:00Z",
        "version": f"{about.edition}",
        "licenses": [{"name": re.sub(r"\s+", "-", about.licence), "title": about.licence}],
        "contributors": [{"title": about.publisher, "role": "publisher"}],
        "contact": about.contact,
        "resources": [
            {
                "name": Path(name).stem.lower(),
                "path": name,
                "format": "csv",
                "mediatype": "text/csv",
                "encoding": "utf-8-sig",
                "schema": {
                    "fields": [_field(table, column, about) for column in table.columns]
                },
            }
            for name, table in sheet.tables.items()
        ],
        "differential_privacy": {
            "guarantee": str(release.privacy),
            "epsilon": sheet.price.epsilon,
            "delta": sheet.price.delta,
            "neighbours": release.relation,
            "unit": about.person,
            "bound": bound
            and {"l0": bound.l0, "linf": bound.linf, "l1": bound.l1, "status": bound.status},
            "mechanism": str(release.mechanism),
            "receipts": [str(receipt.cost) for receipt in release.ledger],
            "simulated": release.simulated,
        },
    }


def _field(table: pd.DataFrame, column: str, about: About) -> dict[str, str]:
    kind = "string"
    if pd.api.types.is_integer_dtype(table[column]):
        kind = "integer"
    elif pd.api.types.is_float_dtype(table[column]):
        kind = "number"
    meaning = about.columns.get(column, _MEANINGS.get(column.removesuffix("_"), ""))
    return {"name": column, "type": kind} | ({"description": meaning} if meaning else {})


def _notebook(sheet: Sheet, has_picture: bool) -> str:
    """Return a notebook that opens the release, asks up to three questions and draws the picture, if there is
    one.
    """
    nbformat = load_nbformat()
    new = nbformat.v4
    code = [
        'from workbench import Release\n\nrelease = Release.load("release.parquet")\nrelease',
        "release.to_frame().head(10)",
        *(f"release.answer({question}, error=True)" for question in _questions(sheet)),
    ]
    if has_picture:
        code.append("from workbench.figures import plots\n\nplots.release_picture(release);")
    cells = [
        new.new_markdown_cell(
            f"# {escape(sheet.about.title)}\n\nOpen the release, ask, and draw it."
        )
    ]
    cells += [new.new_code_cell(text) for text in code]
    for i, cell in enumerate(cells):
        cell["id"] = f"cell-{i}"  # the same in every run
    book = new.new_notebook(cells=cells)
    return str(nbformat.writes(book)) + "\n"


def _questions(sheet: Sheet) -> list[str]:
    """Return three questions by label: the count of all records, of the first label of an attribute, and of
    the first labels of two attributes. Return no questions if the release cannot answer them.
    """
    domain, release = sheet.domain, sheet.release
    if domain is None or not release.estimate.rows_are_counts:
        return []
    first = {x: domain.decode(x, np.zeros(1, int))[0] for x in domain.attributes[:2]}
    first = {name: x if isinstance(x, str) else x.item() for name, x in first.items()}
    asked = [{}, dict(list(first.items())[:1]), first]
    try:
        for question in asked:
            release.answer(question, error=True)
    except (ValueError, TypeError):
        return []
    return [repr(question) for question in asked]


def _write_zip(folder: Path) -> None:
    """Write the zip file of a folder. It gets its name when it is complete."""
    with temporary_folder(str(folder.resolve().parent)) as home:
        draft = home / "draft.zip"
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED) as out:
            for path in sorted(folder.iterdir()):
                entry = zipfile.ZipInfo(f"{folder.name}/{path.name}", _EARLIEST)
                entry.external_attr = 0o644 << 16
                out.writestr(entry, path.read_bytes(), zipfile.ZIP_DEFLATED)
        draft.rename(_zip_of(folder))


@cache
def template(path: Path) -> Any:
    """Return the HTML template in a file. The template escapes special characters in the texts that are
    inserted.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    how: dict[str, Any] = dict(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    environment = Environment(
        loader=FileSystemLoader(path.parent), undefined=StrictUndefined, **how
    )
    return environment.get_template(path.name)
