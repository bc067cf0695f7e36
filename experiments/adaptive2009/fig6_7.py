"""Synthetic data via differential privacy (2009), Figures 6 and 7: how far people commute.

Paper   "Synthetic Data via Differential Privacy" (adaptive2009): section 5.1, Figures 6 and 7.
Read    from the text; the plots are not in our copy, and the text prints no number.
Open    Data, ε, threshold and discount as in Figure 5, with what they leave open. The paper's origins
        are two large cities, Honolulu and San Francisco, and a small one, Billings. Here they are the
        two most and the two least populous of the places, by the census of 2010, and so by public
        numbers that were known before the jobs: Providence and Warwick, New Shoreham (an island) and
        Little Compton. Of the twin's cities, by expected homes, the first and the last.
        An origin is what lies within five miles of the place's middle, as in Table 1; its size is not
        printed here. The middle is the mean of its blocks' centroids. Distances are those on the globe
        between centroids, and between synthetic points.
        Direct synthesis and PrivTree are told beside, and not judged.
Words   the gap = Kolmogorov's distance, the largest vertical one between two curves. On the true curve,
        occluding it = a gap of at most 2 %, about the width of two lines in a plot two inches high, at
        every ε and populous origin. Visibly off = at least 5 %, at every ε and sparse origin.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.adaptive2009.fig5 import (
    DIRECT,
    EPSILONS,
    IMPROVED,
    REAL,
    SEEDS,
    TREE,
    TWIN,
    TWIN_SEEDS,
    datasets,
    mechanisms,
)
from workbench import Trial
from workbench.claims import Claim, Finding, all_of, decide, mean_curve
from workbench.mechanism import series_name
from workbench.metrics import CommuteDistances
from workbench.plots import Panel

TITLE = "How far people commute from a populous and from a sparse origin"
PAGE = "adaptive2009, section 5.1, Figures 6 and 7"
COLUMNS = 2
MILES = 5
RADIUS = MILES * 1.609344  # km
FARTHEST = {REAL: 80, TWIN: 80}  # km, shown
POINTS = 161
ON = 0.02
OFF = 0.05
POPULOUS = "populous"
SPARSE = "sparse"
SOURCE = "source"
CDF = "CommuteCDF"
GAP = "CommuteDistances"

PAPER: dict = {}  # no number is printed


def origins(name: str, dataset) -> pd.DataFrame:
    """Places by public population, the most populous and the least: `place`, `kind`, and where."""
    places = dataset.places().dropna(subset="population")
    count = 2 if name == REAL else 1
    populous = places.head(count).assign(kind=POPULOUS)
    sparse = places.tail(count)[::-1].assign(kind=SPARSE)
    both = pd.concat([populous, sparse])
    short = both.place.str.replace(r" (city|town) \(.*", "", regex=True)
    return both.assign(place=short).reset_index(drop=True)


def distances_from(place) -> CommuteDistances:
    """Of commutes from a place, within five miles of its middle."""
    return CommuteDistances(float(place.latitude), float(place.longitude), RADIUS)


def rows(profile: str, store) -> pd.DataFrame:
    """Curves and gaps by origin, series, ε and seed; the source's own curve once."""
    sources = []
    for name, dataset in datasets(profile).items():
        seeds = SEEDS[profile] if name == REAL else TWIN_SEEDS
        truth = dataset.load()
        km = np.linspace(0, FARTHEST[name], POINTS)
        places = list(origins(name, dataset).itertuples())
        frames = [_source_curve(place, truth, km) for place in places]
        for mechanism in mechanisms(name, truth.total):
            for seed in range(seeds):
                frames.append(_measured(Trial(dataset, mechanism, seed), truth, places, km))
        frame = pd.concat(frames, ignore_index=True)
        columns = dict(panel=name, dataset=repr(dataset), truth_public=dataset.truth_public)
        columns["kind"] = frame.origin.map({p.place: p.kind for p in places})
        columns["population"] = frame.origin.map({p.place: int(p.population) for p in places})
        sources.append(frame.assign(**columns))
    return pd.concat(sources, ignore_index=True)


def _source_curve(place, truth, km: np.ndarray) -> pd.DataFrame:
    metric = distances_from(place)
    commuters = int(metric.commutes(truth)[1].sum())
    columns = dict(series=SOURCE, origin=place.place, commuters=commuters, seed=0, metric=CDF)
    return pd.DataFrame({"km": km, "value": metric.cdf(truth, km)}).assign(**columns)


def _measured(trial: Trial, truth, places: list, km: np.ndarray) -> pd.DataFrame:
    release = trial.release(truth)
    synthetic = release.estimate
    frames = []
    for place in places:
        metric = distances_from(place)
        gap = metric(truth, synthetic)
        frames.append(pd.DataFrame({"value": [gap], "metric": GAP, "origin": place.place}))
        line = pd.DataFrame({"km": km, "value": metric.cdf(synthetic, km), "metric": CDF})
        frames.append(line.assign(origin=place.place))
    epsilon = trial.mechanism.budget.epsilon
    columns = dict(
        mechanism=type(trial.mechanism).__name__,
        series=f"{series_name(trial.mechanism)}, ε = {epsilon:g}",
        epsilon=epsilon,
        seed=trial.seed,
        trial=repr(trial),
        by_theorem=release.by_theorem,
    )
    return pd.concat(frames, ignore_index=True).assign(**columns)


def panels(rows: pd.DataFrame) -> list[Panel]:
    """An origin each, the most populous first."""
    grid = []
    for place in rows.drop_duplicates(["panel", "origin"]).itertuples():
        title = f"{place.origin} ({place.kind}: {place.population:,})"
        where = {"panel": place.panel, "origin": place.origin, "shown": True}
        grid.append(Panel(title, where, "km", log=""))
    return grid


def drawn_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """With what is drawn: the source, and as in the paper the improved histogram."""
    drawn = rows.series.str.startswith(IMPROVED) | (rows.series == SOURCE)
    return rows.assign(shown=drawn & (rows.metric == CDF))


def _gap(rows, origin: str, series: str, epsilon: float) -> pd.Series:
    name = f"{series}, ε = {epsilon:g}"
    return mean_curve(rows, "origin", metric=GAP, origin=origin, series=name).iloc[0]


def compare_with_paper(rows: pd.DataFrame) -> pd.DataFrame:
    """Gaps in per cent: a line an origin and ε, with how many commute from there in the source."""
    lines = []
    for place in rows[rows.series == SOURCE].drop_duplicates("origin").itertuples():
        for epsilon in EPSILONS:
            line = {"origin": place.origin, "ε": epsilon}
            line |= {"population": place.population, "commuters": int(place.commuters)}
            for series in (IMPROVED, DIRECT, TREE):
                gap = _gap(rows, place.origin, series, epsilon)["mean"]
                line[series] = f"{100 * gap:.2g} %"
            lines.append(line)
    return pd.DataFrame(lines).set_index(["origin", "ε"])


def _gaps(rows, kind: str, bound: float, below: bool) -> Finding:
    """Whether all gaps of the improved histogram lie on the right side of a bound."""
    parts = {}
    for origin in rows[rows.kind == kind].origin.unique():
        gaps = pd.DataFrame([_gap(rows, origin, IMPROVED, e) for e in EPSILONS])
        if below:
            holds = decide((gaps.high <= bound).all(), (gaps.low > bound).any())
            leans = (gaps["mean"] <= bound).all()
        else:
            holds = decide((gaps.low >= bound).all(), (gaps.high < bound).any())
            leans = (gaps["mean"] >= bound).all()
        pairs = zip(gaps["mean"], EPSILONS, strict=True)
        measured = ", ".join(f"{100 * gap:.2g} % at ε = {epsilon:g}" for gap, epsilon in pairs)
        parts[origin] = Finding(holds, measured, if_unsettled=bool(leans))
    return all_of(parts)


CLAIMS = (
    Claim(
        "a-6",
        "From populous origins the improved histograms lie on the true curve, at all three ε.",
        lambda rows: _gaps(rows, POPULOUS, ON, below=True),
        "At ε = 1 and 10 they do (gaps of 0.2–1.3 %). At ε = 0.1 the gap is 1.9–2.1 % in Rhode Island, "
        "about the 2 % that we allow, and 3 % in the twin's first city, with 17,033 commuters within "
        "five miles. The paper has 25 and 250 times as many people; people times ε is what counts.",
    ),
    Claim(
        "a-7",
        "From a sparse origin they are visibly off the true curve, at all three ε.",
        lambda rows: _gaps(rows, SPARSE, OFF, below=False),
        "From New Shoreham (360 commuters) and the twin's last city they are, by 9–78 %. Little "
        "Compton has 2606, enough at ε = 10, where the gap is 2.2 %.",
    ),
)
