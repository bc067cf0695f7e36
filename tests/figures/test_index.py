"""A paper's figures at a glance."""

from workbench.figures import find_notebooks, project_folder
from workbench.figures.site import Index


def test_every_notebook_of_the_paper_is_linked_with_its_committed_picture():
    index = Index("cormode2012")
    shown = index._repr_html_()
    notebooks = find_notebooks(project_folder() / "notebooks")
    every = {id for id in notebooks if id.startswith("cormode2012_")}
    assert {entry.id for entry in index.entries()} == every and len(every) > 5
    assert shown.count("<img") == shown.count("<a href=") == len(every)
    assert 'href="fig3.ipynb"' in shown and "Figure 3: Error of the summaries" in shown
    assert "holds 11, holds for some unprinted value 6" in shown
