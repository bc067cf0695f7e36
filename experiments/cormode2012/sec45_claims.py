"""What Cormode et al. 2012 say of Dirichlet synthesis in section 4.5: a check a statement."""

from __future__ import annotations

import numpy as np

from experiments.cormode2012.data import judged
from experiments.cormode2012.paired import ratios, select
from experiments.cormode2012.shared import ABSOLUTE, ratio_of_means
from experiments.cormode2012.work_places import SynthesisByWorkPlace
from workbench.compiled import pd
from workbench.privacy import ADD_REMOVE, REPLACE
from workbench.trials import claims
from workbench.trials.claims import OFTEN, Finding, Intervals, Printed, check_between
from workbench.value import format_number

PAPER = {
    "ratio": Printed("over three times the absolute error of geometric", 3, 4, at=1.0),
}
GEOMETRIC = "geometric"
REPLACED = "geometric, replace one"
SYNTHESIS = "Dirichlet synthesis"
LEAN = "lean synthesis"
PLACES = SynthesisByWorkPlace.series
CONDITION = "condition"
PRIORS = {"one for all": SYNTHESIS, "one a work place": PLACES}


def by_relation(errors: pd.DataFrame) -> pd.DataFrame:
    """Errors by series and `relation`; geometric noise twice, of "replace one" at twice its ε."""
    series = errors.mechanism_name.mask(errors.records < errors.total, LEAN)
    relation = np.where(errors.delta > 0, REPLACE, ADD_REMOVE)
    errors = errors.assign(series=series, relation=relation)
    replaced = errors[errors.series == GEOMETRIC].assign(series=REPLACED, relation=REPLACE)
    replaced["epsilon"] *= 2
    return pd.concat([errors, replaced], ignore_index=True)


def error_ratio(rows: pd.DataFrame, base: str) -> pd.DataFrame:
    """Rows of a metric `ErrorRatio`: the error of each synthesis in units of that of series `base`."""
    point = ["epsilon", "share"]
    other = rows[rows.series == base][[*point, "seed", "value"]]
    other = other.rename(columns={"value": "other"})
    ratios = rows[rows.series.isin([SYNTHESIS, PLACES, LEAN])].merge(other, on=[*point, "seed"])
    ratios = ratios.set_index([*point, "series"])
    value = ratio_of_means(ratios.value, ratios.other, [*point, "series"])
    return ratios.drop(columns="other").assign(value=value, metric="ErrorRatio").reset_index()


def _against_geometric(rows, prior: str) -> Intervals:
    errors = select(judged(rows), metric=ABSOLUTE, epsilon=1.0)
    ours, other = (select(errors, series=series) for series in (PRIORS[prior], GEOMETRIC))
    return ratios(ours, other, "share")


def _three_times(rows, level) -> Finding:
    def at(prior, level):
        against = _against_geometric(rows, prior)
        return check_between(against, level, low=3, share=OFTEN, words="at least 3×")

    return claims.over("prior", tuple(PRIORS), at, level)


def _not_four(rows, level) -> Finding:
    errors = select(judged(rows), metric=ABSOLUTE, epsilon=1.0)
    means = errors.groupby(["series", "seed"], as_index=False).value.mean().assign(sizes="all")

    def at(prior, level):
        ours, other = (select(means, series=x) for x in (PRIORS[prior], GEOMETRIC))
        return check_between(ratios(ours, other, "sizes"), level, 3, 4)

    return claims.over("prior", tuple(PRIORS), at, level)


def _no_prior(rows, level) -> Finding:
    least = select(rows, panel=CONDITION)

    def at(condition, level):
        own = select(least, series=condition)
        told = [
            f"ε = {x:g}: {f'α = {format_number(alpha)}' if allowed else 'none'}"
            for x, alpha, allowed in zip(own.epsilon, own.value, own.allowed, strict=True)
        ]
        return Finding(not own.allowed.any(), ", ".join(told))

    return claims.over("condition", ("closed form", "exact tails"), at, level)


CHECKS = {"c-45-1.1": _three_times, "c-45-1.2": _not_four, "c-45-1.3": _no_prior}


def comparison(errors: pd.DataFrame) -> pd.DataFrame:
    """How many times the error of geometric, by table, beside the paper's number."""
    lines = []
    for name, own in errors.groupby("panel", sort=False):
        for base in (GEOMETRIC, REPLACED):
            means = error_ratio(own, base).groupby(["series", "share"]).value.mean()
            for series, curve in means.groupby(level="series"):
                measured = f"{format_number(curve.min())} … {format_number(curve.max())}"
                finding = Finding(None, measured)
                lines.append((f"{name}: {series} / {base}", PAPER["ratio"], finding))
    return claims.compare_with_paper(*lines)
