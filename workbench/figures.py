"""Axes to files: a figure as PDF, SVG and PNG, its rows as CSV, and how to get them again.

A figure is a folder, `<results>/<profile>/<stem>/`, whose `manifest.json` is written last: a
folder without one holds no figure. The same rows give the same bytes (`SOURCE_DATE_EPOCH` stops
the manifest's clock too), so that a changed picture is a changed result.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import secrets
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PureWindowsPath
from types import ModuleType
from typing import TYPE_CHECKING, Any

from workbench import claims

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure as Drawing

PROFILES = ("quick", "paper")
FOLDERS = (*PROFILES, "explorer")  # folders of results; the last holds what panels export
IMAGES = ("pdf", "svg", "png")
DPI = 200  # of the PNG

# No clock and no random ids in the bytes; text in the PDF stays text.
_STYLE = {"svg.hashsalt": "workbench", "pdf.fonttype": 42}
_METADATA = {"pdf": {"CreationDate": None}, "svg": {"Date": None}, "png": {}}


@dataclass(frozen=True)
class Figure:
    """A saved figure, read back: what its folder holds and what its manifest says."""

    folder: Path
    manifest: dict[str, Any]
    rows: pd.DataFrame
    verdicts: pd.DataFrame

    @property
    def images(self) -> dict[str, Path]:
        """The pictures by kind: pdf, svg, png; empty where the result is a table."""
        names = {kind: f"{self.manifest['figure']}.{kind}" for kind in IMAGES}
        there = self.manifest["sha256"]
        return {kind: self.folder / name for kind, name in names.items() if name in there}


def figure_folder(results: str | Path, profile: str, stem: str) -> Path:
    """Where one figure lives; a ValueError if there is no such profile, or `stem` is not one name."""
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
    spec: ModuleType,
    profile: str,
    results: str | Path,
    verdicts: Sequence[claims.Verdict] = (),
) -> Path:
    """Write one figure's folder and return it; `fig` is None where the result is a table.

    `spec` is the experiments module: its name's last part, or its `STEM`, is the figure's, its
    `TITLE` the sentence over it, its `COMMAND` what makes it again, if that is not `reproduce`. Rows
    need a column `truth_public`, all of it true, because errors against a private truth are exact
    functions of it; rows without the column are taken only if the spec says `NO_DATA = True`: they
    are computed from formulas, and no dataset is read for them.
    """
    stem = getattr(spec, "STEM", spec.__name__.rpartition(".")[2])
    if "truth_public" not in rows:
        if getattr(spec, "NO_DATA", False) is not True:
            raise ValueError(
                f"figure {stem}: its rows do not say whether the truth is public; they need a column "
                "truth_public, or the spec NO_DATA = True where they rest on no dataset"
            )
    elif not rows.truth_public.eq(True).all():
        bad = rows[~rows.truth_public.eq(True)].iloc[0]
        raise ValueError(
            f"figure {stem}: rows of {bad.get('dataset', 'a dataset')} compare with a truth "
            "that is not public; they may not be saved (published data says truth_public=True)"
        )
    into = figure_folder(results, profile, stem)
    into.mkdir(parents=True, exist_ok=True)
    (into / "manifest.json").unlink(missing_ok=True)
    sums = {}
    for kind in IMAGES:
        path = into / f"{stem}.{kind}"
        if fig is None:
            path.unlink(missing_ok=True)  # of an earlier version of this figure
        else:
            sums[path.name] = write_atomically(path, partial(_draw, fig, kind))
    for name, frame in {"rows.csv": rows, "verdicts.csv": claims.to_frame(verdicts)}.items():
        put = partial(frame.to_csv, index=False, lineterminator="\n")
        sums[name] = write_atomically(into / name, put)
    manifest = _manifest(stem, spec, profile, rows) | {"sha256": sums}
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    write_atomically(
        into / "manifest.json", lambda path: path.write_text(text + "\n", encoding="utf-8")
    )
    return into


def load(folder: str | Path) -> Figure:
    """Read a figure's folder back; a ValueError if a file is not the one its manifest names."""
    import pandas as pd

    into = Path(folder)
    if not (into / "manifest.json").exists():
        raise FileNotFoundError(f"{into} holds no finished figure (no manifest.json)")
    manifest = json.loads((into / "manifest.json").read_text(encoding="utf-8"))
    for name, sha256 in manifest["sha256"].items():
        if _sha256(into / name) != sha256:
            raise ValueError(
                f"{into / name} is not the file that was saved; make it again with: "
                f"{manifest['command']} --force"
            )
    read = pd.read_csv(into / "verdicts.csv", dtype=str, keep_default_na=False)
    rows = pd.read_csv(into / "rows.csv", low_memory=False)  # a column's kind, from all of it
    return Figure(into, manifest, rows, read)


def write_atomically(path: Path, put: Callable[[Path], Any]) -> str:
    """Let `put` fill a temporary file, then give it its name; returns its sha256.

    A reader sees the old file or the new one, never half of one.
    """
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        put(draft)
        sha256 = _sha256(draft)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return sha256


def versions(*packages: str) -> dict[str, str]:
    """The versions that decide a number: ours, Python's, and those of `packages`."""
    named = {name: importlib.metadata.version(name) for name in packages}
    ours = importlib.metadata.version("dp-workbench")
    return {"workbench": ours, "python": platform.python_version()} | named


def _draw(fig: Drawing, kind: str, path: Path) -> None:
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        fig.savefig(path, format=kind, dpi=DPI, metadata=_METADATA[kind])


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _manifest(stem: str, spec: ModuleType, profile: str, rows: pd.DataFrame) -> dict[str, Any]:
    def distinct(column: str) -> list:
        return sorted(rows[column].dropna().unique().tolist()) if column in rows else []

    trials = rows.drop_duplicates("trial") if "trial" in rows else rows
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch else datetime.now(UTC)
    return {
        "figure": stem,
        "title": spec.TITLE,
        "paper": stem.partition("_")[0],
        "profile": profile,
        "datasets": distinct("dataset"),
        "by_theorem": distinct("by_theorem"),
        "trials": len(trials),
        "seeds": len(distinct("seed")),
        "seconds": round(float(trials.seconds.sum()), 3) if "seconds" in trials else None,
        "versions": versions("numpy", "scipy", "matplotlib"),
        "commit": _commit(),
        "command": getattr(spec, "COMMAND", f"workbench reproduce {stem} --profile {profile}"),
        "written": now.isoformat(timespec="seconds"),
    }


def _commit() -> str | None:
    """The commit the sources stand on, and whether they had changed since; None outside git."""
    root = Path(__file__).resolve().parents[1]

    def git(*words: str) -> str:
        command = ["git", "-C", str(root), *words]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
        return done.stdout.strip()

    try:
        if not (root / ".git").exists():
            return None
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + " with changes" * bool(changed)
    except (OSError, subprocess.SubprocessError):
        return None
