"""How a space splits: points, strings and code lists, refined one digit a level; public knowledge.

A hierarchy gives every value a *key*, its digits from the coarsest to the finest, in a mixed radix: of
one 64-bit word, or of two where they are too many. A *node* at level ℓ is a prefix of ℓ digits, named by
its lowest key; it holds a run of consecutive keys, so that of sorted records it holds a slice.
"""

from workbench.hierarchy.attributes import Attributes
from workbench.hierarchy.digits import Digits
from workbench.hierarchy.keys import (
    Keys,
    argsort_keys,
    child_digits,
    keys_above,
    search_unsorted,
    searchsorted_keys,
)
from workbench.hierarchy.prefixes import SYMBOLS, Prefixes
from workbench.hierarchy.protocol import Hierarchy, OverHierarchy
from workbench.hierarchy.quadtree import Quadtree
from workbench.hierarchy.serialise import from_dict, to_dict
from workbench.hierarchy.taxonomy import Taxonomy
