"""Functions that draw the results of figures. Results are data frames with one number per row. The functions
do not run experiments, and do not read or write files.

A mechanism has the same colour and marker in every figure. The functions choose them by the mechanism's name,
which `name_series` writes to the column `series`. The colours are from the palette of Okabe and Ito, which
colour-blind people can distinguish. Markers also differ, so that you can read a print without colour. Curves
that differ only in a number have shades of the same colour, which are darker for larger numbers. A marker
shows the mean over seeds (repetitions with different noise). A hollow marker means that the guarantee has δ >
0. A band shows the 95 % confidence interval of the mean. If there are fewer than five seeds, dots show the
value of each seed instead of a band. The paper's numbers are grey. Theoretical curves are grey and dashed.
"""

from workbench.figures.plots.axes import aggregates, close, entitle, lay_out, legend, panels
from workbench.figures.plots.grids import (
    Panel,
    color_limits,
    color_position,
    grid,
    maps,
    panel_rows,
    project,
    tabulate_means,
    theory_curves,
)
from workbench.figures.plots.lines import curves, grouped_bars, marks, printed, theory
from workbench.figures.plots.released import release_picture
from workbench.figures.plots.style import (
    AXIS_LABELS,
    COLORMAP,
    MAX_MARKERS,
    PAGE_WIDTH,
    PERCENT_COLUMNS,
    SERIES_STYLES,
    SYMBOLS,
    in_words,
    metric_name,
    name_series,
    on_a_slide,
    on_page,
    page,
    series_styles,
)
