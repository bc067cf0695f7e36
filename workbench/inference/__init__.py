"""Inference: methods that work with noisy answers that are already public. Some methods compute better answers,
and some compute answers to new queries.

This package never reads private data, so it spends no budget.
"""

from workbench.inference.as_printed import MaximumEntropyAsPrinted
from workbench.inference.consistency import (
    NonnegativeLeastSquares,
    Zeroed,
    consistent,
    isotonic,
    nonnegative_least_squares,
    project_to_simplex,
    refilter,
    round_to_counts,
    tree_least_squares,
    zero_negative_subtrees,
)
from workbench.inference.cross_validation import cross_validated_errors, select_alpha
from workbench.inference.eigenqueries import product_prior
from workbench.inference.kernel_pca import KernelPCA
from workbench.inference.maximum_entropy import MaximumEntropy, NotConverged
