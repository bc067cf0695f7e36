"""Public in, better public out: nothing here can hold private data, so nothing here costs anything."""

from workbench.inference.consistent import consistent
from workbench.inference.cross_validation import cross_validated_errors, select_alpha
from workbench.inference.isotonic import isotonic, round_to_counts
from workbench.inference.kernel_pca import KernelPCA
from workbench.inference.least_squares import tree_least_squares
from workbench.inference.maximum_entropy import MaximumEntropy, NotConverged
from workbench.inference.maximum_entropy_as_printed import MaximumEntropyAsPrinted
from workbench.inference.nonnegative import (
    NonnegativeLeastSquares,
    Zeroed,
    nonnegative_least_squares,
    zero_negative_subtrees,
)
from workbench.inference.priors import product_prior
from workbench.inference.refilter import refilter
from workbench.inference.simplex import project_to_simplex
