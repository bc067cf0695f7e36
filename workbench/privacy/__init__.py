"""Privacy guarantees, receipts for measurements, and the rules that add them up.

`DP` is (ε, δ)-differential privacy. `ZCDP` is zero-concentrated differential privacy, whose ρ adds up more
tightly over many measurements. Conversions between the two use exact rational arithmetic and round once, at
the end, in the direction that never understates the cost.

The whole package uses one convention. Two inputs are *neighbours* if one equals the other with every record
of one *unit* (usually one person) removed: `ADD_REMOVE`. A receipt for any other relation names that
relation, and receipts for different relations never add up silently.
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
