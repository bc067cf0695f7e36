"""A workbench for publishing data under differential privacy.

A dataset loads private data, for example a table of patients. A mechanism turns the data into a release,
which you may publish. From the release you get answers to a workload, which is a list of queries. In
experiments, metrics compare these answers with the true answers. A sweep runs a mechanism many times and
collects the results as rows of a table. A plot draws these results. A claim is a statement of a paper that is
checked against the results.

The subpackages are imported when you first use their names, so `import workbench` is fast.
"""

from importlib import import_module
from typing import Any

_PACKAGES = (
    "cli compiled data datasets estimates figures inference mechanisms noise owner privacy queries "
    "spaces trials value widgets"
).split()
_INSIDE = {  # packages in packages, which programs import from here
    "advice": "owner.advice",
    "audit": "owner.audit",
    "claims": "trials.claims",
    "laws": "mechanisms.laws",
    "metrics": "trials.metrics",
    "plots": "figures.plots",
    "scale": "owner.scale",
}
_NAMES = {
    "privacy": "DP Receipt ZCDP compose guarantee",
    "spaces": "Attributes Bins Cross Domain Labels Map Prefixes Quadtree Taxonomy TimePart",
    "queries": (
        "Boxes Dyadic Haar Level Marginals NamedMarginals Nodes Products RandomBoxes "
        "RandomMarginalRanges RandomRanges RandomSubsets RandomTables Ranges Subsets TableQueries"
    ),
    "data": "PUBLIC UNBOUNDED Bound Interactions Records SparseTable WideTable",
    "noise": "Aligned",
    "estimates.release": "Release",
    "mechanisms.protocol": "Mechanism",
    "mechanisms": "MaximumEntropySynthesis",
    "trials.claims": "Claim Verdict",
    "trials": "Sweep Trial run",
    "owner": "Bank Budget Session",
    "owner.advice": "Advice Beliefs advise",
}
_HOME = {name: room for room, names in _NAMES.items() for name in names.split()}

__version__ = "0.1.0"
__all__ = sorted([*_HOME, "datasets", "inference", "mechanisms", "metrics"])


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"workbench.{_HOME[name]}"), name)
    if name in _PACKAGES or name in _INSIDE:
        return import_module(f"workbench.{_INSIDE.get(name, name)}")
    raise AttributeError(f"module 'workbench' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
