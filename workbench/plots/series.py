"""Series: what each is called, and its colour, marker and dashes, the same in every figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import matplotlib as mpl

from workbench.plots.labels import SYMBOLS

if TYPE_CHECKING:
    import pandas as pd

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
}  # of later years than the paper beside

_OTHER_STYLES = [*zip(mpl.color_sequences["petroff10"], "phd<>*8HoX", strict=True)]

# of one colour and marker drawn repeatedly
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (1, 3)))

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


class SeriesStyle(NamedTuple):
    """How a series is drawn."""

    color: str
    marker: str
    dashes: Any


def series_style(name: str, drawn: Sequence[str]) -> SeriesStyle:
    """The style of a series; one like those `drawn` already gets other dashes."""
    kind = str(name).split(",")[0]
    drawn_kinds = [label.split(",")[0] for label in drawn]
    if kind in SERIES_STYLES:
        color, marker = SERIES_STYLES[kind]
    else:
        others = [k for k in drawn_kinds if k not in SERIES_STYLES and not k.startswith("_")]
        others = list(dict.fromkeys(others))
        place = others.index(kind) if kind in others else len(others)
        color, marker = _OTHER_STYLES[place % len(_OTHER_STYLES)]
    times = drawn_kinds.count(kind)
    if kind in _DOTTED and not times:
        return SeriesStyle(color, marker, ":")
    return SeriesStyle(color, marker, _DASHES[times % len(_DASHES)])


def name_series(rows: pd.DataFrame, *parameters: str) -> pd.DataFrame:
    """Rows with a column `series`: each mechanism in words, with its transform and `parameters`.

    Parameters
    ----------
    rows : DataFrame
        With the columns that a sweep gives, `mechanism` and the mechanisms' fields.
    *parameters : str
        Columns whose values belong to the name, where they are above 0.

    Returns
    -------
    DataFrame
        The same rows with the column `series`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"mechanism": ["PrioritySampling"], "theta": [40.0], "size": [1e5]})
    >>> name_series(rows, "theta", "size").series[0]
    'filter-priority, θ = 40, s = 100,000'
    """
    columns = ("mechanism", "theta", "sides", "transform", "consistent", *parameters)
    present = [column for column in dict.fromkeys(columns) if column in rows]
    kinds = list(zip(*(_values(rows[column]) for column in present), strict=True))
    names = {
        kind: _name(dict(zip(present, kind, strict=True)), parameters) for kind in set(kinds)
    }
    return rows.assign(series=[names[kind] for kind in kinds])


def _values(column: pd.Series) -> list[Any]:
    """The values of a column, without missing ones, which differ from themselves."""
    missing = "" if column.name == "mechanism" else 0
    return [missing if x is None or x != x else x for x in column]


def _name(kind: Mapping[str, Any], parameters: Sequence[str]) -> str:
    """The name of one mechanism, its values by column."""
    class_name = kind["mechanism"]
    laborious = class_name.startswith("Laborious(")
    if laborious:
        class_name = class_name.removeprefix("Laborious(").removesuffix(")")
    name = MECHANISM_NAMES.get(class_name, class_name)
    if name in ("threshold", "priority") and kind.get("theta", 0) > 0:
        name = f"filter-{name}"
    if kind.get("sides", 2) == 1:
        name = f"one-sided {name}"
    if laborious:
        name = f"laborious {name}"
    parts = [name]
    transform = kind.get("transform")
    if transform:
        parts.append(MECHANISM_NAMES.get(transform, transform))
    if kind.get("consistent"):
        parts.append("consistent")
    shown = [p for p in parameters if kind.get(p, 0) > 0]
    parts += [f"{SYMBOLS.get(p, p)} = {kind[p]:,g}" for p in shown]
    return ", ".join(parts)
