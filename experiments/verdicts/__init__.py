"""What paper-profile runs found, a CSV file a paper, committed.

After `workbench reproduce --profile paper`:  `python -m experiments.verdicts cormode2012`
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from workbench import figures

RESULTS = Path(__file__).parents[1] / "results"
COLUMNS = ["id", "figure", "datasets", "outcome", "measured", "why", "profile"]


def collect(paper: str, results: Path | str = RESULTS, profile: str = "paper") -> pd.DataFrame:
    """The verdicts of all finished figures of a paper, sorted by claim."""
    frames = []
    for manifest in sorted(Path(results).glob(f"{profile}/{paper}_*/manifest.json")):
        figure = figures.load(manifest.parent)
        columns = {"figure": figure.manifest["figure"], "profile": figure.manifest["profile"]}
        columns |= {"datasets": "; ".join(figure.manifest["datasets"])}
        frames.append(figure.verdicts.assign(**columns))
    if not frames:
        raise FileNotFoundError(
            f"{results} holds no {profile} figures of {paper}; run: "
            f"workbench reproduce --profile {profile}"
        )
    return pd.concat(frames)[COLUMNS].sort_values(["id", "figure"], ignore_index=True)


def write(paper: str, results: Path | str = RESULTS, into: Path | None = None) -> Path:
    """Write `<paper>.csv`, beside this file unless told otherwise; returns its path."""
    path = (into or Path(__file__).parent) / f"{paper}.csv"
    verdicts = collect(paper, results)
    figures.write_atomically(
        path, lambda draft: verdicts.to_csv(draft, index=False, lineterminator="\n")
    )
    return path
