"""Figure 3 of Hay et al. (2010): a noisy sorted sequence and its isotonic estimate. The module also
recomputes Examples 3, 4 and 6 of the paper.

Paper   Hay, Rastogi, Miklau & Suciu, PVLDB 2010: Examples 3 to 6, Figures 2 to 4.
Read    We read all numbers from the text, because the plot is not in our copy. The numbers in the examples
        are exact.
Open    The paper only says that the sequence has twenty equal counts, and then one unique count. It does not
        say how far apart counts are. We use several steps in units of 1/ε, because only these units matter.
        The figure shows one sample, which is the first one. Errors are means over batches of samples.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from experiments._fields import effort, unprinted, unprinted_number
from experiments.hay2010.data import INFERRED, NOISY, PositionErrors, RunOfCounts, Samples
from workbench import DP, Sweep
from workbench.compiled import pd
from workbench.figures import Figure
from workbench.figures.fields import epsilon, seeds, whole
from workbench.figures.plots import Panel
from workbench.inference import isotonic, tree_least_squares
from workbench.inference.consistency import tree_sums
from workbench.mechanisms import UnattributedHistogram
from workbench.noise import variance
from workbench.trials.claims import Finding, check_lower, decide, paired_ratios
from workbench.value import value

RUN = 20  # its length
UNIQUE = 21  # the position after it
USUALLY = 0.75
PAPER = {  # input, output, and what turns one into the other
    "Example 3, S": ((2, 0, 10, 2), (0, 2, 2, 10), sorted),
    "Example 4": ((9, 10, 14), (9, 10, 14), isotonic),
    "Example 4, second": ((9, 14, 10), (9, 12, 12), isotonic),
    "Example 4, third": ((14, 9, 10, 15), (11, 11, 11, 15), isotonic),
    "Figure 2, S̄": ((1, 2, 0, 11), (1, 1, 1, 11), isotonic),
    "Example 6, H": ((2, 0, 10, 2), (14, 2, 12, 2, 0, 10, 2), tree_sums),
    "Figure 2, H̄": ((13, 3, 11, 4, 1, 12, 1), (14, 3, 11, 3, 0, 11, 0), tree_least_squares),
}


def check_sum(rows, level: float, last: int, times: float = 1) -> Finding:
    """Check whether the error of the isotonic sequence S̄ over the first positions is smaller than that of
    the noisy sequence S̃ by the factor `times`.
    """
    own = rows[(rows.panel == "error") & (rows.position <= last)]
    sums = own.groupby(["step", "series", "seed"], as_index=False).value.sum()
    return check_lower(paired_ratios(sums, INFERRED, NOISY, "step"), level, times=times)


def check_unchanged(rows, level: float) -> Finding:
    """Check whether, in at least three quarters of the samples, isotonic inference does not change the unique
    count.
    """
    from scipy.stats import binomtest

    here = rows[(rows.panel == "same") & (rows.position == UNIQUE)]
    samples = int(here.releases.sum())
    unchanged = round((here.value * here.releases).sum())
    low, high = binomtest(unchanged, samples).proportion_ci(level)  # Clopper and Pearson's
    words = f"{unchanged / samples:.1%} of {samples:,} samples ({low:.1%}–{high:.1%})"
    return Finding(decide(low >= USUALLY, high < USUALLY), words, runs=np.nan)


@value
class Fig3(Figure):
    """One sample of a noisy sequence and its isotonic estimate, and the squared error at every position.
    There is one column of panels per step between counts.
    """

    title = "A noisy sorted sequence and its isotonic estimate"
    headline = "Isotonic inference averages the noise out over a run of equal counts"
    rests_on = ("h-3.1", "h-3.2")
    main = 4
    height = 1.7
    page = "Hay et al., PVLDB 2010, section 3, Figure 3; Examples 3, 4, 6"
    quick = {"samples": 40, "seeds": 5}

    epsilon: float = epsilon(1.0)
    length: int = whole(RUN, "number of equal counts", high=10_000)
    count: int = unprinted(10, "value of the equal counts")
    steps: tuple[float, ...] = unprinted_number(
        (1.0, 3.0, 10.0, 30.0),
        "distance to the unique count, and from it to the rest",
        1e-6,
        1e6,
        unit="1/ε",
    )
    rest: int = unprinted(4, "number of counts after the unique one", high=10_000)
    samples: int = effort(250, "number of releases in a batch")
    seeds: int = seeds(20, "number of batches of releases")

    def sequences(self) -> dict[str, float]:
        """Return the steps of the sequences, as a dictionary whose keys are the datasets."""
        gaps = {step: ceil(step / self.epsilon) for step in self.steps}
        made = {
            s: RunOfCounts(self.length, self.count, gap, self.rest) for s, gap in gaps.items()
        }
        return {dataset: step for step, dataset in made.items()}

    def sweeps(self) -> dict[str, Sweep]:
        """Return the figure's runs, as one sweep. The figure shows the first samples."""
        samples = Samples(UnattributedHistogram(DP(self.epsilon), "noisy"), self.samples)
        return {"error": Sweep([*self.sequences()], [samples], [PositionErrors()], self.seeds)}

    def rows(self, store) -> pd.DataFrame:
        """Return the figure's results, with the first samples, and with the share of samples that inference
        does not change.
        """
        rows = super().rows(store)
        steps = {repr(dataset): step for dataset, step in self.sequences().items()}
        rows = rows.assign(step=rows.dataset.map(steps), series=rows.estimate)
        rows["position"] = rows["rank"]
        first = rows[rows.seed == 0].assign(panel="sample", metric="Count")
        inferred = rows[rows.series == INFERRED]
        frames = [
            first[first.series == INFERRED].assign(series="truth", value=lambda x: x["count"]),
            first.assign(value=first["sample"]),
            rows,
            inferred.assign(panel="same", metric="unchanged", value=inferred.unchanged),
        ]
        rows = pd.concat(frames, ignore_index=True)
        return rows.drop(columns=["estimate", "rank", "count", "sample", "unchanged"])

    def panels(self, rows: pd.DataFrame) -> list[Panel]:
        """Return the figure's panels: samples, and below them the errors with the theoretical error of the
        noisy sequence S̃. Steps come in groups of two.
        """
        expected = variance(1, self.epsilon, "laplace")
        theory = ("noisy, theory", lambda x: expected + 0 * x)
        grid = []
        for steps in (self.steps[::2], self.steps[1::2]):
            for name, title, how in (
                ("sample", "one sample", {"log": ""}),
                ("error", "mean error", {"log": "y", "theory": theory}),
            ):
                for step in steps:
                    here = {"panel": name, "step": step}
                    grid.append(Panel(f"{title}, step {step:g}/ε", here, "position", **how))
        return grid

    def comparison(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table of the examples, with the printed results and with our results for the same inputs."""
        lines = []
        for name, (given, printed, make) in PAPER.items():
            values = np.round(make(np.array(given)), 9)
            ours = tuple(int(x) if x == int(x) else float(x) for x in values)
            line = {"example": name, "input": given, "the paper prints": printed}
            lines.append(line | {"we find": ours})
        return pd.DataFrame(lines).set_index("example")
