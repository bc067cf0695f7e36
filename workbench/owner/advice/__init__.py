"""Advice on which mechanism to use, before any budget is spent. You describe your data from public knowledge.
The workbench simulates data that fit this description, and compares mechanisms on them.

`Beliefs` contains your description, for example the number of records, and generates simulated data that agree
with it. `advise` runs mechanisms on the simulated data and compares their errors. Only two functions use the
private table. `records_of_people` counts the records of each person, and `choose_bound` chooses a bound from
these numbers. The choice spends an ε that you pass.
"""

from workbench.owner.advice.advice import Advice, advise
from workbench.owner.advice.beliefs import Beliefs
from workbench.owner.advice.bounds import (
    BoundAdvice,
    advise_bounds,
    choose_bound,
    records_of_people,
    refuse_bounds,
)
from workbench.owner.advice.simulation import Row
