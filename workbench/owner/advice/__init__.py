"""Advice: how far off each summary would be, from public numbers alone, before any budget is spent.

It never sees a table: `errors` computes what to expect from a domain, a budget, a bound and, if one is
declared, a model of the counts; the mechanisms' own formulas choose θ and τ.
"""

from workbench.owner.advice.advice import (
    Advice,
    TaskAdvice,
    TaskOption,
    advise,
    compare_noise_of,
)
from workbench.owner.advice.bounds import BoundAdvice, advise_bounds
from workbench.owner.advice.noise import CountModel, NoiseComparison, compare_noise
from workbench.owner.advice.summaries import Option, predict_errors
from workbench.owner.advice.tasks import (
    advise_boxes,
    advise_degrees,
    advise_marginals,
    advise_per_user,
    advise_records,
    advise_rows,
    advise_top,
    advise_users,
)
