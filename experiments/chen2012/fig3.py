"""Chen et al. 2012, Figure 3: errors that cross-validation estimates, and the true ones, over α.

Paper   Chen, Zhou & Bhowmick, EDBT 2012: sections 3.5 and 5.1, Figure 3; Theorem 4.
Read    from the text; the plot is not in our copy, and no number is printed. The caption contradicts
        itself: it cross-validates on ranges and has true errors of new ranges from general queries,
        which would be Figure 2(d), but says that they match Figure 2(c). Theorem 4 is about new queries
        of the same kind: here both are ranges, and the true curve is that of Figure 2(c).
Open    The histories are those of Figure 2, with "Lap(5000)", the paper's noise on our fewer queries.
        The folds are the same for all α of a seed; the total stays known in each. Estimates of the
        squared error may be negative, and are then drawn as 0. Kernel PCA only.
Words   follows = within 1.25× of the true error at three quarters of the α, or intervals overlap;
        slightly above it = the mean ratio of the estimate to the truth, seed by seed, is above 1 at
        three quarters of the α, its interval too; near = at the α of the least estimate the true error
        is within 1.25× of the least true one. With and without prior, in every panel.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from experiments.chen2012.data import NEW, WITH, WITHOUT, Bank, QueryBank
from experiments.chen2012.fig2 import Fig2
from experiments.chen2012.shared import near_least
from workbench.claims import Finding, decide, format_number, mean_curve
from workbench.claims.old import Claim, all_of, check_similar
from workbench.figures import Figure
from workbench.figures.parameters import whole
from workbench.inference import select_alpha
from workbench.metrics import rmse
from workbench.metrics.refusal import refuse_private
from workbench.plots import Panel
from workbench.value import value

ESTIMATED = ", cross-validated"
DRAWN = "RMSE"
CHOSEN = "chosen"  # the metric of what a fresh split says of the chosen α


@value
class CrossValidated:
    """Errors that cross-validation estimates, and the true ones on new ranges."""

    alphas: tuple[float, ...]
    queries: int
    folds: int

    def __call__(self, truth, bank: Bank) -> pd.DataFrame:
        """A row a prior, α, and error: true, cross-validated; and that of a fresh split."""
        refuse_private(truth)
        new = bank.queries(self.queries)[NEW]
        exact = truth.answer(new)
        grid = dict(low=self.alphas[0], high=self.alphas[-1], points=len(self.alphas), refine=0)
        errors = []
        for name, prior in bank.priors.items():
            known = dict(total=float(truth.total), prior=prior, seed=bank.seed)
            selected = select_alpha(bank.history, self.folds, **known, **grid)
            answers = selected.posterior.eigen.project(new)
            for alpha, squared in zip(self.alphas, selected.errors.tolist(), strict=True):
                true = rmse(answers.values(alpha), exact)
                errors.append((name, DRAWN, alpha, true))
                errors.append((name + ESTIMATED, DRAWN, alpha, np.sqrt(max(0.0, squared))))
            errors.append((name, CHOSEN, selected.alpha, selected.rmse))
        return pd.DataFrame(errors, columns=["prior", "metric", "alpha", "value"])


def _true_and_estimated(rows, panel: str, series: str) -> list[pd.DataFrame]:
    names = (series, series + ESTIMATED)
    return [mean_curve(rows, "alpha", panel=panel, series=name, metric=DRAWN) for name in names]


def _above(rows, panel: str, series: str) -> Finding:
    """Whether the estimates are above the true errors, seed by seed."""
    errors = rows[(rows.panel == panel) & (rows.metric == DRAWN)].pivot_table(
        "value", ["alpha", "seed"], "series"
    )
    ratio = (errors[series + ESTIMATED] / errors[series]).rename("value").reset_index()
    ratio = mean_curve(ratio, "alpha")
    above = (ratio["mean"] > 1).mean()
    apart = (ratio.low > 1).mean()
    measured = f"{format_number(ratio['mean'].min())}–{format_number(ratio['mean'].max())}×"
    measured += f", above at {above:.0%}, intervals apart at {apart:.0%}"
    holds = decide(apart >= 0.75, (ratio.high < 1).mean() > 0.25)
    return Finding(holds, measured, if_unsettled=bool(above >= 0.75))


def _validated(rows) -> Finding:
    parts = {}
    for panel in rows.panel.unique():
        for series in (WITHOUT, WITH):
            true, estimated = _true_and_estimated(rows, panel, series)
            name = f"{panel}, {series}"
            parts[f"{name}: follows"] = check_similar(estimated, true)
            parts[f"{name}: above"] = _above(rows, panel, series)
            parts[f"{name}: least near"] = near_least(true, estimated["mean"].idxmin())
    return all_of(parts)


CLAIMS = (
    Claim(
        "n-3",
        "The RMSE that 5-fold cross-validation estimates follows the true one, slightly above it; "
        "where it is least, the true one nearly is.",
        _validated,
        "It follows everywhere, within 1.25×, and its least is near. Where past answers count it is "
        "up to 20 % above; where the prior alone answers it is 3 % below as often as 5 % above, and at "
        "the paper's noise, with prior, up to 7 % below at the largest α.",
    ),
)


@value
class Fig3(Fig2):
    """Histories of ranges alone, as in Figure 2."""

    title = "Cross-validated and true errors over α"
    page = "Chen et al., EDBT 2012, sections 3.5 and 5.1, Figure 3"
    claims = CLAIMS

    folds: int = whole(5, "parts of the past answers, each held out once", 2)

    @property
    def banks(self) -> list[QueryBank]:
        """What is bought."""
        return super().banks[:1]

    @property
    def metric(self):
        """What is measured."""
        return CrossValidated(self.alphas, self.queries, self.folds)

    def rows(self, store) -> pd.DataFrame:
        """A panel a dataset and noise."""
        rows = Figure.rows(self, store)
        return rows.assign(series=rows.prior)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """One a dataset and noise."""
        return [
            Panel(name, {"panel": name, "metric": DRAWN}, "alpha")
            for name in rows.panel.unique()
        ]

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The best α by either curve, and what a user is told and gets, by panel and prior.

        By the means over seeds; what a fresh split tells at each seed's own choice, averaged.
        """
        lines = []
        for name in rows.panel.unique():
            fresh = mean_curve(rows, "series", panel=name, metric=CHOSEN)["mean"]
            for series in (WITHOUT, WITH):
                true, estimated = _true_and_estimated(rows, name, series)
                best = true["mean"].idxmin()
                chosen = estimated["mean"].idxmin()
                numbers = {
                    "best α": best,
                    "chosen α": chosen,
                    "true RMSE": true["mean"][best],
                    "at the chosen": true["mean"][chosen],
                    "estimated there": estimated["mean"][chosen],
                    "by a fresh split": fresh[series],
                }
                line = {name: format_number(x) for name, x in numbers.items()}
                lines.append({"panel": name, "": series} | line)
        return pd.DataFrame(lines).set_index(["panel", ""])
