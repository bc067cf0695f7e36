"""Aggregates of a drawing: the series of each panel, with means, intervals and places in the picture."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from workbench.value import format_number, number

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.artist import Artist
    from matplotlib.figure import Figure

COLUMNS = ("x", "mean", "low", "high")


def tag(
    artists: Artist | Iterable[Artist], series: str, points: pd.DataFrame | None = None
) -> None:
    """Say which series artists draw.

    Parameters
    ----------
    artists : Artist or several
        What draws the series.
    series : str
        Its name.
    points : DataFrame, optional
        Its aggregates: `x` as it is shown, its place `at` on the axis, `mean`, `low` and `high`.
    """
    for artist in artists if isinstance(artists, Iterable) else [artists]:
        artist.series = series
        artist.points = points
        points = None


def aggregates(fig: Figure) -> list[dict[str, Any]]:
    """The series of a drawing that has its final layout. Its artists get ids, which name them in SVG.

    Parameters
    ----------
    fig : Figure
        Drawn by functions that `tag` their artists.

    Returns
    -------
    list of dict
        One per panel, with `letter`, `where` (the columns that choose its rows) and `series`, each with
        `name`, `ids` of its artists, `places` of its points (in units of the SVG) and `points`: rows of
        x, mean, low, high.
    """
    numbers = count()
    height = 72 * fig.get_figheight()
    panels = []
    for ax in fig.axes:
        found: dict[str, dict[str, Any]] = {}
        for artist in ax.get_children():
            name = getattr(artist, "series", None)
            if name is None:
                continue
            artist.set_gid(f"series{next(numbers)}")
            own = found.setdefault(name, {"name": name, "ids": [], "places": [], "points": []})
            own["ids"].append(artist.get_gid())
            points = artist.points
            if points is not None:
                points = points[np.isfinite(points["mean"])]
                places = ax.transData.transform(points[["at", "mean"]].to_numpy(float))
                across, down = (places * 72 / fig.dpi).T
                own["places"] = np.round([across, height - down], 1).T.tolist()
                shown = [points.x.map(_x), *(points[c].map(_y) for c in COLUMNS[1:])]
                own["points"] = [list(point) for point in zip(*shown, strict=True)]
        if found:
            letter, where = getattr(ax, "panel", ("", {}))
            where = {key: str(x) for key, x in where.items()}
            panels.append({"letter": letter, "where": where, "series": [*found.values()]})
    return panels


def _x(x: str | float) -> str:
    return x if isinstance(x, str) else number(x, 4)


def _y(y: float) -> str:
    return format_number(y) if np.isfinite(y) else ""
