"""Fan & Jin 2015, Figure 8: edge counts from sampled users, against the existing methods.

Paper   Fan & Jin, WWW 2015: section 6.3 and Figure 8; parameters from section 6 (setup).
Read    from the text; of the plots our copy has the axes only, (a) to 10⁹ and (b) to 9.
Open    as in Figure 7, with which it shares its runs: edges are the other half of each release. An
        edge is an item on a day of the week; on MovieLens an item and a group of users (gender × age);
        in the copy of Gowalla that is at hand, which has no times, a place and its region of the
        world, so that every place has one edge that can be above zero. The top ten are those of each
        context, averaged; Online Retail has no Saturdays, whose ten are then any ten. Of MovieLens'
        groups each is also scored by itself.
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
    """SRA and HPA find fewer of the ten of edges than of items, and those nearly as many."""
    ours = rows[rows.series.isin(OURS)]
    both = ours.assign(method=ours.series, series=ours.of)
    ratios = paired_ratios(both, "items", "edges", ["panel", "method"])
    return check_between(ratios, level, ABOVE_ONE, ALIKE, OFTEN, "a slight drop")


def check_each_group(rows, level) -> Finding:
    """HPA finds more of the ten than SRA in each group of MovieLens."""
    numbers = mean_differences(differences(rows, ["HPA"], ["SRA"], ["group"]), ["group"])
    return check_between(numbers, level, low=ABOVE_ZERO, words="more")


def check_tastes(rows, level) -> Finding:
    """A group's own ten films have more of its records than everybody's ten have of all."""
    own = one_law(rows_of(rows, "MovieLens"))
    groups = own[own.part == OWN].value
    (common,) = own[own.part == COMMON].value
    measured = f"{groups.min():.2%}–{groups.max():.2%} in the groups, {common:.2%} of all"
    return Finding(bool((groups > common).all()), measured)


@value
class Fig8(Counts):
    """Counts of edges."""

    title = "Edge counts, by five methods"
    headline = "On edges, LPA has the highest error, and SRA preserves the distribution better than HPA"
    rests_on = ("f-8a.1", "f-8b.2")
    page = "Fan & Jin, WWW 2015, section 6.3, Figure 8"
    of = OF

    def rows(self, store) -> pd.DataFrame:
        """The errors of all edge counts; then of MovieLens' groups, each by itself."""
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
