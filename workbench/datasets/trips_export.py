"""Simulated table of trips with typical faults, for example missing ages. Documentation pages and notebooks
use it to show how to publish such a table.

The table is not meant for experiments.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from workbench.compiled import pd

TOWNS = {
    "Bern": "BE", "Thun": "BE", "Biel": "BE", "Chur": "GR", "Davos": "GR", "Zürich": "ZH",
    "Winterthur": "ZH", "Uster": "ZH", "Basel": "BS", "Genf": "GE", "St. Gallen": "SG", "Wil, SG": "SG",
}  # fmt: skip
_ABROAD = ("Konstanz", "Lörrach", "???")  # in no canton
_MONTH = 31


def write_trips_export(folder: str | Path, rows: int = 60_000, seed: int = 0) -> Path:
    """Write two files for examples: a simulated table of trips (`trips.csv`), and a public list of towns with
    their cantons (`cantons.csv`).

    Each row of `trips.csv` is a trip, and some riders have very many trips. The columns are `rider`,
    `started` (a time such as 01.03.2026 08:15, or empty), `town` (some towns are abroad), `age` (some ages
    are missing or impossible), `fare`, and `note` (free text).

    Parameters
    ----------
    folder : path
        Folder for the two files. It must exist.
    rows : int
        Number of trips. Default 60,000.
    seed : int
        Seed of the simulation. Equal seeds give equal tables. Default 0.

    Returns
    -------
    Path
        Path of `trips.csv`.
    """
    rng = np.random.default_rng(seed)
    many = rows // 6
    frequent = np.minimum(rng.zipf(1.5, rows), many) - 1
    riders = np.where(rng.random(rows) < 0.2, frequent, rng.integers(0, many, rows))
    towns = np.array([*TOWNS, *_ABROAD])
    popularity = 1 / np.arange(1.0, len(towns) + 1)
    home = rng.choice(len(towns), rows, p=popularity / popularity.sum())
    elsewhere = rng.random(rows) < 0.3
    place = np.where(elsewhere, home, home[riders])
    day = rng.integers(1, _MONTH + 1, rows)
    hour = np.where(
        rng.random(rows) < 0.6, rng.choice([7, 8, 17], rows), rng.integers(0, 24, rows)
    )
    minute = rng.integers(0, 60, rows)
    times = [f"{d:02}.03.2026 {h:02}:{m:02}" for d, h, m in zip(day, hour, minute, strict=True)]
    ages = (17 + rng.integers(0, 75, rows))[riders]
    table = pd.DataFrame(
        {
            "rider": [f"r{number:05}" for number in riders],
            "started": np.where(rng.random(rows) < 0.01, "", times),
            "town": towns[place],
            "age": np.where(rng.random(rows) < 0.05, "", ages.astype(str)),
            "fare": np.round(rng.gamma(2.0, 4.0, rows), 2),
            "note": rng.choice(["", 'said "late", and left', "ok"], rows),
        }
    )
    table.loc[rng.random(rows) < 0.001, "age"] = "199"
    folder = Path(folder)
    cantons = pd.DataFrame({"town": [*TOWNS], "canton": [*TOWNS.values()]})
    cantons.to_csv(folder / "cantons.csv", index=False)
    path = folder / "trips.csv"
    table.to_csv(path, index=False)
    return path
