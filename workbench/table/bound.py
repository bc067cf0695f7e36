"""How far one unit can move counts, and what says so; or that nothing is left to protect."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import cast

from workbench.value import not_allowed
from workbench.wording import number

STATED = "as stated"
ENFORCED = "enforced"
BELIEVED = "believed, not enforced"
_STATUSES = (STATED, ENFORCED, BELIEVED)

_LARGEST_MOVE = 1e300  # of one unit
_LONGEST_UNIT = 300  # characters


@dataclass(frozen=True)
class Bound:
    """How far one unit moves a table: at most `l0` cells, each by at most `linf`, `l1` in all.

    Parameters
    ----------
    l0 : int
        Cells, at least 1.
    linf : float
        Counts in each of them, at least 1: counts are integers, so a unit that moves one moves it by 1.
    l1 : float, optional
        Counts in all cells together, from `linf` to l0·linf, which is the default.
    unit : str
        Whom it is about, in words: "a trip", "a user (column user_id)".
    status : "as stated", "enforced" or "believed, not enforced"
        Whether anything but somebody's word says that it holds. Neither of the two is part of how far a
        unit moves a table: bounds are equal, and print alike, whatever is said of them.

    Raises
    ------
    ValueError
        A number out of its range, or words that do not fit on a line.

    Examples
    --------
    >>> Bound(l0=4, linf=2).l1, Bound(l0=4, linf=2, l1=5).l2
    (8, 3.1622776601683795)
    """

    l0: int = 1
    linf: float = 1
    l1: float = cast(float, None)  # l0·linf
    unit: str = field(default="", compare=False, repr=False, kw_only=True)
    status: str = field(default=STATED, compare=False, repr=False, kw_only=True)

    def __post_init__(self) -> None:
        if self.status not in _STATUSES:
            raise not_allowed(self, "status", f"need one of {', '.join(map(repr, _STATUSES))}")
        on_a_line = isinstance(self.unit, str) and self.unit.isprintable()
        if not on_a_line or len(self.unit) > _LONGEST_UNIT:
            need = f"need words on one line, at most {_LONGEST_UNIT} characters"
            raise not_allowed(self, "unit", need)
        for name in ("l0", "linf", "l1"):
            limit = getattr(self, name)
            if hasattr(limit, "item"):  # numpy's integers wrap
                object.__setattr__(self, name, limit.item())
        in_range = isinstance(self.l0, int | float) and 1 <= self.l0 <= _LARGEST_MOVE
        if isinstance(self.l0, bool) or not in_range or self.l0 != int(self.l0):
            raise not_allowed(self, "l0", "need a whole number >= 1")
        if self.l1 is None:
            object.__setattr__(self, "l1", self.l0 * self.linf)
        for name in ("linf", "l1"):
            number = getattr(self, name)
            if isinstance(number, bool) or not 1 <= number <= _LARGEST_MOVE:
                need = (
                    "need a finite number >= 1, because a unit moves a count by 1 or not at all"
                )
                raise not_allowed(self, name, need)
        if self.l1 > self.l0 * self.linf or self.l1 < self.linf:
            raise not_allowed(self, "l1", f"need linf <= l1 <= l0·linf = {self.l0 * self.linf}")

    def of(self, unit: str) -> Bound:
        """The same bound of a unit in words, which nobody enforces: beyond 1, 1 it is only believed.

        Parameters
        ----------
        unit : str
            What is protected, as "a trip".

        Returns
        -------
        Bound

        Examples
        --------
        >>> Bound(10, 10).of("a household").status, Bound(1, 1).of("a trip").status
        ('believed, not enforced', 'as stated')
        """
        is_one = self.l0 == 1 and self.linf == 1
        return replace(self, unit=unit, status=STATED if is_one else BELIEVED)

    def believed(self, unit: str) -> Bound:
        """The same bound of a unit that nobody has cut to it, nor said that a row is one."""
        return replace(self, unit=unit, status=BELIEVED)

    def enforced(self, unit: str) -> Bound:
        """The same bound, to which each unit was cut."""
        return replace(self, unit=unit, status=ENFORCED)

    @property
    def in_words(self) -> str:
        """What one unit adds at most, in a sentence, and what was done about it."""
        limit = f"{number(self.linf)} to one cell"
        if self.l0 != 1:
            limit = f"{number(self.linf)} to each of {number(self.l0)} cells"
        if self.l1 != self.l0 * self.linf:
            limit = f"{limit}, {number(self.l1)} in all"
        if self.status == ENFORCED:
            unit = self.unit.removeprefix("a ").removeprefix("an ")
            return (
                f"Enforced: each {unit or 'user'} adds at most {limit}. The rest was left out at random: "
                "counts and error bars are about what was kept."
            )
        one = f"one unit ({self.unit})" if self.unit else "one unit"
        if self.status == BELIEVED:
            return (
                f"Believed, not enforced: {one} adds at most {limit}. Whoever adds more is protected "
                "less."
            )
        return f"As stated, {one} adds at most {limit}."

    @property
    def counts_what(self) -> str:
        """What counts and error bars are about where units were truncated to the bound; else ""."""
        return self.in_words if self.status == ENFORCED else ""

    @property
    def l2(self) -> float:
        """Sensitivity of the counts in the l2 norm."""
        return min(sqrt(self.l0) * self.linf, sqrt(self.l1 * self.linf), self.l1)

    @property
    def l2_squared(self) -> Fraction:
        """The square of the sensitivity of the counts in the l2 norm, exactly.

        Of all moves, filling cell after cell is the longest: as many cells as l1 allows move by linf, and
        one by what is left.

        >>> Bound(l0=3, linf=2, l1=5).l2_squared
        Fraction(9, 1)
        """
        linf = Fraction(self.linf)
        filled, rest = divmod(Fraction(self.l1), linf)
        return filled * linf**2 + rest**2

    def merged(self, cells: int) -> Bound:
        """The bound of sums over disjoint groups of at most so many cells.

        >>> Bound(l0=3, linf=2, l1=5).merged(2)
        Bound(l0=3, linf=4, l1=5)
        """
        return replace(self, linf=min(self.l1, min(cells, self.l0) * self.linf))


class Public:
    """What a table says instead of a bound when it is public: nothing is left to protect."""

    def __repr__(self) -> str:
        return "PUBLIC"

    def __reduce__(self) -> str:
        return "PUBLIC"  # there is one, also after copying and in other processes


PUBLIC = Public()


class Unbounded:
    """What interactions say instead of a bound: a user has any number of records, and is one unit."""

    def __repr__(self) -> str:
        return "UNBOUNDED"

    def __reduce__(self) -> str:
        return "UNBOUNDED"


UNBOUNDED = Unbounded()
