"""How a space splits: points, strings and code lists, refined one digit a level; public knowledge.

A hierarchy gives every value a *key*, its digits from the coarsest to the finest, in a mixed radix: of
one 64-bit word, or of two where they are too many. A *node* at level ℓ is a prefix of ℓ digits, named by
its lowest key; it holds a run of consecutive keys, so that of sorted records it holds a slice.
"""

from workbench.hierarchy.attributes import Attributes as Attributes
from workbench.hierarchy.digits import Digits as Digits
from workbench.hierarchy.keys import Keys as Keys
from workbench.hierarchy.keys import argsort_keys as argsort_keys
from workbench.hierarchy.keys import child_digits as child_digits
from workbench.hierarchy.keys import search_unsorted as search_unsorted
from workbench.hierarchy.keys import searchsorted_keys as searchsorted_keys
from workbench.hierarchy.prefixes import SYMBOLS as SYMBOLS
from workbench.hierarchy.prefixes import Prefixes as Prefixes
from workbench.hierarchy.protocol import Hierarchy as Hierarchy
from workbench.hierarchy.quadtree import Quadtree as Quadtree
from workbench.hierarchy.serialise import from_dict as from_dict
from workbench.hierarchy.serialise import to_dict as to_dict
from workbench.hierarchy.taxonomy import Taxonomy as Taxonomy
