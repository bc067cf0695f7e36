"""A workbench for publishing data under differential privacy.

A dataset loads private data; a mechanism turns it into a release; a release answers a workload;
metrics compare its answers with the truth; a sweep collects the rows; a plot draws them; a claim
judges them. Names are loaded on first use.
"""

from importlib import import_module
from typing import Any

_ROOMS = (
    "advice audit claims cli compiled datasets domain estimates experiment figures hierarchy "
    "inference interactions mechanism mechanisms metrics noise option_grammar plots preparation privacy "
    "records release report reproduction session shares table transform value widgets workload"
).split()
_NAMES = {
    "privacy": "DP Receipt ZCDP compose guarantee",
    "domain": "Domain",
    "hierarchy": "Attributes Prefixes Quadtree Taxonomy",
    "workload": (
        "Boxes First Level Marginals NamedMarginals Nodes Products RandomBoxes "
        "RandomMarginalRanges RandomRanges RandomSubsets RandomTables Ranges Subsets TableQueries"
    ),
    "transform": "Dyadic Haar",
    "table": "PUBLIC UNBOUNDED Bound SparseTable",
    "records": "Records",
    "interactions": "Interactions",
    "noise": "Aligned",
    "mechanism": "Mechanism",
    "release": "Release",
    "mechanisms.maximum_entropy_synthesis": "MaximumEntropySynthesis",
    "claims": "Claim Verdict",
    "advice": "Advice advise",
    "experiment": "Sweep Trial run",
    "session": "Session",
}
_HOME = {name: room for room, names in _NAMES.items() for name in names.split()}

__version__ = "0.1.0"
__all__ = sorted([*_HOME, "datasets", "inference", "mechanisms", "metrics"])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"workbench.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"workbench.{name}")
    raise AttributeError(f"module 'workbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
