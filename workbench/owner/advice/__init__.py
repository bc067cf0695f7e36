"""Advice: simulated errors of each mechanism from public beliefs, before any budget is spent.

It never sees a table. `Beliefs` simulates data from public numbers, and `advise` runs the candidate
mechanisms on it.
"""

from workbench.owner.advice.advice import Advice, advise
from workbench.owner.advice.beliefs import Beliefs
from workbench.owner.advice.bounds import BoundAdvice, advise_bounds
from workbench.owner.advice.simulation import Row
