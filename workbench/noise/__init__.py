"""Noise on private data, with a receipt that states the privacy cost of each measurement.

Most functions take exact values, and return noisy values together with a `Receipt`, which records the privacy
cost. Only this package writes receipts, so the receipts of a release always add up to its full cost. With
`rng=None`, the random bits come from the operating system, and you may publish the result. If you pass a
numpy Generator, anyone with its seed can compute the noise, so the receipt is marked as `simulated`.

The noise has exactly the stated distribution, without rounding errors, unless a receipt is marked as
`idealised`. The running time can depend on the data, so somebody who measures the time may learn more than
the release shows.

Noise on values
    `geometric`, `laplace`      noise on a vector of values, with the privacy cost in ε
    `add_noise`, `variance`     one of these two noises by name, and the variance of the noise
    `gaussian`                  discrete Gaussian noise, with the privacy cost in ρ
    `gaussian_on_grid`          discrete Gaussian noise on numbers that are rounded to a grid
    `PortionedGeometric`        geometric noise on a long vector that you pass in portions
    `PortionedGaussian`         Gaussian noise on a long vector that you pass in portions
    `alp_projection`            counts in an array of bits, of which some are flipped at random
    `randomised_response`       random changes of each record, independently of other records

Choice of cells, values or candidates
    `threshold_sample`          noisy cells that pass a filter and are then sampled
    `priority_sample`           noisy cells with the largest priorities
    `noisy_threshold`           which counts reach a threshold after noise is added
    `stability_histogram`       non-empty cells whose noisy count reaches a threshold
    `stability_threshold`       smallest safe threshold of a stability histogram
    `gaussian_sparse_histogram` non-empty cells whose count with Gaussian noise reaches a threshold
    `misra_gries`               counts of frequent elements, from a sketch with few counters
    `correlated_gaussian`       non-empty cells with Gaussian noise, part of which is common to all
    `item_blanket`              fixed number of cells, where random cells hide the non-empty ones
    `exponential_mechanism`     one candidate per row, more likely if its score is higher
    `dirichlet_multinomial`     synthetic records from counts and a prior distribution

Functions without private data, and without a receipt
    `threshold_sample_public`   sample of noisy values that are already public
    `priority_sample_public`    noisy values with the largest priorities, already public
    `uniform_keys`              random set of cells of a public domain
    `random_words`              random words that a release contains
    `empty_cell`, `decay`       noise of an empty cell, and the decay ε/l1 of geometric noise
    `check_size`                check that a release fits into memory

Receipts for whole procedures
    `by_theorem`                if a theorem proves a smaller cost than the sum of the measurements
    `withdrawn`                 if the guarantee of a procedure in its paper is wrong
    `unprotected`               if a value is released without noise

`Aligned` is a seeded generator for interactive pages. If you change a parameter on such a page, each cell
keeps its noise.
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
