"""Hierarchies as dictionaries that JSON can hold, and back."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from workbench.domain import Domain
from workbench.hierarchy.attributes import Attributes
from workbench.hierarchy.prefixes import Prefixes
from workbench.hierarchy.protocol import Hierarchy
from workbench.hierarchy.quadtree import Quadtree
from workbench.hierarchy.taxonomy import Taxonomy

_BY_NAME = {cls.__name__: cls for cls in (Quadtree, Prefixes, Taxonomy)}


def to_dict(tree: Hierarchy) -> dict[str, Any]:
    """Its class, as `kind`, and its fields."""
    if isinstance(tree, Attributes):
        return {"kind": "Attributes", "domain": tree.domain.to_dict()}
    some: Any = tree  # each kind is a dataclass
    return {"kind": type(tree).__name__} | {f.name: getattr(tree, f.name) for f in fields(some)}


def from_dict(record: dict[str, Any]) -> Hierarchy:
    """A hierarchy of `to_dict`; lists of lists, as JSON has them, are fine."""
    if record["kind"] == "Attributes":
        return Attributes(Domain.from_dict(record["domain"], folder=None))
    values = {name: _tuples(x) for name, x in record.items() if name != "kind"}
    return _BY_NAME[record["kind"]](**values)


def _tuples(x: Any) -> Any:
    return tuple(map(_tuples, x)) if isinstance(x, list) else x
