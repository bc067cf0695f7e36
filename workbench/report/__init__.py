"""Executed notebooks, figures and verdicts to a site of pages that opens from disk.

The pages read what notebooks saved and run nothing but a script of search and filter; they fetch nothing:
math is MathML, pictures lie beside them. What a notebook says about its figure (the cells that
begin with its title, *Reading the figure*, *Where we differ*) is taken over in its own words.
"""

from workbench.report.comparison import write_comparison as write_comparison
from workbench.report.entries import Entry as Entry
from workbench.report.entries import collect as collect
from workbench.report.index import Index as Index
from workbench.report.markup import markdown as markdown
from workbench.report.site import write as write
