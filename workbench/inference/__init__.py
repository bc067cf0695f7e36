"""Public in, better public out: nothing here can hold private data, so nothing here costs anything."""

from workbench.inference.consistent import consistent as consistent
from workbench.inference.cross_validation import select_alpha as select_alpha
from workbench.inference.isotonic import isotonic as isotonic
from workbench.inference.isotonic import round_to_counts as round_to_counts
from workbench.inference.kernel_pca import KernelPCA as KernelPCA
from workbench.inference.least_squares import tree_least_squares as tree_least_squares
from workbench.inference.maximum_entropy import MaximumEntropy as MaximumEntropy
from workbench.inference.maximum_entropy_as_printed import (
    MaximumEntropyAsPrinted as MaximumEntropyAsPrinted,
)
from workbench.inference.nonnegative import NonnegativeLeastSquares as NonnegativeLeastSquares
from workbench.inference.nonnegative import Zeroed as Zeroed
from workbench.inference.nonnegative import (
    nonnegative_least_squares as nonnegative_least_squares,
)
from workbench.inference.nonnegative import zero_negative_subtrees as zero_negative_subtrees
from workbench.inference.priors import product_prior as product_prior
from workbench.inference.refilter import refilter as refilter
from workbench.inference.simplex import project_to_simplex as project_to_simplex
