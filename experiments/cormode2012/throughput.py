"""How figures of Cormode et al. 2012 measure throughput: whole releases, in turns, on one core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from statistics import median

from experiments.benchmarks._timing import machine, seconds_in_turns
from workbench.compiled import pd
from workbench.datasets import GaussianSparse
from workbench.trials import mechanism_columns
from workbench.trials.claims import Finding
from workbench.value import format_number


def throughput_rows(
    dataset: GaussianSparse, n: int, calls: Mapping[object, Callable], repeat: int
) -> pd.DataFrame:
    """One row a call, by mechanism or name: throughput on `dataset`, with n non-empty cells.

    Times are processor times, the best of `repeat`; they are never kept, since machines differ.
    """
    columns = {
        "dataset": repr(dataset),
        "truth_public": dataset.truth_public,
        "m": dataset.m,
        "density": dataset.density,
        "nonempty": n,
        "metric": "throughput",
        "repeated": repeat,
        "machine": machine(),
    }
    rows = []
    taken = seconds_in_turns(*calls.values(), repeat=repeat)
    for way, seconds in zip(calls, taken, strict=True):
        named = isinstance(way, str)
        description = (
            dict(mechanism=way, mechanism_name=way) if named else mechanism_columns(way)
        )
        times = {
            "seconds": min(seconds),
            "median_seconds": median(seconds),
            "value": n / min(seconds),
            "trial": f"{way!r} on {dataset!r}",
        }
        rows.append(columns | description | times)
    return pd.DataFrame(rows).assign(series=[row["mechanism_name"] for row in rows])


def throughput_over(rows: pd.DataFrame, base: str, columns: str | list[str]) -> pd.DataFrame:
    """Throughput in units of that of series `base`: a row a method, a column for each of `columns`."""
    throughput = rows.pivot_table(
        "value", "series", columns, sort=False, observed=True, aggfunc="first"
    )
    return throughput / throughput.loc[base]


def span(times: pd.Series) -> str:
    """The least and the greatest of several factors."""
    low = format_number(times.min())
    high = format_number(times.max())
    return f"{low}×" if low == high else f"{low}–{high}×"


def if_timed(finding: Finding, rows: pd.DataFrame, least: int) -> Finding:
    """A finding about times, undecided if they are the best of too few."""
    repeated = rows[rows.metric == "throughput"].repeated.min()
    if repeated >= least:
        return finding
    return replace(finding, holds=None, why=f"the best of {repeated:g} only, {least} decide")
