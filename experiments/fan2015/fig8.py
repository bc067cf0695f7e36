"""Figure 8 of Fan & Jin (2015): errors of edge counts from sampled users (SRA, HPA) and from three older
mechanisms (LPA, DFT, GS).

Paper   Fan & Jin, WWW 2015: section 6.3 and Figure 8, with the parameters of section 6 (setup).
Read    We read all numbers from the text. Our copy of the plots has only the axes, up to 10⁹ in (a) and up to
        9 in (b).
Open    The settings are those of Figure 7, whose runs are shared, because edges are the other half of each
        release. An edge is an item on a day of the week. On MovieLens, it is an item and a group of users
        (gender × age). The available copy of Gowalla has no times. There, an edge is a place and its region
        of the world, so each place has only one edge that can be above zero. The precision of the top ten is
        a mean over contexts. Online Retail has no records on Saturdays, so any ten items are then the top
        ten. On MovieLens, each group also has its own results.
"""

from __future__ import annotations

from experiments.fan2015._counts import (
    ABOVE_ONE,
    ABOVE_ZERO,
    COMMON,
    OURS,
    OWN,
    READINGS,
    Counts,
    GroupPrecision,
    GroupTaste,
    differences,
    mean_differences,
)
from experiments.fan2015.data import AS_BUILT, FILE, one_law, rows_of
from experiments.fan2015.unreleased import AllRecords
from workbench import Sweep, run
from workbench.compiled import pd
from workbench.trials.claims import ALIKE, OFTEN, Finding, check_between, paired_ratios
from workbench.value import value

OF = "edges"


def check_slight_drop(rows, level) -> Finding:
    """Check whether the mechanisms SRA and HPA find fewer of the top ten edges than of the top ten items, but
    at most by a factor of 1.25.
    """
    ours = rows[rows.series.isin(OURS)]
    both = ours.assign(method=ours.series, series=ours.of)
    ratios = paired_ratios(both, "items", "edges", ["panel", "method"])
    return check_between(ratios, level, ABOVE_ONE, ALIKE, OFTEN, "a slight drop")


def check_each_group(rows, level) -> Finding:
    """Check whether the mechanism HPA finds more of the top ten than SRA in each group of MovieLens."""
    numbers = mean_differences(differences(rows, ["HPA"], ["SRA"], ["group"]), ["group"])
    return check_between(numbers, level, low=ABOVE_ZERO, words="more")


def check_tastes(rows, level) -> Finding:
    """Check whether each group's own top ten films have a larger share of its records than the overall top
    ten have of all records.
    """
    own = one_law(rows_of(rows, "MovieLens"))
    groups = own[own.part == OWN].value
    (common,) = own[own.part == COMMON].value
    measured = f"{groups.min():.2%}–{groups.max():.2%} in the groups, {common:.2%} of all"
    return Finding(bool((groups > common).all()), measured)


@value
class Fig8(Counts):
    """Errors, divergences and precision of edge counts, for five mechanisms."""

    title = "Edge counts, by five methods"
    headline = "On edges, LPA has the highest error, and SRA preserves the distribution better than HPA"
    rests_on = ("f-8a.1", "f-8b.2")
    page = "Fan & Jin, WWW 2015, section 6.3, Figure 8"
    of = OF

    def rows(self, store) -> pd.DataFrame:
        """Return the errors of edge counts, and the precision in each group of MovieLens."""
        frames = [super().rows(store)]
        for name, case in self.cases().items():
            if case.of != "MovieLens":
                continue
            where = {"panel": name, "law": AS_BUILT if case.twin else FILE}
            for reading in READINGS:
                methods = self.methods(case, reading)
                ours = [methods[series] for series in OURS]
                groups = run(Sweep([case.dataset], ours, [GroupPrecision()], self.seeds), store)
                groups = groups.assign(series=groups.mechanism_name, reading=reading)
                frames.append(groups.assign(**where))
            tastes = run(Sweep([case.dataset], [AllRecords()], [GroupTaste()], 1), store)
            frames.append(tastes.assign(**where))
        return pd.concat(frames, ignore_index=True)
