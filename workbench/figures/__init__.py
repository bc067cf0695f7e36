"""Figures of papers. A figure runs the experiments of a paper, draws the results, and checks the paper's
sentences about these results. This package also writes the files of a figure, for example its pictures.

Each figure is a subclass of `Figure`. The fields of this subclass are the parameters of the paper's
experiment. By default, they have the paper's values. The id of a figure says where its files are. For
example, the code of cormode2012_fig5 is in `experiments/cormode2012/fig5.py`, and its notebook is
`notebooks/cormode2012/fig5.ipynb`.
"""

from workbench.compiled import project_folder
from workbench.figures.exported import Export
from workbench.figures.figure import (
    EFFORT,
    KINDS,
    PROFILES,
    SETTING,
    UNPRINTED,
    Figure,
    describe,
    find_figure,
    find_notebooks,
    results_folder,
)
from workbench.figures.notebook import (
    FigureRun,
    committed_verdicts,
    open_notebook,
    parameters_cell,
)
from workbench.figures.saved import (
    Description,
    SavedFigure,
    figure_folder,
    load,
    save,
    versions,
    write_atomically,
)
