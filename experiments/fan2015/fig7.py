"""Fan & Jin 2015, Figure 7: item counts from sampled users, against the existing methods.

Paper   Fan & Jin, WWW 2015: section 6.3 and Figure 7; parameters from section 6 (setup).
Read    from the text; of the plots our copy has the axes only, (a) to 10⁹ and (b) to 9.
Open    Data, M, l and d: see `data`; what is beside the paper: see `_counts`. ε may be of a whole
        release, half for items and half for edges (HPA: a tenth for the popularity, 0.45 each), as the
        text has it, or of items and of edges each, as the axes have it; both are run. Nothing is said of
        how DFT's k was found: privately here, with half of its part; or of the parameters of GS: grouping
        by one record of each user, and a width chosen from that noisy sample.
        "KL divergence of the released distribution with respect to the original" is Σ q·ln(q/p) with p
        released and q original, the direction that reaches the printed axis; the other way round stands
        beside it. Ties at the tenth place count by what a random order would give.
        How popular items are is a twin's invention: twins are run under three laws.
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
    """Counts of items."""

    title = "Item counts, by five methods"
    headline = "SRA preserves the distribution of item counts better than HPA"
    rests_on = ("f-7b.2",)
    page = "Fan & Jin, WWW 2015, section 6.3, Figure 7"
    quick = {**Counts.quick, "taken_apart": 1}
    of = OF

    taken_apart: int = effort(5, "releases whose error is split into parts")

    def rows(self, store) -> pd.DataFrame:
        """The errors of all item counts; those of samples; where that of some releases comes from."""
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
        """What the squared error of SRA and HPA is made of: a row a dataset, method and group of items.

        Parts of the error of that group: dropped records, noise, what the two make together, and putting
        counts below 0 to 0, which takes away. Last, how much of the error of all items the group has.
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
