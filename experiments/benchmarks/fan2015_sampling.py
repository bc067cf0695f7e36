"""Releases from some records of each user, against the shortest forms of polars and pandas.

At full size (a Netflix of 100,480,507 made-up ratings) against the clock and memory, in processes of
their own; a slice of 10⁷ ratings with the peers in one run.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
import polars as pl

from experiments.benchmarks import _timing as timing
from workbench import DP, UNBOUNDED, Domain, Interactions
from workbench.datasets import InteractionsTwin
from workbench.mechanisms import HPA, SRA

TWIN = InteractionsTwin.netflix()
L, D = 10, 1
LOAD, RANDOM, PICKED, MEMORY = 6, 3, 5, 4  # seconds, and GB
NAMED = dict(user="user", item="item", context="context")


def main():
    """Processor time beside the peers, then seconds and memory at full size."""
    data = TWIN.slice(47_789).load()
    frame = pd.DataFrame({"user": data.users, "item": data.items, "context": data.contexts})
    table = pl.from_pandas(frame)
    rows = []
    for name, ours, theirs, least in (
        ("SRA", SRA(DP(1.0), L), (polars_random, polars_shuffled, pandas_random), (3, 3, 10)),
        ("HPA", HPA(DP(1.0), L, D), (polars_picked, pandas_picked), (3, None)),
    ):
        peers = [partial(f, frame if "pandas" in f.__name__ else table) for f in theirs]
        own, *spent = timing.median_seconds(partial(ours, data), *peers, repeat=3, cold=peers)
        for peer, time, limit in zip(theirs, spent, least, strict=True):
            rows.append(
                {
                    "what": f"{name} of {len(data):,} records, l = {L}",
                    "ours": f"{timing.seconds(own)}, {own / len(data) * 1e9:.3g} ns a record",
                    "peer": f"{peer.__doc__} {timing.seconds(time)}",
                    "ratio": time / own,
                }
                | ({"limit": f"≥ {limit}×", "met": time / own >= limit} if limit else {})
            )
    return timing.to_frame([*rows, *full_size()])


def full_size() -> list[dict]:
    """Seconds on the clock and peak memory of a process that loads and releases."""
    with tempfile.TemporaryDirectory() as home:
        path = str(Path(home) / "ratings.parquet")
        for step in ("made", "measured"):
            code = (
                f"from experiments.benchmarks import fan2015_sampling as b; b.{step}({path!r})"
            )
            told = subprocess.run(
                [sys.executable, "-c", code], check=True, capture_output=True, text=True
            ).stdout
    found = json.loads(told)
    about = f"{TWIN.records:,} records"
    return [
        {
            "what": f"{what}, {about}",
            "ours": f"{found[name]:.3g} {unit}",
            "limit": f"≤ {limit} {unit}",
            "met": found[name] <= limit,
        }
        for what, name, unit, limit in (
            ("load from Parquet", "load", "s", LOAD),
            ("first SRA release", "SRA", "s", RANDOM),
            ("HPA release", "HPA", "s", PICKED),
            ("peak memory of all that", "peak", "GB", MEMORY),
        )
    ]


def made(path: str, twin: InteractionsTwin = TWIN) -> None:
    """Write a twin, with a column that nobody asked for."""
    data = twin.load()
    stars = (data.items % 5 + 1).astype(np.int8)
    columns = {"user": data.users, "item": data.items, "context": data.contexts, "stars": stars}
    pl.DataFrame(columns).write_parquet(path)


def measured(path: str) -> None:
    """Print seconds and GB, after everything was compiled on a little."""
    import resource

    mechanisms = SRA(DP(1.0), L), HPA(DP(1.0), L, D)
    domain = Domain(("item", "context"), TWIN.domain.shape)  # contexts as codes
    told = NAMED | {"domain": domain, "bound": UNBOUNDED}
    made(little := path + ".little", replace(TWIN.slice(100), items=TWIN.items, once=False))
    for mechanism in mechanisms:
        mechanism(Interactions.from_parquet(little, **told))
    found, start = {}, perf_counter()
    data = Interactions.from_parquet(path, **told)
    found["load"] = perf_counter() - start
    for mechanism in mechanisms:
        start = perf_counter()
        mechanism(data)
        found[type(mechanism).__name__] = perf_counter() - start
    found["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9
    print(json.dumps(found))


def polars_random(table: pl.DataFrame):
    """polars shuffle over users"""
    kept = table.filter(pl.int_range(pl.len()).shuffle().over("user") < L)
    return _polars_counts(kept)


def polars_shuffled(table: pl.DataFrame):
    """polars sample, head of each group"""
    kept = table.sample(fraction=1, shuffle=True).group_by("user").head(L)
    return _polars_counts(kept)


def polars_picked(table: pl.DataFrame):
    """polars shuffle, then rank over users"""
    few = table.filter(pl.int_range(pl.len()).shuffle().over("user") < D)
    counts = few.group_by("item").len("score")
    scored = table.join(counts, on="item", how="left").with_columns(
        pl.col("score").fill_null(0)
    )
    best = pl.col("score").rank("random", descending=True).over("user")
    return _polars_counts(scored.filter(best <= L))


def _polars_counts(kept: pl.DataFrame):
    return _noisy(kept.group_by("item").len()["len"]), _noisy(
        kept.group_by("item", "context").len()["len"]
    )


def pandas_random(frame: pd.DataFrame):
    """pandas sample, head of each group"""
    kept = frame.sample(frac=1).groupby("user").head(L)
    return _pandas_counts(kept)


def pandas_picked(frame: pd.DataFrame):
    """pandas sort by popularity, head of each group"""
    shuffled = frame.sample(frac=1)
    counts = shuffled.groupby("user").head(D)["item"].value_counts()
    score = shuffled["item"].map(counts).fillna(0)
    kept = shuffled.assign(score=score).sort_values("score", ascending=False)
    return _pandas_counts(kept.groupby("user").head(L))


def _pandas_counts(kept: pd.DataFrame):
    return _noisy(kept.groupby("item").size()), _noisy(kept.groupby(["item", "context"]).size())


def _noisy(counts):
    """What a few lines of numpy do: noise on the cells that are there, in floating point."""
    counts = np.asarray(counts)
    return counts + np.random.default_rng().laplace(0, 2 * L, counts.shape)


if __name__ == "__main__":
    timing.print_results(main)
