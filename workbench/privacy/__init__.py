"""What a look at the data costs: guarantees, receipts, and how they add up.

`DP` is (ε, δ)-differential privacy; `ZCDP` is zero-concentrated differential privacy, whose ρ adds up more
tightly over many measurements. What one implies of the other is proven in rational arithmetic and
rounded to the safe side once, at the end.

One convention for the whole package. Two inputs are *neighbours* when one is the other with every
record of one *unit* (usually one person) removed: `ADD_REMOVE`. A guarantee about any other relation
says so on its receipt, and receipts about different relations never add up silently.
"""

from workbench.privacy.budgets import DP, ZCDP, epsilon_above, rho_above, warn_if_large
from workbench.privacy.composition import (
    ADD_REMOVE,
    LOCAL,
    RELATIONS,
    REPLACE,
    WITHDRAWN,
    Receipt,
    compose,
    exact_cost,
    exact_rho,
    guarantee,
)
