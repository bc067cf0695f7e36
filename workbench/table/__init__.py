"""Private counts over a domain, non-empty cells only, and how far one unit can move them."""

from workbench.table.bound import (
    BELIEVED,
    ENFORCED,
    PUBLIC,
    STATED,
    UNBOUNDED,
    Bound,
    Public,
    Unbounded,
)
from workbench.table.value import SparseTable
