"""Spaces: domains, hierarchies, and the rules that turn the values of a row into labels.

A hierarchy gives every value a *key*, its digits from the coarsest to the finest, in a mixed radix: of
one 64-bit word, or of two where they are too many. A *node* at level ℓ is a prefix of ℓ digits, named by
its lowest key; it holds a run of consecutive keys, so that of sorted records it holds a slice.
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
