"""Fan & Jin 2015, Figure 6 and Theorem 2: how many records of each user to keep.

Paper   Fan & Jin, WWW 2015: sections 4.1 and 6.2, Figure 6; Theorem 2 and Appendix A.
Read    from the text; of the plots our copy has only the marks on the axes: l to 100, errors of items
        from 10⁴ to 5·10⁴, of edges from 10⁶ to 10⁹. The former does not fit ε/2 = ½ for each: the noise
        alone has 8·10⁴ at l = 100. The mean error of edges cannot be 10⁶ for small l under any reading;
        what was plotted for edges may be a sum. Only where the least error lies is compared.
Open    The paper shows Foursquare: that is run under both readings of ε. Its twin's exponent of popularity
        is the one that gives what figure 5 prints; quick runs have three others. Every other dataset
        stands beside. l goes on to M, where nothing is dropped. The exact law and Equation 22
        (`sampling_theory`) are shown.
        In a twin, n, M and what users have on average are the paper's; how equal users are is its
        maker's choice, and the best l depends on it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from experiments.fan2015._five_methods import (
    DRAWN,
    IN_TITLES,
    OURS,
    READINGS,
    five_methods,
    mechanism_of_trials,
)
from experiments.fan2015._paper import FanFigure, paper_first
from experiments.fan2015.best_l import PRINTED_UP_TO, error_curve
from experiments.fan2015.data import (
    CALIBRATED,
    TWIN,
    Case,
    cases,
    datasets,
    one_law,
    panel_of,
    popularities,
    users_of_netflix,
)
from experiments.fan2015.sampling_theory import CORRECTED, EXACT, OF, PRINTED, SamplingTheory
from experiments.fan2015.unreleased import AllRecords
from workbench import Sweep, run
from workbench.compiled import pd
from workbench.figures import EFFORT, UNPRINTED
from workbench.figures.fields import choice, epsilon, epsilons, seeds, whole
from workbench.figures.plots import Panel
from workbench.trials.claims import Printed, interpolate_log_log, mean_curve
from workbench.trials.metrics import MeanSquaredCountError
from workbench.value import format_number, value

THIN = (1, 2, 5, 10, 20, 30, 50, 100, 300, 1000, 3000, 10_000)
DENSE = (
    *(1, 2, 3, 5, 7, 10, 15, 20, 25, 30, 40, 50, 70, 100),
    *(200, 300, 500, 1000, 2000, 3000, 5000, 10_000),
)
AS_PRINTED, INVENTED = "printed", "invented"
TWIN_OF_FOURSQUARE = "Foursquare" + TWIN
PAPER = {
    "items": Printed.approximately("l = 30", 30, axis="x"),
    "edges": Printed.approximately("l = 5", 5, axis="x"),
}


@value
class Fig6(FanFigure):
    """Squared error over l."""

    title = "How many records of each user to keep"
    headline = "Keeping more records of each user first reduces the error, then increases it"
    rests_on = ("f-6.1", "f-6.2", "f-6.3", "f-6.4")
    main = 4
    page = "Fan & Jin, WWW 2015, sections 4.1 and 6.2, Figure 6; Theorem 2"
    quick = {"exponent": INVENTED, "netflix_users": 2000, "netflix_seeds": 1, "seeds": 1}
    rough = {"netflix_users": 2000, "netflix_seeds": 1, "seeds": 1}

    data: tuple[str, ...] = datasets()
    epsilon: float = epsilon(1.0)
    epsilons: tuple[float, ...] = epsilons(
        (0.1, 0.3, 1.0, 3.0, 10.0), "budgets ε of SRA for the best l"
    )
    l: tuple[int, ...] = whole(  # noqa: E741
        DENSE, "records of each user that are kept, and M", unit="records", kind=EFFORT
    )
    netflix_l: tuple[int, ...] = whole(THIN, "l on Netflix", unit="records", kind=EFFORT)
    d: int | None = whole(None, "records of a user for popularity; none: the least of one")
    most: int | None = whole(None, "M, the last l; none: the most of a user")
    exponent: str = choice(
        AS_PRINTED,
        (AS_PRINTED, INVENTED),
        "popularity of places in Foursquare's twin: as figure 5 prints, or all `popularities`",
        kind=EFFORT,
    )
    popularities: tuple[float, ...] = popularities()
    drawn_to: int = whole(PRINTED_UP_TO, "the last l drawn", 2, kind=UNPRINTED)
    netflix_users: int = users_of_netflix()
    netflix_seeds: int = seeds(3, "releases on Netflix")
    seeds: int = seeds(20)

    def cases(self) -> dict[str, Case]:
        """The datasets, by panel."""
        chosen = cases(self.data, self.netflix_users, d=self.d, most=self.most)
        case = chosen.get(TWIN_OF_FOURSQUARE)
        if case and self.exponent == AS_PRINTED:
            twin = replace(case.dataset, popularity=CALIBRATED)
            chosen[case.name] = replace(case, dataset=twin)
        return chosen

    def laws(self, case: Case) -> dict[str, Any]:
        """The dataset by law of popularity. Only the paper's has several."""
        swept = case.of == "Foursquare" and self.exponent == INVENTED
        return case.laws(self.popularities if swept else ())

    def readings(self, case: Case) -> tuple[str, ...]:
        """Readings of ε. Only the paper's dataset has several."""
        return DRAWN if case.of == "Foursquare" else DRAWN[:1]

    def sample_sizes(self, case: Case) -> tuple[int, ...]:
        """The l that are tried, M at the end."""
        tried = self.netflix_l if case.of == "Netflix" else self.l
        return (*sorted(size for size in tried if size < case.most), case.most)

    def mechanisms(self, case: Case, reading: str) -> list[Any]:
        """SRA and HPA at every l."""
        mechanisms = []
        for size in self.sample_sizes(case):
            methods = five_methods(replace(case, l=size), self.epsilon, reading)
            mechanisms += [methods[series] for series in OURS]
        return mechanisms

    def sweeps(self) -> dict[str, Sweep]:
        """A dataset a panel."""
        metrics = [MeanSquaredCountError(of) for of in OF]
        sweeps = {}
        for name, case in self.cases().items():
            by_reading = [self.mechanisms(case, reading) for reading in self.readings(case)]
            times = self.netflix_seeds if case.of == "Netflix" else self.seeds
            laws = [*self.laws(case).values()]
            sweeps[name] = Sweep(laws, sum(by_reading, []), metrics, times)
        return sweeps

    def rows(self, store) -> pd.DataFrame:
        """With reading and law; also what is known exactly, of each dataset as built."""
        spent = {self.epsilon: READINGS[0], 2 * self.epsilon: READINGS[1]}  # by SRA
        budgets = tuple(sorted({*spent, *self.epsilons}))
        frames = []
        for name, sweep in self.sweeps().items():
            case = self.cases()[name]
            measured = run(sweep, store)
            readings = {
                repr(m): reading
                for reading in self.readings(case)
                for m in self.mechanisms(case, reading)
            }
            reading = mechanism_of_trials(measured).map(readings)
            measured = measured.assign(series=measured.mechanism_name, reading=reading)
            theory = SamplingTheory(self.sample_sizes(case), budgets)
            exactly = run(Sweep([case.dataset], [AllRecords()], [theory], 1), store)
            exactly = exactly.assign(reading=exactly.epsilon.map(spent))
            rows = pd.concat([measured, exactly])
            laws = {repr(x): law for law, x in self.laws(case).items()}
            frames.append(rows.assign(panel=name, law=rows.dataset.map(laws)))
        return pd.concat(frames, ignore_index=True)

    def curves(self, rows: pd.DataFrame) -> list[tuple[str, str, str]]:
        """Panel, reading of ε, and table."""
        measured = rows[rows.metric == "MeanSquaredCountError"]
        pairs = measured[["panel", "reading"]].drop_duplicates().itertuples(index=False)
        return [(name, reading, of) for name, reading in pairs for of in OF]

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Items and edges of each dataset, that of the paper first, with SRA's exact error dashed."""
        grid = []
        order = paper_first(rows, "Foursquare")
        for name, reading, of in sorted(self.curves(rows), key=lambda x: order.index(x[0])):
            theory = error_curve(rows, "SRA", name, of, reading, "theory")["mean"]
            law = ("SRA, expected", interpolate_log_log(theory.index, theory))
            printed = PAPER[of] if name == panel_of(rows, "Foursquare") else ()
            where = {"panel": name, "of": of, "reading": reading}
            where["metric"] = "MeanSquaredCountError"
            title = f"{name}: {of}, {IN_TITLES[reading]}"
            grid.append(Panel(title, where, "l", log="y", theory=law, printed=printed))
        return grid

    def to_draw(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Up to the printed l, which is linear as printed."""
        return one_law(rows[rows.l <= self.drawn_to])

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """A line a dataset, reading and table: where the least error lies, and SRA's against theory."""
        lines = []
        for name, reading, of in self.curves(rows):
            line = {"dataset": name, "ε": reading, "counts": of}
            foursquare = name == panel_of(rows, "Foursquare")
            line["the paper prints"] = PAPER[of].says if foursquare else ""
            errors = {s: error_curve(rows, s, name, of, reading)["mean"] for s in OURS}
            for series, error in errors.items():
                line[f"best l, {series}"] = f"{error.idxmin():,.0f}"
                line[f"error there, {series}"] = format_number(error.min())
            zeros = mean_curve(rows, "of", panel=name, of=of, metric="Zeros")["mean"]
            line["error of all zeros"] = format_number(zeros.iloc[0])
            law = error_curve(rows, "SRA", name, of, reading, "theory")["mean"]
            ratio = errors["SRA"] / law
            line["SRA, measured over expected"] = f"{ratio.min():.3f} … {ratio.max():.3f}"
            lines.append(line)
        return pd.DataFrame(lines).set_index(["dataset", "ε", "counts"])

    def best_sample_sizes(self, rows: pd.DataFrame) -> pd.DataFrame:
        """The best l for items over the ε of a release of both: exactly, and by the two formulas."""
        factors = rows[(rows.metric == "BestFactor") & (rows.of == "items")]
        factors = factors[factors.epsilon.isin(self.epsilons)]
        lines = []
        for (name, at), best in factors.groupby(["panel", "epsilon"], sort=False):
            by_series = best.set_index("series").value.map(format_number)
            line = {"dataset": name, "ε": at}
            lines.append(
                line | {series: by_series[series] for series in (EXACT, PRINTED, CORRECTED)}
            )
        return pd.DataFrame(lines).set_index(["dataset", "ε"])
