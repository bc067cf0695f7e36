"""Whether something holds, fails, or needs more seeds: True, False or None, as `Finding.holds` has it."""

from __future__ import annotations

from collections.abc import Iterable


def decide(holds: bool, fails: bool) -> bool | None:
    """True where it surely holds, False where it surely fails, None where more seeds decide.

    >>> decide(True, False), decide(False, True), decide(False, False)
    (True, False, None)
    """
    if holds:
        return True
    return False if fails else None


def decide_all(parts: Iterable[bool | None]) -> bool | None:
    """Whether all parts hold: one that fails decides, one that is undecided leaves it open.

    >>> decide_all([True, True]), decide_all([True, None, False]), decide_all([True, None])
    (True, False, None)
    """
    parts = list(parts)
    return decide(all(parts), False in parts)
