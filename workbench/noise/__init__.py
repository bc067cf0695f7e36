"""Noise on private data, with a receipt that states the privacy cost of each measurement.

Every function takes exact values, and returns noisy values together with a `Receipt`, which records the
privacy cost. Only this package writes receipts, so the receipts of a release always add up to its full cost.
With `rng=None`, the random bits come from the operating system, and you may publish the result. If you pass a
numpy Generator, anyone with its seed can compute the noise, so the receipt is marked as `simulated`.

The noise has exactly the stated distribution, without rounding errors, unless a receipt is marked as
`idealised`. The running time can depend on the data, so somebody who measures the time may learn more than
the release shows.

Noise on values
    `geometric`, `laplace`      noise on a vector of values
    `add_noise`, `variance`     the same for a named distribution, and the variance of the noise
    `gaussian`                  discrete Gaussian noise, priced in ρ
    `gaussian_on_grid`          the same for numbers that are rounded to a grid
    `PortionedGeometric`        geometric noise on a long vector that arrives in portions
    `PortionedGaussian`         Gaussian noise on such a vector
    `alp_projection`            counts as bits at hashed places of a bit array, some of which are flipped
    `randomised_response`       noise on each tuple separately, which protects the tuple by itself

Choice of cells, nodes or candidates
    `threshold_sample`          noisy cells that pass a filter and are then sampled
    `priority_sample`           noisy cells with the largest priorities
    `noisy_threshold`           counts that reach a threshold after noise, including counts of 0
    `stability_histogram`       non-empty cells whose noisy count reaches a threshold
    `stability_threshold`       the smallest threshold that is safe for it, for a given δ
    `gaussian_sparse_histogram` non-empty cells with Gaussian noise, and the exact δ
    `misra_gries`               noisy counters of a sketch that reach a threshold
    `correlated_gaussian`       Gaussian noise with a part that all cells share
    `item_blanket`              a fixed number of cells, of which random ones hide the others
    `exponential_mechanism`     one candidate per row, more probable if its score is higher
    `dirichlet_multinomial`     synthetic records from counts and a prior

Functions without private data, and without a receipt
    `threshold_sample_public`   threshold sampling of public noisy values
    `priority_sample_public`    priority sampling of public noisy values
    `uniform_keys`              a public sample of keys
    `random_words`              random words that a release contains
    `empty_cell`, `decay`       the distribution for an empty cell, and the decay of geometric noise
    `check_size`                a check that a summary fits in memory

Receipts that replace the sum of the draws
    `by_theorem`                for a procedure that costs less than the sum, by a theorem
    `withdrawn`                 for a procedure whose printed price is wrong
    `unprotected`               for a measurement without noise

`Aligned` is a seeded `rng` that keeps the noise of each cell fixed while parameters change.
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
