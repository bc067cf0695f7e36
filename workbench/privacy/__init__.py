"""Privacy guarantees, and receipts, which record privacy costs. The functions of this package add up the costs
of receipts.

The class `DP` describes (ε, δ)-differential privacy. The class `ZCDP` describes zero-concentrated differential
privacy (zCDP), which measures the privacy loss by a number ρ. For many measurements, adding up ρ gives a
smaller total loss than adding up ε. Conversions between ε and ρ use exact rational arithmetic. Only the final
result is rounded, so that it never understates the cost.

A guarantee compares neighbours: two data sets that differ in one unit, usually one person. By default, one of
the two data sets contains all records of the unit and the other contains none of them. The constant
`ADD_REMOVE` stands for this definition of neighbours. Some mechanisms use another definition of neighbours, and
their receipts name this definition. The workbench never adds up costs with different definitions.
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
