"""What things are called and how they look: one colour and mark a series, one label a column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import pandas as pd

COLUMN_WIDTH, PAGE_WIDTH = 3.4, 7.0  # inches: one column of a paper, and both


RC_PARAMS = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "legend.fontsize": 7.5,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
    "pdf.fonttype": 42,
}


SUMMARIES = {  # series in words: colour, marker
    "geometric": ("#000000", "o"),
    "filter": ("#0072B2", "s"),
    "one-sided filter": ("#56B4E9", "D"),
    "threshold": ("#E69F00", "^"),
    "priority": ("#D55E00", "v"),
    "filter-priority": ("#009E73", "P"),
    "uniform": ("#CC79A7", "X"),
    "count sketch": ("#999933", "d"),
    "ALP": ("#882255", "*"),
    "stability histogram": ("#332288", "p"),
    "Dirichlet synthesis": ("#AA4499", "h"),
    "lean synthesis": ("#661100", "H"),
}


HISTOGRAMS = {  # of Hay et al., never beside the above: the same looks serve again
    "truth": ("#999999", "."),
    "S̃": ("#999933", "H"),
    "S̃ᵣ": ("#56B4E9", "d"),
    "S̄": ("#332288", "p"),
    "L̃": ("#000000", "o"),
    "H̃": ("#E69F00", "^"),
    "H̄": ("#0072B2", "s"),
    "H̄ by nodes": ("#D55E00", "v"),
    "H̄ not zeroed": ("#CC79A7", "D"),
    "non-negative H̄": ("#117733", "*"),
    "HB": ("#882255", "X"),
    "Privelet": ("#009E73", "P"),
    "equi-depth": ("#AA4499", "h"),
}


SYNTHESES = {  # of records in a hierarchy
    "source": ("#000000", "."),
    "resample": ("#000000", "o"),
    "second release": ("#D55E00", "v"),
    "direct synthesis": ("#0072B2", "s"),
    "improved histogram": ("#E69F00", "^"),
    "basic histogram": ("#CC79A7", "X"),
    "PrivTree": ("#009E73", "P"),
}


PRIORS = {  # of past answers
    "no prior": ("#0072B2", "s"),
    "with prior": ("#D55E00", "o"),
    "bought": ("#56B4E9", "D"),
}


SAMPLINGS = {  # of records of users, and what they are compared with
    "original": ("#000000", "o"),
    "SRA": ("#0072B2", "s"),
    "HPA": ("#D55E00", "v"),
    "LPA": ("#CC79A7", "X"),
    "DFT": ("#E69F00", "^"),
    "GS": ("#009E73", "P"),
}


PUBLISHED = {  # from noisy marginals, or tuple by tuple
    "maximum entropy": ("#0072B2", "s"),
    "SGD as printed": ("#56B4E9", "D"),
    "retention": ("#D55E00", "v"),
    "flipping": ("#E69F00", "^"),
    "noisy marginals": ("#999999", "."),
    "everyone alike": ("#999999", "X"),
    "kernel PCA": ("#009E73", "P"),
}


SERIES_STYLES = SUMMARIES | HISTOGRAMS | SYNTHESES | SAMPLINGS | PRIORS | PUBLISHED


_DOTTED = {
    "non-negative H̄",
    "HB",
    "Privelet",
    "PrivTree",
}  # beside what a paper draws, of later years


COLORMAP = "cividis_r"  # of cells


MAX_MARKERS = 60  # points of a curve, from which marks would hide it


_SPARE = [*zip(mpl.color_sequences["petroff10"], "phd<>*8HoX", strict=True)]  # for other names


# of one look drawn repeatedly
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (1, 3)))


THEORY_DASHES = (5, 2), (1.5, 1.5), (8, 2, 1.5, 2), (3, 4)  # of theory


MECHANISM_NAMES = {  # mechanisms in words
    "GeometricHistogram": "geometric",
    "HighPassFilter": "filter",
    "ThresholdSampling": "threshold",
    "PrioritySampling": "priority",
    "UniformSampling": "uniform",
    "CountSketch": "count sketch",
    "StabilityHistogram": "stability histogram",
    "DirichletSynthesis": "Dirichlet synthesis",
    "BasicAdaptiveHistogram": "basic histogram",
    "ImprovedAdaptiveHistogram": "improved histogram",
    "DirectSynthesis": "direct synthesis",
    "FPA": "DFT",
    "Dyadic()": "dyadic",
    "Dyadic(split='geometric')": "weighted dyadic",
    "Haar()": "Haar",
}


SYMBOLS = {"epsilon": "ε", "delta": "δ", "theta": "θ", "tau": "τ", "size": "s"}


AXIS_LABELS = {  # columns and metrics, as axes call them
    "epsilon": "ε",
    "theta": "θ (counts)",
    "tau": "τ (counts)",
    "size": "summary size (cells)",
    "released": "summary size (cells)",
    "query_size": "query size (cells)",
    "share": "query size (of all cells)",
    "density": "non-empty cells (of all cells)",
    "mean": "mean count of a non-empty cell",
    "seconds": "time (s)",
    "throughput": "non-empty cells a second",
    "MeanAbsoluteError": "absolute error (counts)",
    "MeanSignedError": "estimate − truth (counts)",
    "MedianRelativeError": "median relative error",
    "HeldCells": "true cells released",
    "ErrorRatio": "error (geometric = 1)",
    "MeanSquaredError": "squared error (counts²)",
    "PriorShare": "share of the prior",
    "depth": "rows of the sketch, d",
    "bytes": "size (bytes)",
    "ErrorCut": "error cut by\nconsistency",
    "SquaredError": "squared error (counts²)",
    "Count": "count",
    "position": "position in the sequence",
    "records": "records, N",
    "distinct": "distinct counts, d",
    "cells": "cells, n",
    "levels": "levels of the tree, ℓ",
    "VarianceRatio": "error(H̃) / error(H̄)",
    "WorstError": "worst error of a range (counts)",
    "Usefulness": "worst error over N",
    "EarthMover": "earth mover's distance\n(records × side)",
    "NodeError": "mean error (noise scales)",
    "down_to": "levels, from the root to",
    "node_level": "level of the node",
    "km": "distance to work (km)",
    "CommuteCDF": "commuters (of all)",
    "StructuralLoss": "loss (ε of a decision)",
    "TreeLoss": "loss (ε of the tree)",
    "discount": "discount, t (records)",
    "splits": "splits on a path",
    "fanout": "children of a node, k",
    "Recovered": "recovered records",
    "RealFraction": "real among synthetic strings",
    "log": "log₂ of the frequency",
    "rest": "20 − log₂ of the frequency",
    "frequency": "frequency (records)",
    "least": "appearances, at least",
    "l": "records kept of a user, l",
    "kept": "records kept of a user, l or M",
    "top": "places on the list, K",
    "rank": "users, the most active first",
    "place": "place on the true list",
    "Records": "records of a user",
    "StoredRecords": "records",
    "BestFactor": "best l (records)",
    "MeanSquaredCountError": "squared error (records²)",
    "KLDivergence": "KL divergence (nats)",
    "TopPrecision": "precision",
    "SampledSize": "records kept",
    "ContextShare": "records (of all)",
    "alpha": "α (tuples)",
    "RMSE": "RMSE (tuples)",
    "JointError": "error, cut at 1",
    "dims": "attributes of a query, k",
    "queries": "past queries, m",
    "query": "queries, by their true answers",
    "universe": "universe (cells)",
    "tuples": "tuples",
    "ProcessorTime": "processor time (s)",
    "Price": "further ε",
    "error": "error asked for (tuples)",
    "Density": "records per km²",
    "ExpectedError": "expected error (counts)",
    "WorstRMSE": "error at worst, RMS (counts)",
    "looks": "looks at the table",
    "TotalEpsilon": "ε of all looks together",
    "Nodes": "nodes released",
    "side": "side of a box (km)",
}


PERCENT_COLUMNS = {
    "share",
    "density",
    "MedianRelativeError",
    "HeldCells",
    "ErrorCut",
    "PriorShare",
    "Usefulness",
    "CommuteCDF",
    "Recovered",
    "RealFraction",
    "TopPrecision",
    "SampledSize",
    "ContextShare",
}  # shown in per cent


FROM_0_TO_1 = {"TopPrecision", "JointError"}


with_style = mpl.rc_context(RC_PARAMS)


def series_style(name: str, drawn: Sequence[str]) -> tuple[str, str, Any]:
    """Colour, marker and dashes of a series; one like those `drawn` already gets other dashes."""
    words, drawn = str(name).split(",")[0], [label.split(",")[0] for label in drawn]
    if words not in SERIES_STYLES:
        strange = list(
            dict.fromkeys(w for w in drawn if w not in SERIES_STYLES and w[:1] != "_")
        )
        place = strange.index(words) if words in strange else len(strange)
        color, marker = _SPARE[place % len(_SPARE)]
    else:
        color, marker = SERIES_STYLES[words]
    again = drawn.count(words)
    dashes = ":" if words in _DOTTED and not again else _DASHES[again % len(_DASHES)]
    return color, marker, dashes


def name_series(rows: pd.DataFrame, *told: str) -> pd.DataFrame:
    """The rows with a column `series`: each mechanism in words, its basis, the parameters `told`.

    >>> rows = pd.DataFrame({"mechanism": ["PrioritySampling"], "theta": [40.0], "size": [1e5]})
    >>> named(rows, "theta", "size").series[0]
    'filter-priority, θ = 40, s = 100,000'
    """

    def words(row) -> str:
        name, inner = row["mechanism"], ""
        if name.startswith("Laborious("):
            name, inner = name[10:-1], "laborious "
        name = MECHANISM_NAMES.get(name, name)
        if name in ("threshold", "priority") and row.get("theta", 0) > 0:
            name = f"filter-{name}"
        if row.get("sides", 2) == 1:
            name = f"one-sided {name}"
        basis = row.get("transform") or ""
        said = [MECHANISM_NAMES.get(basis, basis), "consistent" * bool(row.get("consistent"))]
        said += [f"{SYMBOLS.get(p, p)} = {row[p]:,g}" for p in told if row.get(p, 0) > 0]
        return ", ".join([inner + name, *filter(None, said)])

    known = ("mechanism", "theta", "sides", "transform", "consistent")
    kinds = [c for c in (*known, *told) if c in rows]
    kinds = list(dict.fromkeys(kinds))
    names = {key: words(dict(zip(kinds, key, strict=True))) for key in _keys(rows[kinds])}
    return rows.assign(series=[names[key] for key in _keys(rows[kinds])])


def _keys(frame: pd.DataFrame) -> list[tuple]:
    """Rows as tuples that find themselves again: without NaN."""
    columns = [[None if x != x else x for x in frame[c]] for c in frame]
    absent = [{"mechanism": ""}.get(c, 0) for c in frame]
    return [
        tuple(a if x is None else x for x, a in zip(row, absent, strict=True))
        for row in zip(*columns, strict=True)
    ]


def metric_name(rows: pd.DataFrame, value: str = "value") -> str:
    """What the column `value` holds: the rows' one metric, or what the column is called."""
    if value != "value" or "metric" not in rows:
        return value
    metrics = rows.metric.unique()
    if len(metrics) > 1:
        raise ValueError(f"rows mix the metrics {', '.join(metrics)}: choose one a panel")
    return metrics[0]
