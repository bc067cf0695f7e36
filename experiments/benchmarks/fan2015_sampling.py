"""Releases from some records of each user, against the shortest forms of polars and pandas.

At full size (a Netflix of 100,480,507 made-up ratings) against the clock and memory, in processes of
their own; a slice of 10⁷ ratings with the peers in one run.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from experiments.benchmarks._timing import (
    at_most,
    at_most_sorts,
    compared,
    in_process,
    median_seconds,
    once,
    peak_megabytes,
    row,
)
from workbench import DP, UNBOUNDED, Domain, Interactions
from workbench.compiled import pd
from workbench.datasets import InteractionsTwin
from workbench.mechanisms import HPA, SRA

TWIN = InteractionsTwin.netflix()
L = 10
D = 1
LIMITS = {  # what, sorts or GB
    "load": ("load from Parquet", 120, "s"),
    "SRA": ("first SRA release", 60, "s"),
    "HPA": ("HPA release", 100, "s"),
    "peak": ("peak memory of all that", 4, "GB"),
}
COLUMNS = dict(user="user", item="item", context="context")


def main():
    """Time beside the peers, then seconds and memory at full size."""
    data = TWIN.slice(47_789).load()
    frame = pd.DataFrame({"user": data.users, "item": data.items, "context": data.contexts})
    table = pl.from_pandas(frame)
    simple = {
        partial(polars_random, table): 3,
        partial(polars_shuffled, table): 3,
        partial(pandas_random, frame): 10,
    }
    picked = {partial(polars_picked, table): 3, partial(pandas_picked, frame): None}
    rows = _beside(SRA(DP(1.0), L), data, simple) + _beside(HPA(DP(1.0), L, D), data, picked)
    return [*rows, *full_size()]


def _beside(mechanism, data: Interactions, peers: dict) -> list[dict]:
    """A mechanism beside its peers, and how many times as long each of these should take."""
    ours, *times = median_seconds(partial(mechanism, data), *peers, repeat=3, cold=peers)
    what = f"{type(mechanism).__name__} of {len(data):,} records, l = {L}"
    return [
        compared(what, ours, seconds, peer.func.__doc__, least)
        for (peer, least), seconds in zip(peers.items(), times, strict=True)
    ]


def full_size() -> list[dict]:
    """Seconds on the clock and peak memory of a process that loads and releases."""
    with tempfile.TemporaryDirectory() as home:
        path = str(Path(home) / "ratings.parquet")
        in_process(write_twin, path)
        measured = json.loads(in_process(measure, path))
    rows = []
    for name, (what, limit, unit) in LIMITS.items():
        value = measured[name]
        met = at_most_sorts(value, limit) if unit == "s" else at_most(value, limit, f" {unit}")
        rows.append(row(f"{what}, {TWIN.records:,} records", f"{value:.3g} {unit}", **met))
    return rows


def write_twin(path: str, twin: InteractionsTwin = TWIN) -> None:
    """Write a twin, with a column that nobody asked for."""
    data = twin.load()
    stars = (data.items % 5 + 1).astype(np.int8)
    columns = {"user": data.users, "item": data.items, "context": data.contexts, "stars": stars}
    pl.DataFrame(columns).write_parquet(path)


def measure(path: str) -> None:
    """Print seconds and GB, after everything was compiled on a little."""
    mechanisms = (SRA(DP(1.0), L), HPA(DP(1.0), L, D))
    domain = Domain(("item", "context"), TWIN.domain.shape)  # contexts as codes
    read = partial(Interactions.read, domain=domain, bound=UNBOUNDED, **COLUMNS)
    write_twin(f"{path}.little", replace(TWIN.slice(100), items=TWIN.items, once=False))
    for mechanism in mechanisms:
        mechanism(read(f"{path}.little"))
    seconds, data = once(partial(read, path))
    measured = {"load": seconds}
    for mechanism in mechanisms:
        measured[type(mechanism).__name__], _ = once(partial(mechanism, data))
    print(json.dumps(measured | {"peak": peak_megabytes() / 1e3}))


def polars_random(table: pl.DataFrame):
    """polars shuffle over users"""
    return _polars_counts(table.filter(pl.int_range(pl.len()).shuffle().over("user") < L))


def polars_shuffled(table: pl.DataFrame):
    """polars sample, head of each group"""
    return _polars_counts(table.sample(fraction=1, shuffle=True).group_by("user").head(L))


def polars_picked(table: pl.DataFrame):
    """polars shuffle, then rank over users"""
    few = table.filter(pl.int_range(pl.len()).shuffle().over("user") < D)
    counts = few.group_by("item").len("score")
    scored = table.join(counts, on="item", how="left")
    scored = scored.with_columns(pl.col("score").fill_null(0))
    rank = pl.col("score").rank("random", descending=True).over("user")
    return _polars_counts(scored.filter(rank <= L))


def _polars_counts(sample: pl.DataFrame):
    items = sample.group_by("item").len()["len"]
    return _noisy(items), _noisy(sample.group_by("item", "context").len()["len"])


def pandas_random(frame: pd.DataFrame):
    """pandas sample, head of each group"""
    return _pandas_counts(frame.sample(frac=1).groupby("user").head(L))


def pandas_picked(frame: pd.DataFrame):
    """pandas sort by popularity, head of each group"""
    shuffled = frame.sample(frac=1)
    counts = shuffled.groupby("user").head(D)["item"].value_counts()
    score = shuffled["item"].map(counts).fillna(0)
    sorted_frame = shuffled.assign(score=score).sort_values("score", ascending=False)
    return _pandas_counts(sorted_frame.groupby("user").head(L))


def _pandas_counts(sample: pd.DataFrame):
    items = sample.groupby("item").size()
    return _noisy(items), _noisy(sample.groupby(["item", "context"]).size())


def _noisy(counts):
    """What a few lines of numpy do: noise on the cells that are there, in floating point."""
    counts = np.asarray(counts)
    return counts + np.random.default_rng().laplace(0, 2 * L, counts.shape)
