"""Hay et al. 2010: rows of one dataset, and any two sets of rows compared seed by seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from experiments.hay2010.data import TWIN
from workbench.compiled import pd
from workbench.trials.claims import Finding, Intervals, MissingPoints, paired_ratios


def panel_of(rows: pd.DataFrame, name: str, suffix: str = "") -> pd.DataFrame:
    """The rows of a dataset's panel; of its twin's where there is no other."""
    for panel in (name + suffix, name + TWIN + suffix):
        own = rows[rows.panel == panel]
        if len(own):
            return own
    raise MissingPoints(f"no rows of {name}")


def ratios_between(
    ours: pd.DataFrame, other: pd.DataFrame, by: str | Sequence[str]
) -> Intervals:
    """How large the values of one set of rows are against another's, seed by seed, at each point."""
    by = [by] if isinstance(by, str) else [*by]
    named = {"ours": ours, "other": other}
    frames = [own[[*by, "seed", "value"]].assign(series=name) for name, own in named.items()]
    return paired_ratios(pd.concat(frames), "ours", "other", by)


def ratios_by_seed(
    rows: pd.DataFrame, ours: str, other: str, by: str | Sequence[str]
) -> pd.DataFrame:
    """Rows whose value is one series over another, a row a seed and point."""
    by = [by] if isinstance(by, str) else [*by]
    series = rows.pivot_table(index=[*by, "seed"], columns="series", values="value")
    return (series[ours] / series[other]).dropna().rename("value").reset_index()


def beside(finding: Finding, words: str) -> Finding:
    """The same finding, with what is measured and not judged."""
    return replace(finding, measured=f"{finding.measured}; beside it: {words}")
