"""Saved figures: pictures, rows as CSV, and records with the commands that make them again.

A figure is saved in a folder `<results>/<profile>/<stem>/`, where the stem is the figure's name. The file
`manifest.json`, which lists the other files, is written last. So a folder without this file does not contain
a complete figure. The same rows give the same bytes (set `SOURCE_DATE_EPOCH` to fix the time in the
manifest). A changed picture therefore means a changed result.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property, partial
from itertools import product
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any

import msgspec

from workbench import compiled
from workbench.compiled import mpl, pd
from workbench.datasets.kinds import unwrapped
from workbench.estimates import files as provenance
from workbench.estimates.files import Draft, file_sha256
from workbench.figures import plots
from workbench.figures.figure import PROFILES, SUPPLEMENT, Figure, data_used, describe
from workbench.trials import claims, inputs

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


# Records

TIMES = {"seconds", "median_seconds", "machine", "repeated"}  # columns that hold times
TIMED = {"throughput", "ProcessorTime"}  # metrics whose values are times
SIMULATED = "simulated"
SYSTEM = "system"


def row_digest(rows: pd.DataFrame) -> str:
    """Return the SHA-256 hash of rows, which is the same on every machine. Numbers are rounded to nine
    digits, and times are left out.
    """
    rows = rows[sorted({*rows} - TIMES)]
    if {"metric", "value"} <= {*rows}:
        rows = rows.assign(value=rows["value"].mask(rows.metric.isin(TIMED)))
    text = rows.to_csv(index=False, lineterminator="\n", float_format="%.9g")
    return hashlib.sha256(text.encode()).hexdigest()


def noise_of(rows: pd.DataFrame, no_data: bool) -> str:
    """Return where the noise came from: "simulated" (a seed), "system" (the operating system) or "none"."""
    if "simulated" in rows:
        return SIMULATED if rows["simulated"].all() else SYSTEM
    return "none" if no_data else SIMULATED  # a trial's noise follows from its text


def public_files(figure: Figure) -> dict[str, str]:
    """Return the SHA-256 hashes of the published files that a figure uses, by file name. Private files are
    left out.
    """
    hashes: dict[str, str] = {}
    with suppress(FileNotFoundError, ValueError):  # rows of a machine that has them
        for dataset in figure.datasets_used():
            if getattr(unwrapped(dataset), "truth_public", False) is not True:
                continue
            for file in dataset.files() if hasattr(dataset, "files") else ():
                path = inputs.located(file)
                hashes[path.name] = provenance.file_sha256(path)
    return hashes


def release_record(path: Path) -> dict[str, Any]:
    """Return the record that is stored in a picture of a release. The record contains the guarantee and the
    mechanism of the release, and the hash of the release's file.
    """
    own = provenance.read(path)
    names = [name for name in ("guarantee", "mechanism", "simulated") if name in own]
    kept: dict[str, Any] = {name: own[name] for name in names}
    return {**kept, "file": path.name, "sha256": provenance.file_sha256(path)}


# Saved

FOLDERS = (*PROFILES, "explorer")  # folders of results; the last holds what panels export
IMAGES = ("pdf", "svg", "png")
AGGREGATES = "aggregates.json"
INPUTS = ".inputs.json"  # not in the manifest, which may be published: hashes of private files
DPI = 200  # of the PNG

# No random ids in the bytes. Text in PDF stays text; in SVG it is paths, since browsers lack the font.
_STYLE = {"svg.hashsalt": "workbench", "svg.fonttype": "path", "pdf.fonttype": 42}


@dataclass(frozen=True)
class SavedFigure:
    """Saved figure, as `load` returns it. Its manifest lists the files in the folder, and records the
    settings with which they were made.
    """

    folder: Path
    manifest: dict[str, Any]
    verdicts: pd.DataFrame

    @cached_property
    def rows(self) -> pd.DataFrame:
        """Results that the figure shows, as a data frame. Because the data frame can be large, the property
        reads the file only when you first use it.
        """
        rows = self.folder / "rows.csv"
        return pd.read_csv(rows, low_memory=False)  # a column's kind, from all of it

    @property
    def images(self) -> dict[str, Path]:
        """Paths of the main picture, by format ("pdf", "svg" or "png"). There are no paths if the figure is a
        table.
        """
        return self._images("")

    @property
    def supplement(self) -> dict[str, Path]:
        """Paths of the second picture, by format ("pdf", "svg" or "png"). The second picture contains the
        panels that are not in the main picture.
        """
        return self._images(SUPPLEMENT)

    @property
    def aggregates(self) -> list[dict[str, Any]]:
        """Numbers that are plotted in each panel, in the form that `plots.aggregates` returns."""
        saved = AGGREGATES in self.manifest["sha256"]
        return json.loads((self.folder / AGGREGATES).read_text("utf-8")) if saved else []

    def _images(self, suffix: str) -> dict[str, Path]:
        names = {kind: f"{self.manifest['id']}{suffix}.{kind}" for kind in IMAGES}
        saved = self.manifest["sha256"]
        return {kind: self.folder / name for kind, name in names.items() if name in saved}


@dataclass(frozen=True)
class Description:
    """Description of a result that is saved like a figure, but that no subclass of `Figure` computes. An
    example is the picture of an interactive panel.

    Parameters
    ----------
    name : str
        Name of the folder in which the result is saved.
    title : str
        Sentence above the picture.
    command : str
        Command with which you can make the result again.
    no_data : bool
        Whether the result comes from formulas, without a dataset.
    id : str
        Id of the figure, if the id differs from `name`.
    parameters, setting : mappings
        `parameters` contains all parameters of the result. `setting` contains only the parameters whose
        values differ from the profile, which is a named setting of all parameters.
    files : mapping
        SHA-256 hashes of the public files from which the result was computed. The keys are the names of the
        files.
    """

    name: str
    title: str
    command: str
    no_data: bool = False
    id: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    setting: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


def figure_folder(results: str | Path, profile: str, stem: str) -> Path:
    """Return the path of the folder in which a figure is saved. Raise a ValueError if `profile` is not
    "paper", "quick" or "explorer", or if `stem` (the name of the figure) is not a valid name of a folder.
    """
    if profile not in FOLDERS:
        raise ValueError(f"profile = {profile!r} is not allowed: need one of {FOLDERS}")
    if not stem or stem == ".." or PureWindowsPath(stem).name != stem:  # `/`, `\` and drives
        raise ValueError(
            f"stem = {stem!r} is not allowed: a figure's name is the name of its folder, without "
            "other folders in it"
        )
    return Path(results).resolve() / profile / stem


def save(
    fig: Drawing | None,
    rows: pd.DataFrame,
    *,
    spec: Figure | Description,
    profile: str,
    results: str | Path,
    verdicts: Sequence[claims.Verdict] = (),
    supplement: Drawing | None = None,
) -> Path:
    """Save a figure to a folder. The folder then contains the pictures, the plotted numbers, a verdict on
    each statement of the paper, and a manifest. The manifest lists the files. Because it is written last, a
    folder with a manifest is complete.

    Parameters
    ----------
    fig : Figure or None
        Picture to save. None if the figure is a table.
    rows : DataFrame
        Results that the picture shows. The column `truth_public` must be True in every row. Otherwise the
        results could contain errors that were computed from private data. Such errors reveal something about
        these data.
    spec : Figure or Description
        Figure to save. If its attribute `no_data` is True, the results come from formulas, without a dataset.
        Then `rows` needs no column `truth_public`.
    profile : str
        "quick" or "paper". Exports of interactive panels have the profile "explorer".
    results : path
        Folder in which the results of all figures are stored.
    verdicts : sequence of Verdict
        Verdicts on the paper's statements about the figure. A verdict says whether a statement holds.
    supplement : Figure, optional
        Second picture, which contains the panels that are not in the main picture. It is closed.

    Returns
    -------
    Path
        Folder `<results>/<profile>/<stem>`.

    Raises
    ------
    ValueError
        If `truth_public` is missing or not True, if the profile is unknown, or if the name of the figure is
        not a valid name of a folder.
    """
    description = describe_figure(spec, profile)
    stem = description.name
    refuse_private_truth(rows, description)
    record = make_record(description, profile, rows)
    if description.setting:
        rows = rows.assign(off_profile=describe(description.setting))
    target = figure_folder(results, profile, stem)
    figure_folder(results, profile, description.id or stem)  # names pictures
    target.mkdir(parents=True, exist_ok=True)
    (target / "manifest.json").unlink(missing_ok=True)
    sha256 = {}
    (target / AGGREGATES).unlink(missing_ok=True)
    if fig is not None:
        plots.lay_out(fig)
        drawn = json.dumps(plots.aggregates(fig), ensure_ascii=False, separators=(",", ":"))
        sha256[AGGREGATES] = write_text(target / AGGREGATES, drawn)
    drawings = {"": fig, SUPPLEMENT: supplement}
    for (suffix, drawing), kind in product(drawings.items(), IMAGES):
        path = target / f"{description.id or stem}{suffix}.{kind}"
        if drawing is None:
            path.unlink(missing_ok=True)  # of an earlier version of this figure
        else:
            sha256[path.name] = save_picture(drawing, path, kind, record)
    if supplement is not None:
        plots.close(supplement)
    for name, frame in {"rows.csv": rows, "verdicts.csv": claims.to_frame(verdicts)}.items():
        sha256[name] = write_csv(target / name, frame)
    datasets: list[Any] = []
    if isinstance(spec, Figure):
        write_json(target / INPUTS, _inputs(spec, Path(results).resolve() / "store"))
        with suppress(FileNotFoundError, ValueError):  # rows of a machine that has the files
            datasets = spec.datasets_run()
    data = [vars(used) for used in data_used(record["datasets"], datasets)]
    manifest = record | _circumstances(rows) | {"data": data, "sha256": sha256}
    write_json(target / "manifest.json", manifest)
    return target


def refuse_private_truth(rows: pd.DataFrame, description: Description) -> None:
    """Raise a ValueError unless the rows state that the true data, with which they compare releases, are
    public.
    """
    stem = description.name
    if "truth_public" not in rows:
        if not description.no_data:
            raise ValueError(
                f"figure {stem}: its rows do not say whether the truth is public; they need a column "
                "truth_public, or the figure no_data = True where they rest on no dataset"
            )
    elif not rows.truth_public.eq(True).all():
        bad = rows[~rows.truth_public.eq(True)].iloc[0]
        raise ValueError(
            f"figure {stem}: rows of {bad.get('dataset', 'a dataset')} compare with a truth "
            "that is not public; they may not be saved (published data says truth_public=True)"
        )


def load(folder: str | Path) -> SavedFigure:
    """Read a saved figure from its folder.

    Parameters
    ----------
    folder : path
        Path of the folder, as returned by `save`.

    Returns
    -------
    SavedFigure
        Saved figure, with its manifest, results and verdicts.

    Raises
    ------
    FileNotFoundError
        If the folder does not contain a complete saved figure.
    ValueError
        If a file was changed after the figure was saved.
    """
    source = Path(folder)
    if not (source / "manifest.json").exists():
        raise FileNotFoundError(f"{source} holds no finished figure (no manifest.json)")
    manifest = _read_manifest(source / "manifest.json")
    for name, sha256 in manifest["sha256"].items():
        if not (source / name).is_file() or file_sha256(source / name) != sha256:
            raise ValueError(
                f"{source / name} is not the file that was saved; make it again with: "
                f"{manifest['command']} --force"
            )
    verdicts = pd.read_csv(source / "verdicts.csv", dtype=str, keep_default_na=False)
    columns = claims.to_frame([]).columns  # an older version's has fewer
    verdicts = verdicts.reindex(columns=columns, fill_value="")
    return SavedFigure(source, manifest, verdicts)


class _Manifest(msgspec.Struct):
    """Fields that every manifest (the record of how a figure's files were made) must have. Older manifests
    have no `format`.
    """

    id: str
    figure: str
    title: str
    profile: str
    datasets: list[str]
    trials: int
    seeds: int
    seconds: float | None
    commit: str | None
    command: str
    sha256: dict[str, str]
    format: int = provenance.FORMAT


def _read_manifest(path: Path) -> dict[str, Any]:
    """Return a manifest. Raise a ValueError with the reason if this version cannot read it."""
    try:
        manifest: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        format = msgspec.convert(manifest, _Manifest).format
    except ValueError as e:  # one of msgspec is a ValueError
        raise ValueError(
            f"{path} is damaged, or of another version of the workbench ({e}): remove {path.parent}, "
            "and it is made again"
        ) from None
    if format != provenance.FORMAT:
        raise ValueError(
            f"{path} was written by another version of the workbench (format {format!r}, this one "
            f"reads {provenance.FORMAT}): update it, or name another folder of results"
        )
    return manifest


def write_atomically(path: Path, fill: Callable[[Path], Any]) -> str:
    """Write a file so that no other program ever reads an incomplete file. Your function `fill` writes a
    temporary file. Then `write_atomically` renames this file to `path`, and returns the SHA-256 hash of its
    content.

    If the process is killed during writing, the old file stays unchanged.
    """
    try:
        with closing(Draft(path)) as draft:
            fill(draft.path)
            sha256 = file_sha256(draft.path)
            draft.replace(path)
    except OSError as e:  # of a full disk, which names no file
        if e.filename is not None:
            raise
        raise OSError(f"{path} was not written: {e.strerror or e}") from None
    return sha256


def write_text(path: Path, text: str) -> str:
    """Write text to a file with `write_atomically`, and return the SHA-256 hash of the file."""
    write = partial(Path.write_text, data=text, encoding="utf-8", newline="\n")
    return write_atomically(path, write)


def write_csv(path: Path, rows: pd.DataFrame) -> str:
    """Write rows to a CSV file with `write_atomically`, and return the SHA-256 hash of the file."""
    return write_atomically(path, partial(rows.to_csv, index=False, lineterminator="\n"))


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a dictionary to a JSON file with `write_atomically`."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def versions(*packages: str) -> dict[str, str]:
    """Return the versions of the software that affects results: the workbench, Python, and the given
    packages.
    """
    installed = {name: importlib.metadata.version(name) for name in packages}
    workbench = importlib.metadata.version("dp-workbench")
    return {"workbench": workbench, "python": platform.python_version()} | installed


def save_picture(fig: Drawing, path: Path, kind: str, record: Mapping[str, Any]) -> str:
    """Write a picture to a file, together with a record of how it was made. Return the SHA-256 hash of the
    file.
    """
    plots.lay_out(fig)
    metadata = provenance.picture_metadata(kind, dict(record))
    with mpl.rc_context(_STYLE):

        def draw(draft: Path) -> None:
            fig.savefig(draft, format=kind, dpi=DPI, metadata=metadata)

        return write_atomically(path, draw)


def describe_figure(spec: Figure | Description, profile: str) -> Description:
    """Return the description that is stored in a figure's files."""
    if isinstance(spec, Description):
        return spec
    return Description(
        spec.name(profile),
        spec.title,
        spec.command(profile),
        spec.no_data,
        spec.id,
        {name: getattr(spec, name) for name in spec.parameters()},
        spec.differences(profile),
        {} if spec.no_data else public_files(spec),
    )


def make_record(description: Description, profile: str, rows: pd.DataFrame) -> dict[str, Any]:
    """Return a record of everything that determines a figure. Facts that differ between runs, for example the
    date, are left out.
    """

    def distinct(column: str) -> list[Any]:
        return sorted(rows[column].dropna().unique().tolist()) if column in rows else []

    trials = rows.drop_duplicates("trial") if "trial" in rows else rows
    return {
        "format": provenance.FORMAT,
        "figure": description.name,
        "id": description.id or description.name,
        "title": description.title,
        "paper": description.name.partition("_")[0],
        "parameters": dict(description.parameters),
        "setting": dict(description.setting),
        "profile": profile,
        "datasets": distinct("dataset"),
        "by_theorem": distinct("by_theorem"),
        "trials": len(trials),
        "seeds": len(distinct("seed")),
        "noise": noise_of(rows, description.no_data),
        "files": dict(description.files),
        "rows": row_digest(rows),
        "versions": versions("numpy", "scipy", "matplotlib"),
        "commit": provenance.commit(),
        "command": description.command,
    }


def _circumstances(rows: pd.DataFrame) -> dict[str, Any]:
    """Return the duration, the loaded modules and the date of this run."""
    trials = rows.drop_duplicates("trial") if "trial" in rows else rows
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    return {
        "seconds": round(float(trials.seconds.sum()), 3) if "seconds" in trials else None,
        "modules": _modules(),
        "written": now.isoformat(timespec="seconds"),
    }


def _inputs(figure: Figure, store: Path) -> dict[str, str]:
    """Return the states of the figure's inputs outside the project: code of other packages, and data
    files.
    """
    inputs.note_sources(inputs.modules_of([figure, *compiled.found]))
    for x in compiled.found:
        if hasattr(x, "load"):
            inputs.data_states(x() if isinstance(x, type) else x, store)
    for name in figure.parameters():
        x = getattr(figure, name)
        if isinstance(x, str) and Path(x).is_file():
            path = str(Path(x).resolve())
            inputs.seen[path] = inputs.state(path, store)
    return dict(inputs.seen)


def _modules() -> list[str]:
    """Return the loaded source files of the workbench and of the project, by their paths."""
    loaded = {x: hasattr(module, "__path__") for x, module in list(sys.modules.items())}
    own = [x for x in loaded if x.partition(".")[0] in ("workbench", "experiments")]
    return sorted(f"{x.replace('.', '/')}{'/__init__' * loaded[x]}.py" for x in own)
