"""Adaptive histograms: where a tree is refined, and what its leaves tell of a map or of strings."""

from __future__ import annotations

from typing import Any, ClassVar

from workbench.claims import interpolate_log_log
from workbench.datasets import QueryLogTwin, Towns
from workbench.libraries import pd
from workbench.mechanism import Release
from workbench.mechanisms import (
    BasicAdaptiveHistogram,
    DirectSynthesis,
    ImprovedAdaptiveHistogram,
    PrivTree,
)
from workbench.plots import Panel
from workbench.privacy import DP
from workbench.records import Records
from workbench.shares import sensitivity
from workbench.value import value
from workbench.widgets.controls import Control, decades, field_control
from workbench.widgets.scenes import Picture, Setup, Values
from workbench.widgets.scenes.leaf_maps import ERROR, EXPECTED, RELEASE, TRUTH, map_picture
from workbench.widgets.scenes.leaf_strings import TOP, string_picture
from workbench.widgets.scenes.summaries import refuse_many
from workbench.widgets.setting import Setting

IMPROVED = ImprovedAdaptiveHistogram.series
BASIC = BasicAdaptiveHistogram.series
DIRECT = DirectSynthesis.series
TREE = PrivTree.__name__
MAP, STRINGS = "map", "strings"


@value
class Adaptive:
    """Two adaptive histograms, PrivTree and direct synthesis of points on a map, or of strings."""

    name: ClassVar[str] = "adaptive"
    title: ClassVar[str] = "Adaptive histograms and direct synthesis"
    words: ClassVar[str] = (
        "Homes on a map, or strings, are counted in a tree that is refined where noisy counts reach "
        "the threshold; its leaves are drawn beside the truth, in one scale of colours. The improved "
        "histogram discards t records at every split, and PrivTree lowers counts by level, so that "
        "depth is free; the basic one and direct synthesis divide ε by the depth. Few leaves have "
        "little noise and blur the map, many the other way round."
    )
    noise_note: ClassVar[str] = (
        "Every level is drawn from a stream of its own. While the same nodes are asked, the threshold "
        "and the discount keep their noise and ε scales it; after the first that are others, and on "
        "the leaves, it is other noise from the same seed."
    )
    controls: ClassVar[tuple[Control, ...]] = (
        Control("mechanism", IMPROVED, (IMPROVED, BASIC, DIRECT, TREE), "choice"),
        Control("epsilon", 1.0, decades(0.02, 10), label="ε", doc="privacy loss"),
        field_control(
            ImprovedAdaptiveHistogram,
            "threshold",
            100,
            decades(1, 10**4, zero=True, whole=True),
            doc="noisy count from which a node is split; 0 is PrivTree's own",
            when=({"mechanism": (IMPROVED, BASIC, TREE)},),
        ),
        Control(
            "own_discount",
            False,
            kind="switch",
            label="own discount",
            doc="else the least that Theorem 3 allows",
            when=({"mechanism": (IMPROVED,)},),
        ),
        field_control(
            ImprovedAdaptiveHistogram,
            "discount",
            200,
            decades(1, 10**4, whole=True),
            label="discount, t",
            doc="records discarded at every split",
            when=({"mechanism": (IMPROVED,), "own_discount": (True,)},),
        ),
        field_control(
            BasicAdaptiveHistogram,
            "depth",
            8,
            range(1, 25),
            doc="at most; it divides ε",
            when=({"mechanism": (BASIC, DIRECT)},),
        ),
        field_control(
            DirectSynthesis, "stop", None, label="stop early", when=({"mechanism": (DIRECT,)},)
        ),
        field_control(
            ImprovedAdaptiveHistogram,
            "measure",
            0.5,
            tuple(round(k / 20, 2) for k in range(1, 20)),
            label="share of the leaves",
            when=({"mechanism": (IMPROVED, BASIC, TREE)},),
        ),
        Control("data", MAP, (MAP, STRINGS), "choice", doc="homes in towns; searches"),
        field_control(Towns, "records", 100_000, decades(1000, 10**6, whole=True), unit=""),
        field_control(
            Towns,
            "spread",
            2.0,
            decades(0.1, 20),
            label="spread of a town",
            when=({"data": (MAP,)},),
        ),
    )
    grid: ClassVar[dict[str, tuple[Any, ...]]] = {
        "mechanism": (IMPROVED, BASIC, DIRECT, TREE),
        "epsilon": (0.1, 0.2, 0.5, 1.0, 2.0),
        "threshold": (30, 100, 200, 500, 1000),
        "spread": (0.5, 1.0, 2.0, 4.0, 8.0),
    }

    def setup(self, values: Values) -> Setup:
        """The settings as a mechanism on points or strings."""
        v = values
        refuse_many("records", v["records"])
        data = Towns(v["records"], spread=v["spread"])
        if v["data"] == STRINGS:
            data = QueryLogTwin(v["records"])
        budget = DP(v["epsilon"])
        splits = dict(threshold=v["threshold"], measure=v["measure"])
        if v["mechanism"] == DIRECT:
            return Setup(data, DirectSynthesis(budget, v["depth"], stop=v["stop"]))
        if v["mechanism"] == BASIC:
            return Setup(data, BasicAdaptiveHistogram(budget, depth=v["depth"], **splits))
        if v["mechanism"] == TREE:
            return Setup(data, PrivTree(budget, **splits))
        discount = v["discount"] if v["own_discount"] else None
        return Setup(data, ImprovedAdaptiveHistogram(budget, discount=discount, **splits))

    def picture(
        self, setting: Setting, data: Records, release: Release, seed: int, exact: bool
    ) -> Picture:
        """The truth's cells and the release's leaves; errors of boxes, or counts of strings."""
        series = setting.values["mechanism"]
        draw = string_picture if _of_strings(setting) else map_picture
        picture = draw(setting.dataset, data, release, series)
        facts = setting.mechanism.decision_facts(data.hierarchy, sensitivity(data))
        return picture._replace(facts=[*picture.facts, *facts.items()])

    def panels(self, setting: Setting, rows: pd.DataFrame) -> list[Panel]:
        """Truth and release; errors by the size of boxes, or the most frequent strings."""
        strings = _of_strings(setting)
        drawn = "prefix by prefix" if strings else "records per km²"
        panels = []
        for panel in (TRUTH, RELEASE):
            where = dict(panel=panel, seed=rows.seed.min())
            outlines = panel == RELEASE
            title = f"{panel.title()}, {drawn}"
            panels.append(
                Panel(title, where, "", cells=True, outlines=outlines, equal=not strings)
            )
        if strings:
            title = "The most frequent strings, if found"
            return [*panels, Panel(title, {"panel": TOP}, "place", log="y")]
        theory = []
        for name, law in rows[rows.panel == EXPECTED].groupby("series", sort=False):
            errors = law.groupby("side").value.mean()
            theory.append((name, interpolate_log_log(errors.index, errors)))
        title = "Error of all boxes"
        return [*panels, Panel(title, {"panel": ERROR}, "side", theory=theory, fit_theory=True)]


def _of_strings(setting: Setting) -> bool:
    return setting.values["data"] == STRINGS
