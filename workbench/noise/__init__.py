"""Where noise is drawn: noisy values of private data, and a receipt that says what they cost.

Every function takes exact values and returns noisy ones with a `Receipt`; nothing else makes receipts,
so a release's ledger is complete by construction. With `rng=None` the bits come from the operating
system and the laws are exact: fit to publish. With a numpy Generator the same samplers run from its
bits and the receipt says `simulated`. Not constant-time: timing a release tells more than it says.

Noise on values
    `geometric`, `laplace`      noise on a vector of values
    `add_noise`, `variance`     either, by name, and the variance of it
    `gaussian`                  discrete Gaussian noise, whose price is a ρ
    `gaussian_on_grid`          the same on numbers that are rounded to a grid
    `PortionedGeometric`        noise on one vector that is given in portions: one receipt
    `alp_projection`            counts in unary at hashed places of a bit array, with flipped bits
    `randomised_response`       every tuple through a channel of its own, which protects it by itself

Which cells, nodes or candidates
    `threshold_sample`          non-empty cells with noise, and the empty cells that pass, in one
    `priority_sample`           measurement: above a filter and a threshold, or the largest priorities
    `noisy_threshold`           which counts, zeros among them, reach a threshold with noise on each
    `stability_histogram`       non-empty cells alone, with noise, above a threshold so high that
    `stability_threshold`       δ covers the rest
    `exponential_mechanism`     one candidate a row, the likelier the higher its score
    `dirichlet_multinomial`     synthetic records from counts and a prior, at a price the caller proves

Without private data, and without a receipt
    `threshold_sample_public`   the same sampling of public noisy values: the second step of the
    `priority_sample_public`    laborious process
    `uniform_keys`              a public sample of keys
    `random_words`              random words that a release contains
    `empty_cell`, `decay`       the law of an empty cell, and by what geometric noise decays
    `check_size`                refuses summaries too large to hold

Receipts in place of the sum of the draws
    `by_theorem`                where a theorem prices a procedure below it
    `withdrawn`                 where a paper prices it wrongly: the release promises nothing
    `unprotected`               where no noise protects a measurement: the same

`Aligned` is a seeded `rng` under which noise stays with its cell while parameters move.
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
from workbench.noise.discrete_gaussian import (
    GaussianBlock,
    gaussian,
    gaussian_on_grid,
    l2_of_sum,
)
from workbench.noise.exponential import dirichlet_multinomial, exponential_mechanism
from workbench.noise.measurement import (
    priority_sample,
    priority_sample_public,
    threshold_sample,
    threshold_sample_public,
)
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
