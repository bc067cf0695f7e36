"""How an attribute's labels follow from the columns of one row: stated, public, never learnt from data."""

from workbench.preparation.bins import Bins
from workbench.preparation.labels import Cross, Labels, Map
from workbench.preparation.rows import Refusal, examples_of, refusals, row_keys
from workbench.preparation.rule import Rule
from workbench.preparation.statements import BLANK, read_json, rule_from_dict, rule_to_dict
from workbench.preparation.times import TimePart

__all__ = [
    "BLANK",
    "Bins",
    "Cross",
    "Labels",
    "Map",
    "Refusal",
    "Rule",
    "TimePart",
    "examples_of",
    "read_json",
    "refusals",
    "row_keys",
    "rule_from_dict",
    "rule_to_dict",
]
