"""Public in, better public out: nothing here can hold private data, so nothing here costs anything."""

from workbench.inference.alpha import select_alpha as select_alpha
from workbench.inference.balanced import balanced as balanced
from workbench.inference.consistent import consistent as consistent
from workbench.inference.isotonic import isotonic as isotonic
from workbench.inference.isotonic import rounded as rounded
from workbench.inference.kernel_pca import KernelPCA as KernelPCA
from workbench.inference.kernel_pca import product_prior as product_prior
from workbench.inference.maximum_entropy import MaximumEntropy as MaximumEntropy
from workbench.inference.maximum_entropy import (
    MaximumEntropyAsPrinted as MaximumEntropyAsPrinted,
)
from workbench.inference.refilter import refilter as refilter
from workbench.inference.tree import NonnegativeLeastSquares as NonnegativeLeastSquares
from workbench.inference.tree import Zeroed as Zeroed
from workbench.inference.tree import nonnegative as nonnegative
from workbench.inference.tree import nonnegative_least_squares as nonnegative_least_squares
from workbench.inference.tree import tree as tree
