"""Privacy guarantees, receipts for measurements, and the rules that add them up.

`DP` is (ε, δ)-differential privacy. `ZCDP` is zero-concentrated differential privacy, whose ρ adds up more
tightly over many measurements. Conversions between the two use exact rational arithmetic and round once, at
the end, in the direction that never understates the cost.

Two inputs are *neighbours* if one is the other without the records of one *unit*, usually one person. This
relation is `ADD_REMOVE`, and the whole package uses it. A receipt for another relation names that relation.
Receipts for different relations are never added up.
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
