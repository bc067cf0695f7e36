"""Every mechanism, one line each."""

from workbench.mechanisms.alp import ALP as ALP
from workbench.mechanisms.count_sketch import CountSketch as CountSketch
from workbench.mechanisms.dirichlet_synthesis import DirichletSynthesis as DirichletSynthesis
from workbench.mechanisms.geometric_histogram import GeometricHistogram as GeometricHistogram
from workbench.mechanisms.hierarchical_histogram import (
    HierarchicalHistogram as HierarchicalHistogram,
)
from workbench.mechanisms.high_pass_filter import HighPassFilter as HighPassFilter
from workbench.mechanisms.laborious import Laborious as Laborious
from workbench.mechanisms.laplace_histogram import LaplaceHistogram as LaplaceHistogram
from workbench.mechanisms.priority_sampling import PrioritySampling as PrioritySampling
from workbench.mechanisms.privelet import Privelet as Privelet
from workbench.mechanisms.stability_histogram import StabilityHistogram as StabilityHistogram
from workbench.mechanisms.threshold_sampling import ThresholdSampling as ThresholdSampling
from workbench.mechanisms.unattributed_histogram import (
    UnattributedHistogram as UnattributedHistogram,
)
from workbench.mechanisms.uniform_sampling import UniformSampling as UniformSampling

ALL = tuple(v for v in list(vars().values()) if isinstance(v, type))
