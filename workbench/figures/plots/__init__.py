"""Functions that draw the results of figures. Results are data frames with one number per row, and the
functions use their columns by name. The functions do not run experiments, and do not read or write files.

A mechanism has the same colour and marker in every figure. Both follow from the mechanism's name, which
`name_series` writes to the column `series`. Colours are those of Okabe and Ito, which colour-blind people can
distinguish. Markers also differ, so that a print without colour can be read. Curves that differ only in a
number have the same colour, which is darker for larger numbers. A marker shows the mean over seeds
(repetitions with different noise). A hollow marker means that the guarantee has δ > 0. A band shows the 95 %
interval of the mean. If there are fewer than five seeds, dots show the value of each seed instead. The
paper's numbers are grey, and theoretical curves are grey and dashed.
"""

from workbench.figures.plots.axes import aggregates as aggregates
from workbench.figures.plots.axes import close as close
from workbench.figures.plots.axes import entitle as entitle
from workbench.figures.plots.axes import lay_out as lay_out
from workbench.figures.plots.axes import legend as legend
from workbench.figures.plots.axes import panels as panels
from workbench.figures.plots.grids import Panel as Panel
from workbench.figures.plots.grids import color_limits as color_limits
from workbench.figures.plots.grids import color_position as color_position
from workbench.figures.plots.grids import grid as grid
from workbench.figures.plots.grids import maps as maps
from workbench.figures.plots.grids import panel_rows as panel_rows
from workbench.figures.plots.grids import project as project
from workbench.figures.plots.grids import tabulate_means as tabulate_means
from workbench.figures.plots.grids import theory_curves as theory_curves
from workbench.figures.plots.lines import curves as curves
from workbench.figures.plots.lines import grouped_bars as grouped_bars
from workbench.figures.plots.lines import marks as marks
from workbench.figures.plots.lines import printed as printed
from workbench.figures.plots.lines import theory as theory
from workbench.figures.plots.released import release_picture as release_picture
from workbench.figures.plots.style import AXIS_LABELS as AXIS_LABELS
from workbench.figures.plots.style import COLORMAP as COLORMAP
from workbench.figures.plots.style import MAX_MARKERS as MAX_MARKERS
from workbench.figures.plots.style import PAGE_WIDTH as PAGE_WIDTH
from workbench.figures.plots.style import PERCENT_COLUMNS as PERCENT_COLUMNS
from workbench.figures.plots.style import SERIES_STYLES as SERIES_STYLES
from workbench.figures.plots.style import SYMBOLS as SYMBOLS
from workbench.figures.plots.style import in_words as in_words
from workbench.figures.plots.style import metric_name as metric_name
from workbench.figures.plots.style import name_series as name_series
from workbench.figures.plots.style import on_a_slide as on_a_slide
from workbench.figures.plots.style import on_page as on_page
from workbench.figures.plots.style import page as page
from workbench.figures.plots.style import series_styles as series_styles
