"""Fields of figures that the papers do not print, or that are effort."""

from functools import partial

from workbench.figures import EFFORT, UNPRINTED
from workbench.figures.fields import number, whole

unprinted = partial(whole, kind=UNPRINTED)
unprinted_number = partial(number, kind=UNPRINTED)
effort = partial(whole, kind=EFFORT)
effort_number = partial(number, kind=EFFORT)
