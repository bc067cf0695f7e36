"""What one measurement of private data cost, and which neighbours its guarantee is about."""

from __future__ import annotations

from dataclasses import field

from workbench.privacy.budgets import DP, ZCDP, finite_above_zero
from workbench.value import not_allowed, parameter, value

ADD_REMOVE = "add-remove-one-unit"
REPLACE = "replace-one-unit"
LOCAL = "local"
RELATIONS = (ADD_REMOVE, REPLACE, LOCAL)
WITHDRAWN = "(as printed, guarantee withdrawn)"


@value
class Receipt:
    """One measurement of private data and its price; made by `workbench.noise` alone.

    `part` names a cell of a declared partition of the units, as (partition, part): measurements of
    different parts of one partition compose in parallel (under add-or-remove only). `simulated` marks
    noise that anyone with the seed can replay; `idealised` marks a law drawn with floating point.
    Neither is fit to publish. `theorem` says where a price stands that is below the sum of its draws;
    `withdrawn` marks a procedure as a paper prints it, whose guarantee is wrong. `rho` is the ρ that
    follows from the structure of a measurement whose cost is an ε, such as noise on each of many counts:
    it is below the ε·tanh(ε/2) that any measurement of this ε is charged.
    """

    name: str
    cost: DP | ZCDP
    relation: str = parameter(ADD_REMOVE, choices=RELATIONS)
    simulated: bool = False
    idealised: bool = False
    part: tuple[str, str] | None = None
    theorem: str = ""
    withdrawn: bool = False
    rho: float | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        wrong = None if self.rho is None else finite_above_zero(self.rho)
        if wrong:
            raise not_allowed(self, "rho", wrong)

    @property
    def description(self) -> str:
        """The name, and what is particular about the price: for people, and in files."""
        if self.theorem:
            return f"{self.name} (by theorem: {self.theorem})"
        if self.withdrawn:
            return f"{self.name} {WITHDRAWN}"
        return self.name
