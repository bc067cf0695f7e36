"""What notebooks left in their folders: an entry of the page each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from workbench import claims, figures, reproduction
from workbench.report.passages import read_passages


@dataclass
class Entry:
    """One notebook on the page: its figure, if it saved one, its words, how its run ended."""

    stem: str
    figure: figures.SavedFigure | None = None
    title: str = ""
    words: dict[str, str] = field(default_factory=dict)
    seconds: float | None = None
    failed: str = ""
    notebook: str | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many claims ended how, in the order of `claims.OUTCOMES`."""
        judged = self.figure.verdicts.outcome.tolist() if self.figure else []
        return {outcome: judged.count(outcome) for outcome in claims.OUTCOMES}

    @property
    def datasets(self) -> list[str]:
        """What the data is called, without its parameters."""
        configurations = self.figure.manifest["datasets"] if self.figure else []
        return list(dict.fromkeys(text.partition("(")[0] for text in configurations))

    @property
    def links(self) -> list[tuple[str, str]]:
        """What lies beside the page, as (name, relative address)."""
        files = []
        if self.figure:
            folder = self.figure.folder
            files += [(kind.upper(), path) for kind, path in self.figure.images.items()]
            files += [(f"{n} (CSV)", folder / f"{n}.csv") for n in ("rows", "verdicts")]
            files += [("manifest", folder / "manifest.json")]
            pages = sorted(folder.glob("*.html"))
            files += [(f"{page.stem} that moves (HTML)", page) for page in pages]
        links = [(name, f"{self.stem}/{path.name}") for name, path in files]
        return links + [("notebook", self.notebook)] * bool(self.notebook)


def collect(top: Path) -> list[Entry]:
    """Every notebook that has run or saved a figure under `top`, in natural order."""
    folders = {
        path.parent
        for name in ("manifest.json", "status.json")
        for path in top.glob(f"*/{name}")
    }
    return [
        _entry(folder)
        for folder in sorted(folders, key=lambda folder: natural_order(folder.name))
    ]


def _entry(folder: Path) -> Entry:
    entry = Entry(folder.name)
    status = reproduction.read_status(folder)
    entry.seconds = status.get("seconds")
    if status.get("state") == "failed":
        entry.failed = " — ".join(filter(None, (status["cell"], status["error"])))
    try:
        entry.figure = figures.load(folder)
        entry.title = entry.figure.manifest["title"]
    except FileNotFoundError:
        pass  # a tour saves no figure
    except (ValueError, KeyError) as e:
        entry.failed = entry.failed or str(e)
    names = [f"{folder.name}.ipynb", f"{folder.name}.partial.ipynb"]
    for name in reversed(names) if entry.failed else names:
        if (folder / name).exists():
            entry.notebook = f"{folder.name}/{name}"
            title, entry.words = read_passages(folder / name)
            entry.title = entry.title or title
            break
    entry.title = entry.title or folder.name
    return entry


def natural_order(name: str) -> list:
    """fig10 after fig9."""
    parts = re.split(r"(\d+)", name)
    return [(1, int(p), "") if p.isdigit() else (0, 0, p) for p in parts]
