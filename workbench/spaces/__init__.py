"""Spaces: domains, hierarchies, and the rules that turn the values of a row into labels.

A hierarchy gives every value a *key*, which is stored in one or two 64-bit words. A key consists of digits
from coarse to fine, with one digit per level. A *node* at level ℓ contains all keys with the same first ℓ
digits, and its lowest key identifies it. The keys of a node are consecutive, so its records are consecutive
if records are sorted.
"""

from workbench.spaces.domain import Domain as Domain
from workbench.spaces.hierarchies import (
    Digits,
    Hierarchy,
    Keys,
    OverHierarchy,
    argsort_keys,
    child_digits,
    keys_above,
    search_unsorted,
    searchsorted_keys,
)
from workbench.spaces.labels import Bins, Cross, Labels, Map, Unlisted
from workbench.spaces.prefixes import SYMBOLS, Prefixes
from workbench.spaces.quadtree import Quadtree
from workbench.spaces.rules import Rule
from workbench.spaces.taxonomy import Attributes, Taxonomy, from_dict, to_dict
from workbench.spaces.times import TimePart
