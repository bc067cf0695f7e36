"""Advice on which mechanism to use, before any budget is spent. The advice comes from simulations with data
that you describe from public knowledge.

`Beliefs` contains your description, for example the number of records, and generates simulated data that
agree with it. `advise` runs mechanisms on the simulated data and compares their errors. `choose_bound` is the
only function here that uses the private table. This function spends an ε that you choose.
"""

from workbench.owner.advice.advice import Advice, advise
from workbench.owner.advice.beliefs import Beliefs
from workbench.owner.advice.bounds import BoundAdvice, advise_bounds
from workbench.owner.advice.choice import choose_bound, records_of_people, refuse_bounds
from workbench.owner.advice.simulation import Row
