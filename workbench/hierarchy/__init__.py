"""How a space splits: points, strings and code lists, refined one digit a level; public knowledge.

A hierarchy gives every value a *key*, its digits from the coarsest to the finest, in a mixed radix: of
one 64-bit word, or of two where they are too many. A *node* at level ℓ is a prefix of ℓ digits, told by
its lowest key; it holds a run of consecutive keys, so that of sorted records it holds a slice.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from workbench.domain import Domain
from workbench.hierarchy.attributes import Attributes as Attributes
from workbench.hierarchy.digits import Digits as Digits
from workbench.hierarchy.digits import Hierarchy as Hierarchy
from workbench.hierarchy.digits import Keys as Keys
from workbench.hierarchy.digits import argsort_keys as argsort_keys
from workbench.hierarchy.digits import child_digits as child_digits
from workbench.hierarchy.digits import searchsorted_keys as searchsorted_keys
from workbench.hierarchy.prefixes import SYMBOLS as SYMBOLS
from workbench.hierarchy.prefixes import Prefixes as Prefixes
from workbench.hierarchy.quadtree import Quadtree as Quadtree
from workbench.hierarchy.taxonomy import Taxonomy as Taxonomy


def to_dict(tree: Hierarchy) -> dict:
    """A hierarchy in plain words, which `read` reads."""
    if isinstance(tree, Attributes):
        return {"kind": "Attributes", "domain": tree.domain.to_dict()}
    return {"kind": type(tree).__name__} | {f.name: getattr(tree, f.name) for f in fields(tree)}


def from_dict(told: dict) -> Hierarchy:
    """What `told` told; lists of lists, as JSON has them, are fine."""
    if told["kind"] == "Attributes":
        return Attributes(Domain.from_dict(told["domain"]))
    kinds = {k.__name__: k for k in (Quadtree, Prefixes, Taxonomy)}
    rest = {k: _tuples(x) for k, x in told.items() if k != "kind"}
    return kinds[told["kind"]](**rest)


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x
