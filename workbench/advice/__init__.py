"""Advice: how far off each summary would be, from public numbers alone, before any budget is spent.

It never sees a table: `errors` computes what to expect from a domain, a budget, a bound and, if one is
declared, a model of the counts; the mechanisms' own formulas choose θ and τ.
"""

from workbench.advice.advice import Advice, advise
from workbench.advice.model import CountModel
from workbench.advice.moved import compare_noise_of
from workbench.advice.noise_kinds import NoiseComparison, compare_noise
from workbench.advice.options import Option, predict_errors
from workbench.advice.tasks import (
    TaskAdvice,
    TaskOption,
    advise_boxes,
    advise_degrees,
    advise_marginals,
    advise_per_user,
    advise_records,
    advise_rows,
    advise_top,
    advise_users,
)
