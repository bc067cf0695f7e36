"""Figures of papers. A figure runs experiments, draws the results, and checks what the paper says about them.
This package also writes the files of a figure, for example its pictures.

Each figure is a subclass of `Figure`. Its fields are the parameters of the paper's experiment, and their
default values are those of the paper. The id of a figure says where its files are. For example, the code of
cormode2012_fig5 is in `experiments/cormode2012/fig5.py`, and its notebook is
`notebooks/cormode2012/fig5.ipynb`.
"""

from workbench.compiled import project_folder as project_folder
from workbench.figures.exported import Export as Export
from workbench.figures.figure import EFFORT as EFFORT
from workbench.figures.figure import KINDS as KINDS
from workbench.figures.figure import PROFILES as PROFILES
from workbench.figures.figure import SETTING as SETTING
from workbench.figures.figure import UNPRINTED as UNPRINTED
from workbench.figures.figure import Figure as Figure
from workbench.figures.figure import describe as describe
from workbench.figures.figure import find_figure as find_figure
from workbench.figures.figure import find_notebooks as find_notebooks
from workbench.figures.figure import results_folder as results_folder
from workbench.figures.notebook import FigureRun as FigureRun
from workbench.figures.notebook import committed_verdicts as committed_verdicts
from workbench.figures.notebook import open_notebook as open_notebook
from workbench.figures.notebook import parameters_cell as parameters_cell
from workbench.figures.saved import Description as Description
from workbench.figures.saved import SavedFigure as SavedFigure
from workbench.figures.saved import figure_folder as figure_folder
from workbench.figures.saved import load as load
from workbench.figures.saved import save as save
from workbench.figures.saved import versions as versions
from workbench.figures.saved import write_atomically as write_atomically
