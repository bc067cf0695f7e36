"""Conversions between ρ and (ε, δ), each proven in rational arithmetic."""

from __future__ import annotations

from fractions import Fraction
from itertools import count

from experiments.benchmarks._timing import timed
from workbench import DP, ZCDP, Receipt, guarantee
from workbench.noise.additive import geometric_rho
from workbench.privacy import rho_above

SORTS = 0.4


def main() -> list[dict]:
    """Time of a conversion; numbers are others each time, so that none is remembered."""
    tiny = count(1)
    same = [Receipt("geometric", DP(0.1)), Receipt("gaussian", ZCDP(0.02))] * 50
    others = [Receipt("geometric", DP(0.01 + i / 1e5)) for i in range(20)] * 5

    def fresh() -> float:
        return 1 + next(tiny) / 1e9

    calls = {
        "ε of ρ = 0.1 at δ = 10⁻⁹": lambda: ZCDP(0.1 * fresh()).at(1e-9),
        "ρ within ε = 1, δ = 10⁻⁹": lambda: ZCDP.within(DP(fresh(), 1e-9)),
        "ρ of ε = 0.5": lambda: rho_above(0.5 * fresh()),
        "ρ of 25 dyadic levels": lambda: geometric_rho(Fraction(0.02 * fresh()), 25, 1),
        "ε of a ledger of 100 receipts, 2 different": lambda: guarantee(same, 1e-9 * fresh()),
        "ε of a ledger of 100 receipts, 20 different": lambda: guarantee(
            others, 1e-9 * fresh()
        ),
    }
    return [timed(name, call, SORTS, repeat=9) for name, call in calls.items()]
