"""The style of plots: sizes, fonts, names of columns, and colours of mechanisms."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, wraps
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple, ParamSpec, TypeVar
from unicodedata import normalize

import numpy as np

from workbench.compiled import mpl, pd

# Style

COLUMN_WIDTH = 3.4  # inches: one column of a paper
PAGE_WIDTH = 7.0  # and both
WIDTHS = {"column": COLUMN_WIDTH, "page": PAGE_WIDTH, "slide": 5.5}  # Beamer's slide, 16:9
SLIDE_HEIGHT = 2.9
_ON_SLIDE = 3  # panels
FONTS = {  # shipped here or with matplotlib, so that every machine draws the same
    "sans": ("Workbench Sans", "DejaVu Sans"),
    "serif": ("STIXGeneral", "DejaVu Serif", "DejaVu Sans"),
}

RC_PARAMS = {
    "font.size": 8.5,
    "axes.labelsize": 8.5,
    "axes.titlesize": 8.5,
    "figure.titlesize": 10,
    "figure.titleweight": "bold",
    "legend.fontsize": 8,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "lines.linewidth": 1.2,
    "lines.markersize": 4,
    "figure.constrained_layout.use": True,
    "figure.dpi": 150,
}

COLORMAP = "YlGnBu"  # of cells

MAX_MARKERS = 30  # points of a curve, from which marks would hide it
MEAN_SEEDS = 5  # with fewer, the seeds themselves are drawn in place of an interval

THEORY_DASHES = ((5, 2), (1.5, 1.5), (8, 2, 1.5, 2), (3, 4))

_NARROW = 1.65  # inches that a panel needs
LOW = 1.4  # inches of height
_CM = 2.54

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Page:
    """Page for which figures are drawn, with its width and height in inches. If the width is None, each
    figure keeps its own width.
    """

    width: float | None = None
    height: float = 8.2
    font: str = "sans"

    @property
    def narrow(self) -> bool:
        """Whether the page is so narrow that a legend next to panels leaves space for only one panel
        per line.
        """
        return self.width is not None and self.width < PAGE_WIDTH / 1.5

    def arrange(
        self, count: int, columns: int, width: float, height: float
    ) -> tuple[int, int, float, float]:
        """Return how panels are arranged: the numbers of lines and columns, the width of the figure, and
        the height of a panel.

        If the page is narrower than the figure, fewer panels are side by side. On a slide, as many panels
        as fit are side by side. Heights are proportional to widths, as long as all panels fit on the page.
        """
        if self.width is None:
            return -(-count // columns), columns, width, height
        side_by_side = max(1, min(columns, int(self.width / _NARROW)))
        most = min(count, int(self.width / _NARROW)) if self.height < Page.height else 0
        while side_by_side < most and -(-count // side_by_side) * LOW > self.height:
            side_by_side += 1
        under = -(-count // side_by_side)
        wider = (self.width / side_by_side) / (width / columns)
        height = min(height * min(sqrt(wider), 1.3), self.height / under - 0.1)
        return under, side_by_side, self.width, max(height, LOW)


_page: ContextVar[Page] = ContextVar("page", default=Page())  # noqa: B039 (frozen)


@contextmanager
def on_page(width: str | float, font: str = "sans") -> Iterator[None]:
    """Draw all figures inside the `with` block for a page of the given width, in the given font.

    Parameters
    ----------
    width : str or float
        Width of the page: "column", "page", "slide", or a number of centimetres, at least 7.7 (3 inches).
    font : str
        "sans" or "serif".

    Raises
    ------
    ValueError
        If there is no such width or font.
    """
    if font not in FONTS:
        raise ValueError(f"font = {font!r} is not allowed: need one of {', '.join(FONTS)}")
    height = SLIDE_HEIGHT if width == "slide" else Page.height
    token = _page.set(Page(_inches(width), height, font))
    try:
        yield
    finally:
        _page.reset(token)


def _inches(width: str | float) -> float:
    if width in WIDTHS:
        return WIDTHS[width]
    with suppress(ValueError):
        if 7.7 <= float(width) <= 60:
            return float(width) / _CM
    raise ValueError(
        f"width = {str(width)!r} is not allowed: need {', '.join(WIDTHS)}, or a number of "
        "centimetres from 7.7 to 60"
    )


def on_a_slide() -> int | None:
    """Return the number of panels that fit on a slide. Return None if figures are currently drawn for another
    page.
    """
    return _ON_SLIDE if page().height == SLIDE_HEIGHT else None


def page() -> Page:
    """Return the width, height and font of the page for which figures are currently drawn."""
    return _page.get()


def rc_params() -> dict[str, Any]:
    """Return matplotlib's settings for the page (width and font) for which figures are currently drawn."""
    _add_fonts()
    font = page().font
    math = {"mathtext.fontset": "stix" if font == "serif" else "dejavusans"}
    small = {"legend.fontsize": 7, "lines.markersize": 3} if page().narrow else {}
    return RC_PARAMS | small | {"font.family": [*FONTS[font]]} | math


@cache
def _add_fonts() -> None:
    """Register the fonts of this package with matplotlib."""
    from matplotlib import font_manager

    for file in sorted((Path(__file__).parent / "fonts").glob("*.ttf")):
        font_manager.fontManager.addfont(file)


def with_style(draw: Callable[P, R]) -> Callable[P, R]:
    """Wrap a drawing function so that it uses the workbench's style."""

    @wraps(draw)
    def styled(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(rc_params()):
            return draw(*args, **kwargs)

    return styled


# Labels

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
    "Error": "error (counts)",
    "ErrorShare": "error, consistent over noisy",
    "position": "position in the sequence",
    "records": "records, N",
    "distinct": "distinct counts, d",
    "cells": "cells, n",
    "levels": "levels of the tree, ℓ",
    "VarianceRatio": "error, noisy over consistent tree",
    "WorstError": "worst error of a range (counts)",
    "Usefulness": "worst error over N",
    "EarthMover": "earth mover's distance\n(records × side)",
    "NodeError": "mean error (noise scales)",
    "down_to": "levels added up",
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
    "dims": "attributes of a query, k",
    "queries": "past queries, m",
    "query": "queries, by their true answers",
    "universe": "universe (cells)",
    "tuples": "people",
    "scale": "scale of the noise (tuples)",
    "ProcessorTime": "processor time (s)",
    "Price": "further ε",
    "error": "error asked for (tuples)",
    "Density": "records per km²",
    "Nodes": "nodes released",
    "side": "side of a box (km)",
}

FROM_0_TO_1 = {"TopPrecision"}  # on every axis
_SHARES = "CommuteCDF HeldCells Recovered RealFraction SampledSize ContextShare".split()
_RATIOS = "share density MedianRelativeError ErrorCut PriorShare Usefulness".split()
FRACTIONS = {*FROM_0_TO_1, *_SHARES, "OverEstimates"}  # which no interval leaves
PERCENT_COLUMNS = {*FROM_0_TO_1, *_SHARES, *_RATIOS}  # shown in per cent


def metric_name(rows: pd.DataFrame) -> str:
    """Return the name of the metric (for example a kind of error) in the rows. If the rows have no column
    `metric`, return "value". Raise a ValueError if there are several metrics or no rows.
    """
    if rows.empty:
        raise ValueError("there are no rows to draw")
    if "metric" not in rows:
        return "value"
    metrics = rows.metric.unique()
    if len(metrics) > 1:
        raise ValueError(f"rows mix the metrics {', '.join(metrics)}: choose one a panel")
    return metrics[0]


# Series

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
    "item blanket": ("#117733", "<"),
    "Misra–Gries": ("#44AA99", ">"),
    "Gaussian sparse histogram": ("#88CCEE", "8"),
    "correlated Gaussian sparse histogram": ("#DDCC77", "."),
}

HISTOGRAMS = {  # of Hay et al., never beside the above: the same looks serve again
    "truth": ("#999999", "."),
    "S̃": ("#999933", "H"),
    "S̃ᵣ": ("#56B4E9", "d"),
    "S̄": ("#332288", "p"),
    "L̃": ("#000000", "o"),
    "H̃": ("#E69F00", "^"),
    "H̄": ("#0072B2", "s"),
    "H̄ by leaves": ("#661100", "<"),
    "H̄ not zeroed": ("#CC79A7", "D"),
    "non-negative H̄": ("#117733", "*"),
    "HB": ("#882255", "X"),
    "Privelet": ("#009E73", "P"),
    "equi-depth": ("#AA4499", "h"),
    "prevalence": ("#EE3377", ">"),
}

_OTHERS = {
    # beside some of the summaries, of which none has the same look
    "consistent tree": ("#E69F00", "^"),
    "consistent filter": ("#0072B2", "D"),
    "InfTDA": ("#EE3377", "X"),
    "numpy": ("#777777", "d"),
    # syntheses of records in a hierarchy
    "source": ("#000000", "."),
    "resample": ("#000000", "o"),
    "second release": ("#D55E00", "v"),
    "direct synthesis": ("#0072B2", "s"),
    "improved histogram": ("#E69F00", "^"),
    "basic histogram": ("#CC79A7", "X"),
    "PrivTree": ("#009E73", "P"),
    # priors of kernel PCA, in its colour
    "no prior": ("#5BC0A0", "s"),
    "with prior": ("#00573F", "o"),
    "bought": ("#56B4E9", "D"),
    # samplings of records of users, and what they are compared with
    "original": ("#000000", "o"),
    "SRA": ("#0072B2", "s"),
    "HPA": ("#D55E00", "v"),
    "LPA": ("#CC79A7", "X"),
    "DFT": ("#E69F00", "^"),
    "GS": ("#009E73", "P"),
    # tables from noisy marginals, or tuple by tuple
    "maximum entropy": ("#0072B2", "s"),
    "SGD as printed": ("#56B4E9", "D"),
    "retention": ("#D55E00", "v"),
    "flipping": ("#E69F00", "^"),
    "noisy marginals": ("#999999", "."),
    "everyone alike": ("#999999", "X"),
    "kernel PCA": ("#009E73", "P"),
    "AIM": ("#CC79A7", "D"),
    "buying the answers": ("#000000", "o"),
}

SERIES_STYLES = SUMMARIES | HISTOGRAMS | _OTHERS

_IN_WORDS = {  # for letters that differ in an accent alone
    "S̃": "noisy",
    "S̃ᵣ": "rounded",
    "S̄": "consistent",
    "L̃": "noisy leaves",
    "H̃": "noisy tree",
    "H̄": "consistent tree",
    "H̄ by leaves": "consistent tree, by leaves",
    "H̄ not zeroed": "consistent tree, not zeroed",
    "non-negative H̄": "non-negative tree",
    "numpy": "geometric by numpy",
}

# of later years than the paper beside, or what no author can have meant
_DOTTED = {"non-negative H̄", "HB", "Privelet", "PrivTree", "H̄ by leaves"}

_MARKERS = "phd<>*8HoX"

_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (4, 1, 1, 1)), (0, (6, 1.5, 1, 1.5, 1, 1.5)))

_HATCHES = dict(
    zip("osv^XPDdpHh*.<", ("", "", "///", "xxx", "...", "\\\\\\") * 3, strict=False)
)


class SeriesStyle(NamedTuple):
    """Colour, marker and dashes of a series (curve)."""

    color: str
    marker: str
    dashes: Any

    @property
    def hatch(self) -> str:
        """Hatch pattern of bars, which follows from the marker."""
        return _HATCHES.get(self.marker, "")

    @property
    def ink(self) -> str:
        """Colour of the series, dark enough for text on white (a contrast of 4.5 to 1)."""
        rgb = mpl.colors.to_rgb(self.color)
        while _luminance(rgb) > 0.18:
            rgb = tuple(0.95 * x for x in rgb)
        return str(mpl.colors.to_hex(rgb))


def _luminance(rgb: Iterable[float]) -> float:
    linear = [x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in rgb]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def in_words(name: str) -> str:
    """Return the name that figures show for a series (curve), panel or bar. `name` is its name in the
    results.

    >>> in_words("S̄, ε = 1"), in_words("Foursquare twin")
    ('consistent, ε = 1', 'Foursquare stand-in')
    """
    kind, comma, rest = name.partition(", ")
    words = f"{_IN_WORDS.get(kind, kind)}{comma}{rest}"
    return words.replace("twin of", "stand-in for").replace(" twin", " stand-in")


def series_styles(names: Iterable[str]) -> dict[str, SeriesStyle]:
    """Return the style (colour, marker and dashes) of each series (curve) in a figure.

    The kind of a series is the text before the first comma of its name. The kind determines the colour.
    Series of one kind may differ in a number, for example "filter, θ = 20" and "filter, θ = 40". These series
    get shades of the colour, which are darker for larger numbers. Series of one kind that differ in words get
    different markers and dashes.

    Parameters
    ----------
    names : iterable of str
        Names from `name_series`.

    Returns
    -------
    dict
        A style for each name.
    """
    kinds: dict[str, list[tuple[str, str, tuple[float, ...]]]] = {}
    for name in dict.fromkeys(map(str, names)):
        kind, *parts = name.split(", ")
        numbers = tuple(x for x in map(_number, parts) if x is not None)
        words = ", ".join(part for part in parts if _number(part) is None)
        kinds.setdefault(kind, []).append((name, words, numbers))
    styles = {}
    unknown = [kind for kind in kinds if kind not in SERIES_STYLES]
    for kind, series in kinds.items():
        again = 0
        if kind in SERIES_STYLES:
            color, marker = SERIES_STYLES[kind]
        else:
            again, place = divmod(unknown.index(kind), len(_MARKERS))
            color, marker = mpl.color_sequences["petroff10"][place], _MARKERS[place]
        forms = list(dict.fromkeys(words for _, words, _ in series))
        marks = list(dict.fromkeys((words, bool(numbers)) for _, words, numbers in series))
        ranks = sorted({numbers for _, _, numbers in series if numbers})
        for name, words, numbers in sorted(series, key=lambda x: (forms.index(x[1]), x[2])):
            form, mark = forms.index(words), marks.index((words, bool(numbers)))
            at = ranks.index(numbers) / (len(ranks) - 1) if numbers and len(ranks) > 1 else None
            dashes = ":" if name in _DOTTED else _DASHES[(form + again) % len(_DASHES)]
            own = marker if mark == 0 else _MARKERS[(mark - 1) % len(_MARKERS)]
            styles[name] = SeriesStyle(_shade(color, at), own, dashes)
    return styles


def _number(part: str) -> float | None:
    """Return the number in a text such as "θ = 1,000" or "w = 10⁵", or None for other texts."""
    _, equal, text = part.partition(" = ")
    text = text.replace(",", "")
    front, _, raised = text.rpartition("10")
    if raised and not raised.isascii():
        text = f"{front.rstrip('·') or 1}e{normalize('NFKC', raised)}"
    try:
        return float(text) if equal else None
    except ValueError:
        return None


def _shade(color: str, at: float | None) -> str:
    """Return a shade of a colour, where `at` goes from 0 (pale) to 1 (dark). If `at` is None, return the
    colour itself.
    """
    if at is None:
        return color
    rgb = mpl.colors.to_rgb(color)
    ends = [(0.6 * x + 0.4, x or 0.28 * (not any(rgb)), 0.6 * x) for x in rgb]
    return str(mpl.colors.to_hex([np.interp(at, (0, 0.5, 1), channel) for channel in ends]))


def name_series(
    rows: pd.DataFrame, *parameters: str, shown: Collection[str] = ()
) -> pd.DataFrame:
    """Add a column `series` to a data frame of results, and return the new data frame. The column contains
    the name of the mechanism, followed by the values of those parameters of the mechanism that vary between
    rows.

    The name of the mechanism comes from the column `mechanism_name`. If this column is missing, the function
    uses the name of the class, from the column `mechanism`. Then the function adds the values of the columns
    `parameters`. The function also adds each parameter of the mechanism (including ε and δ) that has several
    values in the rows with this name.

    Parameters
    ----------
    rows : DataFrame
        Results of a sweep, one per row. A column is a parameter of the mechanism if the text in the column
        `trial` sets a parameter with this name.
    *parameters : str
        Columns whose values are always part of the name, unless they are 0.
    shown : collection of str
        Parameters that the figure already shows, for example on an axis. The names of series do not contain
        these parameters.

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
    """Return the names of the columns that are parameters of mechanisms. The texts in the column `trial`
    determine which columns these are, and their order.
    """
    if "trial" not in rows:
        return []
    names: dict[str, None] = {}
    for trial in rows.trial.dropna().unique():
        mechanism = trial.partition(", mechanism=")[2].rpartition(", seed=")[0]
        names |= dict.fromkeys(re.findall(r"\b(\w+)=", mechanism))
    return [name for name in names if name in rows]


def _values(column: pd.Series) -> list[Any]:
    """Return the values of a column, with None for missing values, because NaN differs from itself."""
    return [None if x is None or x != x else x for x in column]


def _value_text(column: str, x: Any) -> str:
    """Return a field and its value as part of a name, or "" if the value is missing or False."""
    if x is None or isinstance(x, bool):
        return column if x else ""
    return f"{SYMBOLS.get(column, column)} = {x if isinstance(x, str) else format(x, ',g')}"
