"""What columns and metrics are called on axes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

SYMBOLS = {"epsilon": "ε", "rho": "ρ", "delta": "δ", "theta": "θ", "tau": "τ", "size": "s"}

AXIS_LABELS = {  # columns and metrics, as axes call them
    "OverEstimates": "over-estimates (of all)",
    "at": "how many",
    "epsilon": "ε",
    "theta": "θ (counts)",
    "relative_alpha": "α (deviations of the noise; αN/b)",
    "added": "new queries",
    "by_cells": "joints, the smallest first",
    "JointErrors": "Σ|p − p̃|",
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
    "exact worst": "squared error (counts²)",
    "Count": "count",
    "ErrorShare": "error of S̄ over S̃'s",
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
    "down_to": "deepest level",
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


def metric_name(rows: pd.DataFrame, value: str = "value") -> str:
    """What the column `value` holds: the rows' one metric, or what the column is called."""
    if value != "value" or "metric" not in rows:
        return value
    metrics = rows.metric.unique()
    if len(metrics) > 1:
        raise ValueError(f"rows mix the metrics {', '.join(metrics)}: choose one a panel")
    return metrics[0]
