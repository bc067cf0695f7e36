"""Every mechanism, one line each; its file is loaded when its name is first asked for."""

from importlib import import_module
from typing import Any

_FILES = {
    "ALP": "alp",
    "BasicAdaptiveHistogram": "basic_adaptive_histogram",
    "CountSketch": "count_sketch",
    "DirectSynthesis": "direct_synthesis",
    "DirichletSynthesis": "dirichlet_synthesis",
    "Flipping": "flipping",
    "FPA": "fpa",
    "GeometricHistogram": "geometric_histogram",
    "GS": "gs",
    "HierarchicalHistogram": "hierarchical_histogram",
    "HighPassFilter": "high_pass_filter",
    "HPA": "hpa",
    "ImprovedAdaptiveHistogram": "improved_adaptive_histogram",
    "Laborious": "laborious",
    "LaplaceHistogram": "laplace_histogram",
    "LaplaceQueries": "laplace_queries",
    "LPA": "lpa",
    "PrioritySampling": "priority_sampling",
    "PrivTree": "priv_tree",
    "Privelet": "privelet",
    "RetentionReplacement": "retention_replacement",
    "SRA": "sra",
    "StabilityHistogram": "stability_histogram",
    "ThresholdSampling": "threshold_sampling",
    "UnattributedHistogram": "unattributed_histogram",
    "UniformSampling": "uniform_sampling",
}
__all__ = list(_FILES)


def __getattr__(name: str) -> Any:
    """A mechanism's class, or `ALL` of them in the order of their files."""
    if name == "ALL":
        return tuple(__getattr__(cls) for cls in _FILES)
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_FILES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "ALL"]
