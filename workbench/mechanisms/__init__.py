"""Every mechanism, one line each; its file is loaded when its name is first asked for."""

import re
from importlib import import_module
from typing import Any

_NAMES = """
    ALP BasicAdaptiveHistogram CountSketch DirectSynthesis DirichletSynthesis Flipping FPA
    GaussianHistogram GaussianQueries GeometricHistogram GS HierarchicalHistogram HighPassFilter
    HPA ImprovedAdaptiveHistogram
    Laborious LaplaceHistogram LaplaceQueries LPA PrioritySampling PrivTree Privelet
    RetentionReplacement SRA StabilityHistogram ThresholdSampling UnattributedHistogram
    UniformSampling
""".split()
_COMPOSED = [
    "ChosenContributions",
    "ChosenThreshold",
    "MaximumEntropySynthesis",
]  # of others, whose laws hold them

__all__ = _NAMES + _COMPOSED


def __getattr__(name: str) -> Any:
    """A mechanism's class, `ALL` of them in the order of their files, or those `COMPOSED` of others."""
    if name == "ALL":
        return tuple(__getattr__(cls) for cls in _NAMES)
    if name == "COMPOSED":
        return tuple(__getattr__(cls) for cls in _COMPOSED)
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_file_of(name)}"), name)


def __dir__() -> list[str]:
    return [*__all__, "ALL", "COMPOSED"]


def _file_of(name: str) -> str:
    """The file of a class: `priv_tree` for `PrivTree`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
