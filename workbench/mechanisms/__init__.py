"""Mechanisms: algorithms that turn private data into a release. Related mechanisms share a file, which Python
loads when you first use one of the mechanisms.
"""

from importlib import import_module
from typing import Any

from workbench import compiled

_FILES = {
    "adaptive": "BasicAdaptiveHistogram PrivTree ImprovedAdaptiveHistogram",
    "chosen": "ChosenContributions ChosenThreshold",
    "contributions": "SRA HPA LPA",
    "direct_synthesis": "DirectSynthesis",
    "dirichlet": "DirichletSynthesis",
    "hierarchical": "HierarchicalHistogram UnattributedHistogram InfTDA",
    "histograms": "LaplaceHistogram GeometricHistogram GaussianHistogram Privelet",
    "local": "RetentionReplacement Flipping",
    "microdata": "AIM MaximumEntropySynthesis",
    "selection": "GeometricSelection WeightedSelection",
    "queries": "LaplaceQueries GaussianQueries",
    "sketches": "CountSketch ALP",
    "smoothing": "FPA GS",
    "sparse": "ItemBlanket GaussianSparseHistogram MisraGries CorrelatedGaussianSparseHistogram",
    "straw_men": "UniformSampling Laborious",
    "summaries": "HighPassFilter ThresholdSampling PrioritySampling StabilityHistogram",
}
FAMILIES = {file: names.split() for file, names in _FILES.items()}
HEADINGS = {
    "Summaries of sparse tables": "summaries sparse",
    "Histograms and trees": "histograms hierarchical",
    "Chosen queries": "queries",
    "Users with many records": "contributions smoothing",
    "Synthetic records": "adaptive direct_synthesis microdata",
    "Values that nobody has listed": "selection",
    "Local reports": "local",
    "For comparison": "sketches dirichlet straw_men",
}  # files of the mechanisms under each heading of a list
_FILE_OF = {name: file for file, names in _FILES.items() for name in names.split()}
_COMPOSED = [
    "ChosenContributions",
    "ChosenThreshold",
    "GeometricSelection",
    "MaximumEntropySynthesis",
    "WeightedSelection",
]  # of others, whose laws hold them, or of values without a domain, whose tests do
_NAMES = sorted({*_FILE_OF} - {*_COMPOSED}, key=str.lower)

__all__ = _NAMES + _COMPOSED


def __getattr__(name: str) -> Any:
    """Return the class of the mechanism with this name. For the name "COMPOSED", return a tuple of the
    classes that contain other mechanisms or select unlisted values. For the name "ALL", return a tuple of all
    other classes, in alphabetical order.
    """
    if name == "ALL":
        return tuple(__getattr__(cls) for cls in _NAMES)
    if name == "COMPOSED":
        return tuple(__getattr__(cls) for cls in _COMPOSED)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILE_OF[name]}"), name)


def find(name: str) -> type | None:
    """Return the class of a mechanism by its name. The class may be in the workbench, in a module that `--with`
    names, or in another installed package. For classes of the workbench, case does not matter. Return None if
    there is no such class.
    """
    if name not in __all__ and (other := compiled.find("mechanisms", name)) is not None:
        return other
    ours = {known.lower(): known for known in __all__}.get(name.lower())
    return __getattr__(ours) if ours else None


def __dir__() -> list[str]:
    return [*__all__, "ALL", "COMPOSED"]
