"""Values of a text column, for example search terms, and the users who have these values. There is no public
list of the possible values.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import pl
from workbench.data.reading import Progress, prepared_rows
from workbench.data.table import Bound
from workbench.data.truncation import bounded_contributions
from workbench.data.users import UserNumbers, Users, cut_key, refuse_cut_of_nobody, users_of
from workbench.spaces.domain import read_domain_file, without_missing_user
from workbench.spaces.labels import Unlisted
from workbench.spaces.rules import Refused, each_as_text
from workbench.spaces.statements import rule_from_dict
from workbench.value import Int, not_allowed, sealed

_COLUMNS = ("count", "noisy", "sd", "low", "high")


class UnlistedColumn(NamedTuple):
    """Description of a column of texts whose possible values are not public, for example search terms. A
    domain file can contain such a description.
    """

    attribute: str
    rule: Unlisted
    missing_user: str | tuple[str, ...] = "refuse"

    @classmethod
    def of(cls, stated: str | Path | Mapping[str, Any]) -> UnlistedColumn:
        """Read the description from a domain file or from its content. Raise a ValueError if the domain does
        not consist of exactly one attribute with the labels "unlisted".
        """
        where = ""
        if isinstance(stated, str | Path):
            where, stated = f"{stated}: ", read_domain_file(Path(stated))[0]
        attributes, missing_user = without_missing_user(stated)
        rules = {name: rule_from_dict(name, x) for name, x in attributes.items()}
        unlisted = {name: rule for name, rule in rules.items() if isinstance(rule, Unlisted)}
        if len(rules) != 1 or not unlisted:
            raise ValueError(
                f'{where}need one attribute, whose labels are "unlisted", as in '
                '{"word": {"labels": "unlisted"}}'
            )
        return cls(*next(iter(unlisted.items())), missing_user)

    @property
    def column(self) -> str:
        """Name of the column that contains the values."""
        return self.rule.column or self.attribute


@dataclass(frozen=True, eq=False)
class UnlistedValues:
    """Values that each user has in a column of texts, for example search terms. There is no public list of
    the possible values.

    Parameters
    ----------
    attribute : str
        Name that the column of values gets in a release.
    labels : text[labels]
        All values that at least one user has, in ascending order. These values are private.
    users, values : int[pairs]
        One entry for each pair of a user and a value of this user. `users` contains a number that identifies
        the user. `values` contains the position of the value in `labels`.
    bound : Bound
        Limit on how many values one user has: at most `bound.l1`. The field `bound.linf` must be 1, because
        each value counts once per user.
    users_cut : int, optional
        Number of users for whom values were left out, because the users had more values than the bound
        allows. This number is private.

    Examples
    --------
    >>> words = ["hut", "hut", "axe", "hut"]
    >>> UnlistedValues.from_values("word", words, Bound(2), users=[1, 1, 2, 3]).counts
    array([1, 2])
    """

    attribute: str
    labels: np.ndarray = field(repr=False)
    users: Int[np.ndarray, " pairs"] = field(repr=False)
    values: Int[np.ndarray, " pairs"] = field(repr=False)
    bound: Bound
    users_cut: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.attribute in _COLUMNS:
            need = (
                f"need another name than {', '.join(_COLUMNS)}, which are columns of a release"
            )
            raise not_allowed(self, "attribute", need)
        if not isinstance(self.bound, Bound) or self.bound.linf != 1:
            need = "need a Bound whose linf is 1, for example Bound(10, 1): a value counts once per user"
            raise not_allowed(self, "bound", need)
        pairs = np.sort(self.users * len(self) + self.values)
        are_different = bool((pairs[1:] > pairs[:-1]).all())
        of_user = np.bincount(self.users).max(initial=0)
        is_sorted = bool((self.labels[1:] > self.labels[:-1]).all())
        if not (is_sorted and are_different) or of_user > self.bound.l1:
            raise ValueError(
                "UnlistedValues are not sorted, not different, or beyond the bound: use from_values"
            )

    @classmethod
    def from_values(
        cls,
        attribute: str,
        values: Any,
        bound: Bound,
        *,
        users: Any = None,
        user_type: str | None = None,
        rng: np.random.Generator | None = None,
        key: bytes | None = None,
    ) -> UnlistedValues:
        """Create the object from rows in any order. Each row contains one value of one user.

        Parameters
        ----------
        attribute : str
            Name that the column of values gets in a release.
        values : sequence
            Value of each row, as text. No value may be missing.
        bound : Bound
            Limit on how many different values of one user are kept. If a user has more than `l1` different
            values, `l1` of these values are kept at random. Without users, each row is a unit with one value,
            and the bound must be Bound(1, 1).
        users, user_type, rng, key : optional
            Users of the rows, and source of the random choices, as in `SparseTable.from_keys`.

        Returns
        -------
        UnlistedValues

        Raises
        ------
        ValueError
            If a value is missing, if the bound does not have linf = 1, or if there is not one user per row.
        """
        untyped = np.dtype(object)  # as a list is
        is_typed = getattr(values, "dtype", untyped) != untyped
        own = pl.Series(values) if is_typed else each_as_text(values)
        texts = Unlisted().texts(own.alias(attribute))
        if texts.has_nulls():
            raise ValueError(f"a value of {attribute!r} is missing: leave out its row")
        owners = Users(np.arange(len(texts)))
        if users is not None:
            owners = users_of(users, user_type)
        elif not isinstance(bound, Bound) or bound.l1 != 1:
            need = "without users a row is a unit and has one value: need Bound(1, 1)"
            raise ValueError(f"bound = {bound!r} is not allowed: {need}")
        else:
            refuse_cut_of_nobody(rng, key)
        if len(owners.numbers) != len(texts):
            raise ValueError(f"{len(texts)} values do not fit {len(owners.numbers)} users")
        labels = texts.unique().sort()
        places = texts.cast(pl.Enum(labels)).to_physical()
        pairs = pl.DataFrame({"user": owners.numbers, "value": places}).unique()
        # sorted so that a user's own values are in the order of their texts, whatever others have
        pairs = pairs.sort("value", "user")
        numbers = pairs["user"].to_numpy()
        owners = owners._replace(numbers=numbers)
        left = bounded_contributions(
            owners, np.arange(len(pairs)), None, bound, cut_key(rng, key)
        )
        pairs = pairs[left.keys]
        _, numbers = np.unique(pairs["user"].to_numpy(), return_inverse=True)
        found, codes = np.unique(pairs["value"].to_numpy(), return_inverse=True)
        return cls(
            attribute,
            sealed(labels.gather(found).to_numpy()),
            sealed(numbers.astype(np.int64)),
            sealed(codes.astype(np.int64)),
            bound if users is None else bound.enforced(owners.who),
            None if users is None else int(left.lost.sum()),
        )

    @classmethod
    def read(
        cls,
        path: Any,
        domain: UnlistedColumn | str | Path | Mapping[str, Any],
        bound: Bound,
        *,
        user: str | None = None,
        user_type: str | None = None,
        rng: np.random.Generator | None = None,
        key: bytes | None = None,
        table: str | None = None,
        progress: Progress | None = None,
    ) -> UnlistedValues:
        """Read the values in one column of a data frame, or of files in any format that `SparseTable.read`
        takes, for example CSV or Parquet.

        Parameters
        ----------
        path : path, several, or a frame
            Data with one or more rows per value of a user.
        domain : path, mapping or UnlistedColumn
            Domain file with one attribute, or its content, for example {"word": {"labels": "unlisted"}}.
        bound : Bound
            Limit on how many different values of one user are kept, as in `from_values`.
        user : str, optional
            Name of the column that contains the user of each row.
        user_type, rng, key, table, progress : optional
            Settings with the same meaning as in `SparseTable.read`.

        Returns
        -------
        UnlistedValues

        Raises
        ------
        ValueError
            If a file cannot be read, or if a column, a value or a user is missing. The message names the row.
        """
        stated = domain if isinstance(domain, UnlistedColumn) else UnlistedColumn.of(domain)
        column, rule = stated.column, stated.rule
        people = None if user is None else UserNumbers(user, user_type, stated.missing_user)
        parts = [pl.Series(column, [], dtype=pl.String)]
        users = [np.zeros(0, np.int64)]

        def present(frame: pl.DataFrame) -> tuple[pl.Series, np.ndarray, Refused]:
            texts = rule.texts(frame[column])
            none = texts.is_null()
            refused = [(column, "a value", none)] if rule.missing == "refuse" else []
            return texts.drop_nulls(), (~none).to_numpy(), refused

        how: Any = {"users": people, "table": table, "progress": progress}
        for rows, _, _ in prepared_rows(path, [column], present, **how):
            parts.append(rows.keys)
            users.append(rows.users)
        return cls.from_values(
            stated.attribute,
            pl.concat(parts),
            bound,
            users=None if people is None else people.users(np.concatenate(users)),
            rng=rng,
            key=key,
        )

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def counts(self) -> Int[np.ndarray, " labels"]:
        """Number of users who have each of the values in `labels`."""
        return np.bincount(self.values, minlength=len(self))

    @property
    def values_per_user(self) -> int:
        """Largest number of values that one user can have, according to the bound."""
        return int(self.bound.l1)

    @property
    def values_of_owner(self) -> Int[np.ndarray, " pairs"]:
        """One number per entry of `users`: how many values this user has."""
        return np.bincount(self.users)[self.users]
