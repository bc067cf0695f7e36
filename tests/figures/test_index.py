"""A paper's figures at a glance."""

import pandas as pd
from matplotlib.figure import Figure

from workbench import figures
from workbench.figures.site import Index
from workbench.trials.claims import HOLDS, Verdict

ID = "cormode2012_fig3"


def test_every_notebook_of_the_paper_is_linked_and_what_has_run_is_shown(tmp_path):
    index = Index("cormode2012", tmp_path)
    before = index._repr_html_()
    assert before.count("no picture yet") == len(index.entries()) > 5
    assert 'href="fig3.ipynb"' in before and "Figure 3: Error of the summaries" in before
    drawing = Figure()
    drawing.subplots().plot([1, 2])
    description = figures.Description(ID, "A <title>", "workbench reproduce")
    figures.save(
        drawing,
        pd.DataFrame({"value": [1.0], "truth_public": True}),
        spec=description,
        profile="quick",
        results=tmp_path,
        verdicts=[Verdict("x-1", "It falls.", HOLDS)],
    )
    after = index._repr_html_()
    assert after.count("<img") == 1 and "holds 11, holds for some unprinted value 6" in after
