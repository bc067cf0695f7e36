"""Results of runs with the paper profile: verdicts and small pictures that are in the repository, and the
README's list of papers.

To update a paper after `workbench reproduce --profile paper`, type `python -m experiments.verdicts
cormode2012`.
"""

from __future__ import annotations

import re
from pathlib import Path

from workbench import figures
from workbench.compiled import pd
from workbench.figures.stories import THUMBNAILS, write_thumbnail
from workbench.trials import claims

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "experiments" / "results"
COLUMNS = (
    "id claim figure datasets files outcome mark says page measured why by_value profile commit"
)
README = ROOT / "README.md"
PAPERS = ("cormode2012", "hay2010", "adaptive2009", "fan2015", "chen2012")
GENERATED = re.compile(r"(<!-- summary -->\n).*?(\n<!-- end -->)", re.S)


def collect(paper: str, results: Path | str = RESULTS, profile: str = "paper") -> pd.DataFrame:
    """Return the verdicts of all finished figures of a paper, sorted by claim."""
    frames = []
    for manifest in sorted(Path(results).glob(f"{profile}/{paper}_*/manifest.json")):
        figure = figures.load(manifest.parent)
        columns = {name: figure.manifest[name] for name in ("figure", "profile", "commit")}
        columns |= {"datasets": "; ".join(figure.manifest["datasets"])}
        files = figure.manifest["files"].items()
        columns |= {"files": "; ".join(f"{name} (sha256 {sha[:16]})" for name, sha in files)}
        frames.append(figure.verdicts.assign(**columns))
    if not frames:
        raise FileNotFoundError(
            f"{results} holds no {profile} figures of {paper}; run: "
            f"workbench reproduce --profile {profile}"
        )
    return pd.concat(frames)[COLUMNS.split()].sort_values(["id", "figure"], ignore_index=True)


def write(paper: str, results: Path | str = RESULTS, into: Path | None = None) -> Path:
    """Write the verdicts of a paper to `<paper>.csv`, by default in this package's folder. Return the path of
    this file.

    If `results` does not contain a figure, its verdicts in the repository are kept.
    """
    path = (into or Path(__file__).parent) / f"{paper}.csv"
    verdicts = collect(paper, results)
    if path.exists():
        before = committed(paper)
        others = before[~before.figure.isin(verdicts.figure)]
        both = pd.concat([verdicts, others])
        verdicts = both.sort_values(["id", "figure"], ignore_index=True)
    figures.write_atomically(
        path, lambda draft: verdicts.to_csv(draft, index=False, lineterminator="\n")
    )
    return path


def write_pictures(paper: str, results: Path | str = RESULTS, profile: str = "paper") -> None:
    """Write a small picture of each figure of a paper that a run has drawn."""
    for picture in sorted(Path(results).glob(f"{profile}/{paper}_*/{paper}_*.png")):
        if picture.stem == picture.parent.name:
            write_thumbnail(picture, ROOT / THUMBNAILS / picture.name)


def committed(paper: str) -> pd.DataFrame:
    """Return the verdicts of a paper that are in the repository, as text."""
    own = pd.read_csv(
        Path(__file__).with_name(f"{paper}.csv"), dtype=str, keep_default_na=False
    )
    return own.reindex(columns=COLUMNS.split(), fill_value="")


def findings(paper: str) -> list[tuple[claims.PaperFinding, str]]:
    """Return the findings of a paper, each with the outcome that follows from the verdicts in the
    repository.
    """
    file = ROOT / "experiments" / paper / "statements.toml"
    verdicts = committed(paper)
    return [(each, each.outcome(verdicts)) for each in claims.read_findings(file)]


def with_table(text: str) -> str:
    """Return the README's text with the present list of papers."""
    return GENERATED.sub(lambda found: found[1] + summary_table() + found[2], text)


def summary_table() -> str:
    """Return one line per paper, with the number of its findings that our results confirm, and one of these
    findings. The last line counts the statements.
    """
    lines = []
    for paper in PAPERS:
        found = findings(paper)
        agree = [each.says for each, end in found if end == "reproduces"]
        link = f"[{paper}](notebooks/{paper}/index.ipynb)"
        lines.append(f"- {link}, {len(agree)} of {len(found)}: {agree[0]}")
    total = claims.count_outcomes(pd.concat(map(committed, PAPERS)))
    told = (
        f"{claims.share_that_holds(total)}, {total['contradicted']} are contradicted, and "
        f"{total['holds for some unprinted value']} depend on settings that the papers do not print."
    )
    return "\n".join([*lines, "", told])
