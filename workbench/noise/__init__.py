"""Noise on private data, with a receipt that states the privacy cost of each measurement.

Most functions take exact values, and return noisy values together with a `Receipt`, which records the privacy
cost. Only this package writes receipts, so the receipts of a release always add up to the full cost of the
release.

By default (`rng=None`), the random bits come from the operating system, so you may publish the result. If you
pass a seeded numpy Generator, anyone with the seed can compute the noise. The receipt is then marked as
`simulated`.

The noise has exactly the stated distribution, without rounding errors, unless a receipt is marked as
`idealised`. The running time can depend on the data. So someone who measures the time may learn more about
the data than the release shows.

Noise on values
    `geometric`, `laplace`      noise on a vector of values, with the privacy cost in ε
    `add_noise`, `variance`     geometric or Laplace noise by name, and the variance of this noise
    `gaussian`                  discrete Gaussian noise on integers, with the privacy cost in ρ
    `gaussian_on_grid`          discrete Gaussian noise on numbers that are rounded to a grid
    `PortionedGeometric`        geometric noise on a long vector that you pass in portions
    `PortionedGaussian`         Gaussian noise on a long vector that you pass in portions
    `alp_projection`            array of bits that stores counts, with some bits flipped at random
    `randomised_response`       random changes of each record, independently of other records

Choice of cells, values or candidates
    `threshold_sample`          random sample of the cells whose noisy count is large enough
    `priority_sample`           random sample of a fixed number of noisy cells (large counts are more likely)
    `noisy_threshold`           positions of the counts whose noisy value reaches a threshold
    `stability_histogram`       non-empty cells whose noisy count reaches a threshold
    `stability_threshold`       smallest safe threshold of a stability histogram
    `gaussian_sparse_histogram` non-empty cells whose count with Gaussian noise reaches a threshold
    `correlated_gaussian`       large counts, where all cells share one part of the Gaussian noise
    `misra_gries`               largest counts of a table, from a summary with few counters
    `item_blanket`              fixed number of cells: non-empty cells, and random cells that hide them
    `exponential_mechanism`     random choice of candidates, where higher scores are more likely
    `dirichlet_multinomial`     synthetic records from counts and a prior distribution

Functions without private data, and without a receipt
    `threshold_sample_public`   random sample of noisy values that are already public
    `priority_sample_public`    fixed number of noisy values that are already public
    `uniform_keys`              random set of cells of a public domain
    `random_words`              random 64-bit numbers, for example for hash functions
    `empty_cell`                distribution of the noise on an empty cell
    `decay`                     decay ε/l1 of geometric noise
    `check_size`                check that a release fits into memory

Receipts for whole procedures
    `by_theorem`                for a procedure that, by a theorem, costs less than the sum of its measurements
    `withdrawn`                 for a procedure whose paper states a wrong guarantee
    `unprotected`               for a value that is released without noise

`Aligned` is a seeded generator for interactive pages. If you change a parameter on an interactive page, the
noise of each cell stays the same.
"""

from workbench.noise.additive import (
    PortionedGeometric,
    add_noise,
    empty_cell,
    geometric,
    laplace,
    variance,
)
from workbench.noise.arguments import decay
from workbench.noise.blanket import item_blanket
from workbench.noise.correlated import CorrelatedNoise, correlated_gaussian, correlated_noise
from workbench.noise.discrete_gaussian import (
    GaussianBlock,
    PortionedGaussian,
    gaussian,
    gaussian_on_grid,
    l2_of_sum,
)
from workbench.noise.exponential import dirichlet_multinomial, exponential_mechanism
from workbench.noise.gaussian_sparse import SparseNoise, gaussian_sparse_histogram, sparse_noise
from workbench.noise.measurement import (
    priority_sample,
    priority_sample_public,
    threshold_sample,
    threshold_sample_public,
)
from workbench.noise.misra_gries import misra_gries, misra_gries_threshold
from workbench.noise.parts import MAX_RELEASED_CELLS, Block, check_size
from workbench.noise.response import alp_projection, randomised_response
from workbench.noise.source import (
    by_theorem,
    random_words,
    uniform_keys,
    unprotected,
    withdrawn,
)
from workbench.noise.stability import noisy_threshold, stability_histogram, stability_threshold
from workbench.randomness import Aligned
