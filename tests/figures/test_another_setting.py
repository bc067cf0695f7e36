"""A figure under another setting and at a small size: its rows and its picture follow the setting."""

from dataclasses import replace

import numpy as np
import pytest

from experiments.adaptive2009 import fig5 as points
from experiments.adaptive2009 import fig6_7, fig8_9, fig10
from experiments.adaptive2009 import table1 as squares
from experiments.adaptive2009.shared import LOG, TWIN
from experiments.chen2012 import fig5 as times
from experiments.cormode2012 import c6, fig2, fig4, fig5
from experiments.hay2010 import appE, fig3, fig6, fig7, thm4
from experiments.hay2010 import fig5 as sorted_counts
from tests.figures.worlds import figure_of
from workbench.figures import plots
from workbench.trials.claims import NOT_JUDGED

HALF = dict(epsilon=0.5)
COMMUTES = dict(data=TWIN, people=20_000, seeds=2)
STRINGS = dict(data=LOG, searches=20_000, seeds=1)
SETTINGS = {  # by file: what is set, and a size that is run in no time
    fig2: HALF
    | dict(m=20_000, size=2000, sizes=(2000, 4000), thetas=(10, 20), both_thetas=(5, 40))
    | dict(length=100, lengths=(10,), small=(1, 10), queries=5),
    fig4: HALF | dict(domains=(10_000,), densities=(0.1, 0.01), repeat=2),
    fig5: HALF | dict(m=4000, size=500, ranges=(10, 100), queries=5, repeat=1),
    c6: HALF
    | dict(m=5000, size=500, widths=(500, 1000), depths=(1, 4), sketches=(100,))
    | dict(samples=(100,), thetas=(20,), ranges=(1, 10), queries=5),
    fig3: dict(samples=3, length=5, steps=(1, 2)),
    sorted_counts: dict(epsilons=0.5, data="NetTrace twin", lengths=(64, 128), steps=(1, 10)),
    fig6: dict(epsilons=0.5, data="Search Logs twin", sizes=(1, 64), heights=4, queries=5),
    fig7: dict(epsilons=0.5, samples=2),
    thm4: HALF | dict(samples=3, levels_2=(3, 4), levels_4=3, levels_8=3, random=2),
    appE: dict(cells=64, domains=(64, 128), records=(1000, 10_000), buckets=(2, 4)),
    points: dict(epsilons=(0.5, 2.0)) | COMMUTES,
    fig6_7: dict(epsilons=(0.5, 2.0)) | COMMUTES,
    squares: dict(epsilons=(0.5, 2.0)) | COMMUTES,
    fig8_9: dict(epsilons=(2.0,)) | STRINGS,
    fig10: dict(epsilon=2.0) | STRINGS,
    times: dict(queries="20,40", usual_queries=20, many=60, attributes=2, merged=8)
    | dict(tuples=1000, people=1000, chains=64, steps=2, repeat=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("spec", SETTINGS, ids=lambda spec: spec.__name__[12:])
def test_rows_and_picture_follow_the_setting(spec, tmp_path):
    cls = figure_of(spec)
    seeds = {"seeds": 2} if "seeds" in cls.parameters() else {}
    figure = cls.at("quick", **seeds | SETTINGS[spec])
    rows = figure.rows(tmp_path)
    if {"epsilon", "epsilons"} & {*SETTINGS[spec]}:
        asked = getattr(figure, "epsilons", None) or (figure.epsilon,)
        assert {*asked} <= set(rows.epsilon.dropna()), "some panels have an ε of their own"
    assert rows.get("truth_public", rows.value.notna()).all() or figure.no_data
    drawing = figure.draw(rows)
    heading = drawing.get_suptitle().replace("\n", " ")
    plots.close(drawing)
    off = figure.off_paper()
    assert bool(off) == (spec is not thm4), "the theorem is for every ε and tree"
    if off:
        assert f"(not the paper's setting: {next(iter(off))} = " in heading
        assert {v.outcome for v in figure.judge(rows)} == {NOT_JUDGED}
        assert list(figure.compare_with_paper(rows).value) == list(off.values())
    if spec in (fig2, fig5, c6):
        for here, usual in zip(
            laws(figure, rows), laws(replace(figure, epsilon=0.1), rows), strict=True
        ):
            assert (here < usual).all(), "at an ε of 0.5 and of 0.1"


def laws(figure, rows):
    """Values of each line of theory."""
    curves = [law for panel in figure.panels(rows) for _, law in plots.theory_curves(panel)]
    return [law(np.array([2.0, 10.0, 100.0])) for law in curves]
