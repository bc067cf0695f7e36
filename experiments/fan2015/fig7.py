"""Figure 7 of Fan & Jin (2015): errors of item counts from sampled users (SRA, HPA) and from three older
mechanisms (LPA, DFT, GS).

Paper   Fan & Jin, WWW 2015: section 6.3 and Figure 7, with the parameters of section 6 (setup).
Read    We read all numbers from the text. Our copy of the plots has only the axes, up to 10⁹ in (a) and up to
        9 in (b).
Open    The module `data` describes the data, M, l and d. The module `_counts` describes the mechanisms that
        are not in the paper. By the text, ε is that of a whole release: half for items and half for edges
        (for HPA, a tenth for popularity, and 0.45 each). By the axes, ε is that of items and of edges each.
        We run both. The paper does not say how DFT's k was found. We find it privately, with half of DFT's
        budget. It does not print the parameters of GS either. We group by one record of each user, and choose
        the width from this noisy sample. The "KL divergence of the released distribution with respect to the
        original" is Σ q·ln(q/p), where p is released and q is original. This direction reaches the end of the
        printed axis. We show the other direction for comparison. Ties at the tenth place count by their mean
        over random orders. The popularity of items in a stand-in is invented, so stand-ins are run under
        three laws.
"""

from __future__ import annotations

from experiments._fields import effort
from experiments.fan2015._counts import JUDGED, SAMPLED, Counts
from experiments.fan2015.data import AS_BUILT, FILE, sampling_mechanisms
from experiments.fan2015.unreleased import ItemErrorParts, KeptRecords, ReleaseTakenApart
from workbench import DP, Sweep, run
from workbench.compiled import pd
from workbench.trials.metrics import KLDivergence
from workbench.value import format_number, value

OF = "items"
PARTS = ItemErrorParts.__name__


@value
class Fig7(Counts):
    """Errors, divergences and precision of item counts, for five mechanisms."""

    title = "Item counts, by five methods"
    headline = "SRA preserves the distribution of item counts better than HPA"
    rests_on = ("f-7b.2",)
    page = "Fan & Jin, WWW 2015, section 6.3, Figure 7"
    quick = {**Counts.quick, "taken_apart": 1}
    of = OF

    taken_apart: int = effort(5, "releases whose error is split into parts")

    def rows(self, store) -> pd.DataFrame:
        """Return the errors of item counts, those of samples without noise, and the parts of the error of
        some releases.
        """
        frames = [super().rows(store)]
        for name, case in self.cases().items():
            sampling = sampling_mechanisms(case, DP(self.epsilon))
            kept = [KeptRecords(mechanism) for mechanism in sampling]
            samples = run(
                Sweep([case.dataset], kept, [KLDivergence(OF, JUDGED)], self.seeds), store
            )
            samples = samples.assign(series=samples.mechanism_name.map(SAMPLED))
            apart = [ReleaseTakenApart(mechanism) for mechanism in sampling]
            parts = run(
                Sweep([case.dataset], apart, [ItemErrorParts()], self.taken_apart), store
            )
            parts = parts.assign(series=parts.mechanism_name)
            law = AS_BUILT if case.twin else FILE
            frames += [more.assign(panel=name, law=law) for more in (samples, parts)]
        return pd.concat(frames, ignore_index=True)

    def sources(self, rows: pd.DataFrame) -> pd.DataFrame:
        """Return a table with the parts of the squared error of the mechanisms SRA and HPA. It has one row
        per dataset, mechanism and group of items.

        The parts are dropped records, noise, the interaction of both, and setting negative counts to 0, which
        reduces the error. The last column is the group's share of the error of all items.
        """
        rows = rows[rows.metric == PARTS]
        top_tenth = rows.decile == 10
        rows = rows.assign(group=top_tenth.map({True: "the top tenth", False: "the others"}))
        groups = ["panel", "series", "group"]
        sums = rows.pivot_table("value", groups, "part", "sum", sort=False)
        cells = rows[rows.part == "total"].groupby(groups).cells.sum().reindex(sums.index)
        whole = sums.groupby(level=["panel", "series"]).total.transform("sum")
        kinds = ["dropped", "noise", "interaction", "clipping"]
        table = sums[kinds].div(sums.total, axis=0).map("{:.0%}".format)
        table["error of a count"] = (sums.total / cells).pow(0.5).map(format_number)
        table["of all error"] = (sums.total / whole).map("{:.0%}".format)
        return table.rename_axis(["dataset", "method", "items"]).rename_axis(None, axis=1)
