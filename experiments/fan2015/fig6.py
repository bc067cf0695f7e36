"""Fan & Jin 2015, Figure 6 and Theorem 2: how many records of each user to keep.

Paper   Fan & Jin, WWW 2015: sections 4.1 and 6.2, Figure 6; Theorem 2 and Appendix A.
Read    from the text; of the plots our copy has only the marks on the axes: l to 100, errors of items
        from 10⁴ to 5·10⁴, of edges from 10⁶ to 10⁹. Neither fits ε/2 = ½ for each: the noise alone has
        8·10⁴ at l = 100, and the mean error of edges cannot be 10⁶ for small l. What was plotted for
        edges may be a sum. Only where the least error lies is compared.
Open    The paper shows Foursquare; every dataset is shown here, and l goes on to M, where nothing is
        dropped. The exact law and Equation 22 (`sampling_theory`) are shown, not judged.
        In a twin, n, M and what users have on average are the paper's; how equal users and items are
        is its maker's choice, and the best l depends on both.
Words   stand with the claims, in `best_l_claims`.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from experiments.fan2015.best_l_claims import CLAIMS, EPSILONS, PAPER, error_curve
from experiments.fan2015.data import Case, cases, datasets, panel_of, users_of_netflix
from experiments.fan2015.sampling_theory import CORRECTED, EXACT, OF, PRINTED, SamplingTheory
from experiments.fan2015.unreleased import AllRecords
from workbench import DP, Sweep, plots, run
from workbench.claims import format_number, interpolate_log_log, mean_curve
from workbench.figures import EFFORT, UNPRINTED, Figure
from workbench.figures.parameters import epsilon, epsilons, seeds, whole, wholes
from workbench.mechanisms import HPA, SRA
from workbench.metrics import MeanSquaredCountError
from workbench.plots import Panel
from workbench.value import value

THIN = (1, 2, 5, 10, 20, 30, 50, 100, 300, 1000, 3000, 10_000)
DENSE = (
    *(1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 70, 100),
    *(200, 300, 500, 1000, 2000, 3000, 5000, 10_000),
)


@value
class Fig6(Figure):
    """Squared error over l, and the best l over ε."""

    title = "How many records of each user to keep"
    page = "Fan & Jin, WWW 2015, sections 4.1 and 6.2, Figure 6; Theorem 2"
    quick = {"l": THIN, "netflix_users": 20_000, "seeds": 3}
    rough = {"netflix_users": 2000, "seeds": 2}
    claims = CLAIMS
    shown = ("epsilon", "l", "d")

    data: tuple[str, ...] = datasets()
    epsilon: float = epsilon(1.0)
    epsilons: tuple[float, ...] = epsilons(EPSILONS, "budgets ε of SRA for the best l")
    l: tuple[int, ...] = wholes(  # noqa: E741
        DENSE, "records of each user that are kept, and M", unit="records", kind=EFFORT
    )
    netflix_l: tuple[int, ...] = wholes(THIN, "l on Netflix", unit="records", kind=EFFORT)
    d: int | None = whole(None, "records of a user for popularity; none: the least of one")
    most: int | None = whole(None, "M, the last l; none: the most of a user")
    drawn_to: int = whole(300, "the last l drawn: then all is noise", 2, kind=UNPRINTED)
    netflix_users: int = users_of_netflix()
    netflix_seeds: int = seeds(3, "releases on Netflix")
    seeds: int = seeds(20)

    def cases(self) -> dict[str, Case]:
        """The datasets, by panel."""
        return cases(self.data, self.netflix_users, d=self.d, most=self.most)

    def sample_sizes(self, case: Case) -> tuple[int, ...]:
        """The l that are tried, M at the end."""
        tried = self.netflix_l if case.of == "Netflix" else self.l
        return (*sorted(size for size in tried if size < case.most), case.most)

    def sweeps(self) -> dict[str, Sweep]:
        """SRA at every ε, HPA at one."""
        metrics = [MeanSquaredCountError(of) for of in OF]
        others = [DP(x) for x in self.epsilons if x != self.epsilon]
        sweeps = {}
        for name, case in self.cases().items():
            budget = DP(self.epsilon)
            mechanisms: list[Any] = []
            sizes = self.sample_sizes(case)
            for size in sizes:
                mechanisms += [SRA(budget, size), HPA(budget, size, case.d)]
            for other in others:
                mechanisms += [SRA(other, size) for size in sizes]
            times = self.netflix_seeds if case.of == "Netflix" else self.seeds
            sweeps[name] = Sweep([case.dataset], mechanisms, metrics, times)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """Also what is known exactly, of each dataset."""
        frames = [super().rows(store)]
        budgets = tuple(sorted({self.epsilon, *self.epsilons}))
        for name, case in self.cases().items():
            theory = SamplingTheory(self.sample_sizes(case), budgets)
            exactly = Sweep([case.dataset], [AllRecords()], [theory], 1)
            frames.append(run(exactly, store).assign(panel=name))
        return pd.concat(frames, ignore_index=True)

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """A line a dataset: items and edges, SRA's exact error dashed, and the best l over ε."""
        grid = []
        at = {"epsilon": self.epsilon, "metric": "MeanSquaredCountError"}
        for name in rows.panel.unique():
            for of in OF:
                theory = error_curve(rows, "SRA", name, of, self.epsilon, "theory")["mean"]
                law = ("SRA, expected", interpolate_log_log(theory.index, theory))
                printed = PAPER[of] if name == panel_of(rows, "Foursquare") else ()
                where = {"panel": name, "of": of, **at}
                grid.append(Panel(f"{name}: {of}", where, "l", theory=law, printed=printed))
            where = {"panel": name, "of": "items", "metric": "BestFactor"}
            grid.append(Panel(f"{name}: best l", where, "epsilon"))
        return grid

    def plot(self, rows: pd.DataFrame):
        """Without the corrected formula, whose l lie on those of Equation 22."""
        best = rows[(rows.metric == "BestFactor") & (rows.series != CORRECTED)]
        drawn = pd.concat([rows[rows.l <= self.drawn_to], best])
        return plots.grid(drawn, self.panels(rows), columns=3, height=1.6)

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """A line a dataset and table: where the least error lies, and how much l = 10 or 30 costs."""
        lines = []
        for name in rows.panel.unique():
            for of in OF:
                foursquare = name == panel_of(rows, "Foursquare")
                line = {"dataset": name, "counts": of}
                line["the paper prints"] = PAPER[of].says if foursquare else ""
                errors = {s: error_curve(rows, s, name, of)["mean"] for s in ("SRA", "HPA")}
                for series, error in errors.items():
                    line[f"best l, {series}"] = f"{error.idxmin():,.0f}"
                    line[f"error there, {series}"] = format_number(error.min())
                zeros = mean_curve(rows, "of", panel=name, of=of, metric="Zeros")["mean"].iloc[
                    0
                ]
                line["error of all zeros"] = format_number(zeros)
                ratio = (
                    errors["SRA"] / error_curve(rows, "SRA", name, of, metric="theory")["mean"]
                )
                line["SRA, measured over expected"] = f"{ratio.min():.3f} … {ratio.max():.3f}"
                lines.append(line)
        return pd.DataFrame(lines).set_index(["dataset", "counts"])

    def best_sample_sizes(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The best l for items over ε: by the exact error, measured, and by the two formulas."""
        factors = rows[(rows.metric == "BestFactor") & (rows.of == "items")]
        lines = []
        for (name, at), best in factors.groupby(["panel", "epsilon"], sort=False):
            by_series = best.set_index("series").value.map(format_number)
            ours = error_curve(rows, "SRA", name, "items", at)["mean"]
            line = {"dataset": name, "ε": at, "exact": by_series[EXACT]}
            line["measured"] = f"{ours.idxmin():,.0f}"
            lines.append(line | {series: by_series[series] for series in (PRINTED, CORRECTED)})
        return pd.DataFrame(lines).set_index(["dataset", "ε"])
