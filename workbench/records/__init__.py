"""Private records in a hierarchy, and a level of nodes on its way down."""

from workbench.records.frontier import Frontier
from workbench.records.value import Records
