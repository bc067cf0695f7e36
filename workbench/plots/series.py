"""Series: what each is called, and its colour, marker and dashes, the same in every figure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple

from workbench.libraries import mpl
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
    "H̄ by leaves": ("#661100", "<"),
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

# of later years than the paper beside, or what no author can have meant
_DOTTED = {"non-negative H̄", "HB", "Privelet", "PrivTree", "H̄ by leaves"}

_MARKERS = "phd<>*8HoX"

# of one colour and marker drawn repeatedly
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (1, 3)))


class SeriesStyle(NamedTuple):
    """How a series is drawn."""

    color: str
    marker: str
    dashes: Any


def series_style(name: str, drawn: Sequence[str]) -> SeriesStyle:
    """The style of a series: like none of those `drawn` already, and its own where it is one of them."""
    labels = [str(label) for label in drawn if not str(label).startswith("_")]
    given: dict[str, SeriesStyle] = {}
    taken: set[SeriesStyle] = set()
    others: list[str] = []
    for label in dict.fromkeys([*labels, str(name)]):
        kind = label.split(",")[0]
        if kind not in SERIES_STYLES and kind not in others:
            others.append(kind)
        free = (style for style in _styles(label, others) if style not in taken)
        given[label] = next(free)
        taken.add(given[label])
    return given[str(name)]


def _styles(label: str, others: list[str]) -> Iterator[SeriesStyle]:
    """The styles of a series' kind, its usual one first; those after it have other dashes, then marks."""
    kind = label.split(",")[0]
    if kind in SERIES_STYLES:
        color, usual = SERIES_STYLES[kind]
    else:
        place = others.index(kind) % len(_MARKERS)
        color = mpl.color_sequences["petroff10"][place]
        usual = _MARKERS[place]
    if label in _DOTTED:  # dashes of one kind that is drawn several times tell those apart
        yield SeriesStyle(color, usual, ":")
    for marker in (usual, *_MARKERS):
        for dashes in _DASHES:
            yield SeriesStyle(color, marker, dashes)
    for number in count(3):
        yield SeriesStyle(color, usual, (0, (number, 1)))


def name_series(
    rows: pd.DataFrame, *parameters: str, shown: Collection[str] = ()
) -> pd.DataFrame:
    """Rows with a column `series`: what each mechanism is called, and what of it varies.

    A mechanism is called what the column `mechanism_name` says, or else by its class. Added to the name
    are the `parameters`, and each field, ε and δ included, of which rows of that name have several
    values.

    Parameters
    ----------
    rows : DataFrame
        With the columns that a sweep gives; those that its `trial` names are the mechanism's fields.
    *parameters : str
        Columns whose values always belong to the name, unless they are 0.
    shown : collection of str
        Fields that an axis or panels show, so that names need not.

    Returns
    -------
    DataFrame
        The same rows with the column `series`.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"mechanism": "Mine", "epsilon": [0.5, 1.0], "k": 3})
    >>> text = "Trial(dataset=D(), mechanism=Mine(budget=DP(epsilon={}), k=3), seed=0)"
    >>> rows["trial"] = rows.epsilon.map(text.format)
    >>> list(name_series(rows).series)
    ['Mine, ε = 0.5', 'Mine, ε = 1']
    >>> list(name_series(rows, "k", shown=["epsilon"]).series)
    ['Mine, k = 3', 'Mine, k = 3']
    """
    names = rows.mechanism
    if "mechanism_name" in rows:
        names = rows.mechanism_name.fillna(names)
    names = names.fillna("")
    always = [parameter for parameter in parameters if parameter in rows]
    fields = [c for c in _mechanism_fields(rows) if c not in (*parameters, *shown)]
    several = rows[fields].groupby(names).nunique(dropna=False) > 1
    varying = {name: {c for c in fields if row[c]} for name, row in several.iterrows()}
    columns = [*always, *fields]
    kinds = list(zip(names, *(_values(rows[c]) for c in columns), strict=True))
    series = {}
    for name, *values in set(kinds):
        parts = [name]
        for column, x in zip(columns, values, strict=True):
            if x if column in always else column in varying[name]:
                parts.append(_value_text(column, x))
        series[name, *values] = ", ".join(filter(None, parts))
    return rows.assign(series=[series[kind] for kind in kinds])


def _mechanism_fields(rows: pd.DataFrame) -> list[str]:
    """The columns that the mechanisms' texts name, in the texts' order."""
    if "trial" not in rows:
        return []
    names: dict[str, None] = {}
    for trial in rows.trial.dropna().unique():
        mechanism = trial.partition(", mechanism=")[2].rpartition(", seed=")[0]
        names |= dict.fromkeys(re.findall(r"\b(\w+)=", mechanism))
    return [name for name in names if name in rows]


def _values(column: pd.Series) -> list[Any]:
    """The values of a column; None in place of missing ones, which may differ from themselves."""
    return [None if x is None or x != x else x for x in column]


def _value_text(column: str, x: Any) -> str:
    """A field and its value, as a name has them; nothing of one that is missing, or not so."""
    if x is None or isinstance(x, bool):
        return column if x else ""
    return f"{SYMBOLS.get(column, column)} = {x if isinstance(x, str) else format(x, ',g')}"
