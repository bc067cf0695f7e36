"""Functions that declare parameters of figures. They mark a parameter that the paper does not print
(`unprinted`), or a parameter that only changes the time of a run and the accuracy of its results (`effort`).
"""

from functools import partial

from workbench.figures import EFFORT, UNPRINTED
from workbench.figures.fields import number, whole

unprinted = partial(whole, kind=UNPRINTED)
unprinted_number = partial(number, kind=UNPRINTED)
effort = partial(whole, kind=EFFORT)
effort_number = partial(number, kind=EFFORT)
