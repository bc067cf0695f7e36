"""Descriptions of the possible values of records: domains, hierarchies, and rules that turn a row of data
into labels, which are the names of values.

A domain is a table's list of attributes with their possible values, for example 100 ages and 2 sexes. A
hierarchy is a tree that divides a space of values, for example all points of a square, into smaller and
smaller parts. A part is called a *node*.

In a hierarchy, every value has a number, which is called the *key* of the value. The key has one digit for each
level of the tree. On each level, the tree divides a node into children, and the digit is the number of the
child that contains the value. For example, all values in a node at level 3 have keys with the same first three
digits. The workbench stores a node as two numbers: the level of the node, and the lowest key of the values in
the node. If records are sorted by key, the records of a node are next to one another. A key takes one or two
64-bit words.
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
