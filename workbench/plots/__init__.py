"""Rows to axes, in one style. Plots run nothing, load nothing and save nothing; they know column names.

The same mechanism looks the same in every figure: colour and marker follow from its name in words
(`named` puts it into a column `series`). Colours are Okabe and Ito's, which the colour-blind tell
apart; markers differ too, for print without colour. A mark is a mean over seeds, its band the 95 %
interval of that mean, hollow where δ > 0 is promised; grey is what the paper prints, dashes theory.
"""

from workbench.plots.areas import cells as cells
from workbench.plots.areas import maps as maps
from workbench.plots.areas import project as project
from workbench.plots.areas import shade as shade
from workbench.plots.areas import shades as shades
from workbench.plots.axes import close as close
from workbench.plots.axes import legend as legend
from workbench.plots.axes import panels as panels
from workbench.plots.grids import Panel as Panel
from workbench.plots.grids import chosen as chosen
from workbench.plots.grids import grid as grid
from workbench.plots.grids import lawful as lawful
from workbench.plots.grids import laws as laws
from workbench.plots.lines import bars as bars
from workbench.plots.lines import curves as curves
from workbench.plots.lines import groups as groups
from workbench.plots.lines import printed as printed
from workbench.plots.lines import theory as theory
from workbench.plots.looks import COLUMN as COLUMN
from workbench.plots.looks import CROWDED as CROWDED
from workbench.plots.looks import FRACTIONS as FRACTIONS
from workbench.plots.looks import HISTOGRAMS as HISTOGRAMS
from workbench.plots.looks import LABELS as LABELS
from workbench.plots.looks import LOOKS as LOOKS
from workbench.plots.looks import PAGE as PAGE
from workbench.plots.looks import SHADES as SHADES
from workbench.plots.looks import STYLE as STYLE
from workbench.plots.looks import SUMMARIES as SUMMARIES
from workbench.plots.looks import SYMBOLS as SYMBOLS
from workbench.plots.looks import WORDS as WORDS
from workbench.plots.looks import look as look
from workbench.plots.looks import measured as measured
from workbench.plots.looks import named as named
from workbench.plots.looks import styled as styled
