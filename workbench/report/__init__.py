"""Executed notebooks, figures and verdicts to one page that can be sent to anyone.

The page reads what notebooks saved and runs nothing. It holds no script and fetches nothing:
math is MathML, pictures are part of it. What a notebook says about its figure (the cells that
begin with its title, *Reading the figure*, *Where we differ*) is taken over in its own words.
"""

from workbench.report.comparison import write_comparison as write_comparison
from workbench.report.entries import Entry as Entry
from workbench.report.entries import collect as collect
from workbench.report.index import Index as Index
from workbench.report.markup import markdown as markdown
from workbench.report.page import render as render
from workbench.report.page import write as write
