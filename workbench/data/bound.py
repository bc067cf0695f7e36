"""Bounds on how much one unit, for example a person, can change the data, and markers for data without a
bound.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import sqrt
from typing import cast

from workbench.value import not_allowed, number

STATED = "as stated"
ENFORCED = "enforced"
BELIEVED = "believed, not enforced"
_STATUSES = (STATED, ENFORCED, BELIEVED)

_LARGEST_MOVE = 1e300  # of one unit
_LONGEST_UNIT = 300  # characters


@dataclass(frozen=True)
class Bound:
    """Limit on how much one unit, for example a person, can change a table of counts. A unit changes at most
    `l0` cells, and each of these cells by at most `linf`. The changes of all its cells add up to at most `l1`.

    Parameters
    ----------
    l0 : int
        Largest number of cells that one unit changes, at least 1. Default 1.
    linf : float
        Largest change of one cell by one unit, at least 1. Default 1.
    l1 : float, optional
        Largest sum of the changes of all cells by one unit, from `linf` to l0·linf. Default l0·linf.
    unit : str
        Name of the unit that is protected, for example "a trip" or "a user (column user_id)".
    status : "as stated", "enforced" or "believed, not enforced"
        Reason why the bound holds. "enforced" means that the workbench left out data beyond the bound. With the
        other two values, the owner of the data only states that the bound holds. Default "as stated". Two
        bounds that differ only in `unit` and `status` are equal and have the same `repr`.

    Raises
    ------
    ValueError
        If a number is outside its range, or if `unit` is longer than 300 characters or has line breaks.

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
            raise not_allowed(self, "l0", "need an integer >= 1")
        if self.l1 is None:
            object.__setattr__(self, "l1", self.l0 * self.linf)
        for name in ("linf", "l1"):
            number = getattr(self, name)
            if isinstance(number, bool) or not 1 <= number <= _LARGEST_MOVE:
                need = "need a number >= 1: a unit moves a count by 1 or not at all"
                raise not_allowed(self, name, need)
        if self.l1 > self.l0 * self.linf or self.l1 < self.linf:
            raise not_allowed(self, "l1", f"need linf <= l1 <= l0·linf = {self.l0 * self.linf}")

    def of(self, unit: str) -> Bound:
        """Return the same bound for a unit that you name, for example "a household". The new bound has the
        status "believed, not enforced", because the workbench leaves out no data of units that exceed the
        bound.

        There is one exception. A bound with l0 = 1 and linf = 1 gets the status "as stated", because such a
        bound always holds if each row is a separate unit.

        Parameters
        ----------
        unit : str
            Name of the unit that is protected, for example "a trip".

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
        """Return the same bound for the given unit, with the status "believed, not enforced". With this status,
        the bound is only a statement by the owner of the data. The workbench left out no data of units that
        exceed the bound.
        """
        return replace(self, unit=unit, status=BELIEVED)

    def enforced(self, unit: str) -> Bound:
        """Return the same bound for the given unit, with the status "enforced". This status means that the
        workbench left out data of each unit that exceeded the bound, so the bound holds.
        """
        return replace(self, unit=unit, status=ENFORCED)

    @property
    def limit_in_words(self) -> str:
        """Text that says how much one unit adds at most, for example "1 to each of 10 cells"."""
        cells = "one cell" if self.l0 == 1 else f"each of {number(self.l0)} cells"
        limit, in_all = f"{number(self.linf)} to {cells}", f"{number(self.l1)} in all"
        if self.l1 == self.l0 * self.linf:
            return limit
        return in_all if self.l1 <= min(self.l0, self.linf) else f"{limit}, {in_all}"

    @property
    def in_words(self) -> str:
        """Text that says how much one unit adds at most. The text also says whether the workbench left out
        data beyond this bound, or whether the owner of the data only states the bound.
        """
        limit = self.limit_in_words
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
        """Sentence for readers of a release. The sentence says that data beyond the bound were left out, and
        that counts and error bars describe the remaining data. If the bound was not enforced, the text is
        empty.
        """
        return self.in_words if self.status == ENFORCED else ""

    @property
    def l2(self) -> float:
        """Sensitivity of the counts in the l2 norm, which is the largest Euclidean distance by which one unit
        can change the counts.
        """
        return min(sqrt(self.l0) * self.linf, sqrt(self.l1 * self.linf), self.l1)

    @property
    def l2_squared(self) -> Fraction:
        """Squared sensitivity of the counts in the l2 norm, as an exact fraction.

        A unit with few and large changes moves the counts furthest in the l2 norm. Such a unit changes as many
        cells as possible by `linf`, and one more cell by the rest of `l1`. With linf = 2 and l1 = 5, for
        example, the changes are 2, 2 and 1, so the squared sensitivity is 4 + 4 + 1 = 9.

        >>> Bound(l0=3, linf=2, l1=5).l2_squared
        Fraction(9, 1)
        """
        linf = Fraction(self.linf)
        filled, rest = divmod(Fraction(self.l1), linf)
        return filled * linf**2 + rest**2

    def merged(self, cells: int) -> Bound:
        """Return the bound for a new table in which groups of cells are added up. Each group of at most `cells`
        cells of the old table becomes one cell of the new table. No cell is in two groups.

        >>> Bound(l0=3, linf=2, l1=5).merged(2)
        Bound(l0=3, linf=4, l1=5)
        """
        return replace(self, linf=min(self.l1, min(cells, self.l0) * self.linf))


class Public:
    """Type of the marker `PUBLIC`. If the data are public, pass `PUBLIC` in place of a `Bound`. Public data
    need no limit on how much one person can change them.
    """

    def __repr__(self) -> str:
        return "PUBLIC"

    def __reduce__(self) -> str:
        return "PUBLIC"  # there is one, also after copying and in other processes


PUBLIC = Public()


class Unbounded:
    """Type of the marker `UNBOUNDED`. If a user may have any number of records, pass `UNBOUNDED` in place of a
    `Bound`, which would limit the records of a user. Only `Interactions` accept this marker.
    """

    def __repr__(self) -> str:
        return "UNBOUNDED"

    def __reduce__(self) -> str:
        return "UNBOUNDED"


UNBOUNDED = Unbounded()
