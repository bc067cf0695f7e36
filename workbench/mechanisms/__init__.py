"""Every mechanism, one line each."""

from workbench.mechanisms.alp import ALP as ALP
from workbench.mechanisms.basic_adaptive_histogram import (
    BasicAdaptiveHistogram as BasicAdaptiveHistogram,
)
from workbench.mechanisms.count_sketch import CountSketch as CountSketch
from workbench.mechanisms.direct_synthesis import DirectSynthesis as DirectSynthesis
from workbench.mechanisms.dirichlet_synthesis import DirichletSynthesis as DirichletSynthesis
from workbench.mechanisms.flipping import Flipping as Flipping
from workbench.mechanisms.fpa import FPA as FPA
from workbench.mechanisms.geometric_histogram import GeometricHistogram as GeometricHistogram
from workbench.mechanisms.gs import GS as GS
from workbench.mechanisms.hierarchical_histogram import (
    HierarchicalHistogram as HierarchicalHistogram,
)
from workbench.mechanisms.high_pass_filter import HighPassFilter as HighPassFilter
from workbench.mechanisms.hpa import HPA as HPA
from workbench.mechanisms.improved_adaptive_histogram import (
    ImprovedAdaptiveHistogram as ImprovedAdaptiveHistogram,
)
from workbench.mechanisms.laborious import Laborious as Laborious
from workbench.mechanisms.laplace_histogram import LaplaceHistogram as LaplaceHistogram
from workbench.mechanisms.laplace_queries import LaplaceQueries as LaplaceQueries
from workbench.mechanisms.lpa import LPA as LPA
from workbench.mechanisms.priority_sampling import PrioritySampling as PrioritySampling
from workbench.mechanisms.priv_tree import PrivTree as PrivTree
from workbench.mechanisms.privelet import Privelet as Privelet
from workbench.mechanisms.retention_replacement import (
    RetentionReplacement as RetentionReplacement,
)
from workbench.mechanisms.sra import SRA as SRA
from workbench.mechanisms.stability_histogram import StabilityHistogram as StabilityHistogram
from workbench.mechanisms.threshold_sampling import ThresholdSampling as ThresholdSampling
from workbench.mechanisms.unattributed_histogram import (
    UnattributedHistogram as UnattributedHistogram,
)
from workbench.mechanisms.uniform_sampling import UniformSampling as UniformSampling

ALL = tuple(v for v in list(vars().values()) if isinstance(v, type))
