"""Advice: simulated errors of each mechanism from public beliefs, before any budget is spent.

`Beliefs` simulates data from public numbers, and `advise` runs the candidate mechanisms on it. Only
`choose_bound` uses the private table, and it spends a stated ε.
"""

from workbench.owner.advice.advice import Advice, advise
from workbench.owner.advice.beliefs import Beliefs
from workbench.owner.advice.bounds import BoundAdvice, advise_bounds
from workbench.owner.advice.choice import choose_bound, records_of_people, refuse_bounds
from workbench.owner.advice.simulation import Row
