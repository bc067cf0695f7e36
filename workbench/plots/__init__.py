"""Rows to axes, in one style. Plots run nothing, load nothing and save nothing; they know column names.

The same mechanism looks the same in every figure: colour and marker follow from its name in words
(`name_series` puts it into a column `series`, with the fields that vary). Colours are Okabe and Ito's,
which the colour-blind tell apart; markers differ too, for print without colour. A mark is a mean over
seeds and nothing else, its band the 95 % interval of that mean, hollow where δ > 0 is promised; grey is
what the paper prints, dashes theory.
"""

from workbench.plots.areas import cells as cells
from workbench.plots.areas import color_limits as color_limits
from workbench.plots.areas import color_position as color_position
from workbench.plots.areas import maps as maps
from workbench.plots.areas import project as project
from workbench.plots.axes import close as close
from workbench.plots.axes import legend as legend
from workbench.plots.axes import panels as panels
from workbench.plots.grids import Panel as Panel
from workbench.plots.grids import grid as grid
from workbench.plots.grids import panel_rows as panel_rows
from workbench.plots.grids import theory_curves as theory_curves
from workbench.plots.grids import theory_dashes as theory_dashes
from workbench.plots.labels import AXIS_LABELS as AXIS_LABELS
from workbench.plots.labels import PERCENT_COLUMNS as PERCENT_COLUMNS
from workbench.plots.labels import SYMBOLS as SYMBOLS
from workbench.plots.labels import metric_name as metric_name
from workbench.plots.layout import lay_out as lay_out
from workbench.plots.lines import bars as bars
from workbench.plots.lines import curves as curves
from workbench.plots.lines import grouped_bars as grouped_bars
from workbench.plots.lines import printed as printed
from workbench.plots.lines import theory as theory
from workbench.plots.released import release_picture as release_picture
from workbench.plots.series import HISTOGRAMS as HISTOGRAMS
from workbench.plots.series import SERIES_STYLES as SERIES_STYLES
from workbench.plots.series import SUMMARIES as SUMMARIES
from workbench.plots.series import name_series as name_series
from workbench.plots.series import series_style as series_style
from workbench.plots.strips import strips as strips
from workbench.plots.style import COLORMAP as COLORMAP
from workbench.plots.style import FONTS as FONTS
from workbench.plots.style import MAX_MARKERS as MAX_MARKERS
from workbench.plots.style import PAGE_WIDTH as PAGE_WIDTH
from workbench.plots.style import WIDTHS as WIDTHS
from workbench.plots.style import on_page as on_page
