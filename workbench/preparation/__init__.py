"""How an attribute's labels follow from the columns of one row: stated, public, never learnt from data."""

from workbench.preparation.bins import Bins
from workbench.preparation.labels import Cross, Labels, Map
from workbench.preparation.rule import Rule
from workbench.preparation.times import TimePart

__all__ = ["Bins", "Cross", "Labels", "Map", "Rule", "TimePart"]
