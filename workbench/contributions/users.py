"""Who a row is of: users of any kind as numbers, what identifies each, what their draws come from."""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from workbench.arrays import Int, UInt64
from workbench.contributions.names import NumberedNames
from workbench.libraries import pa, pc, pd
from workbench.value import shown

_KEY_BYTES = 32
_WHOLE = "whole numbers"
_TEXT = "text"
# of floats of so many bits: from here on, different ids are the same float
_LARGEST_FLOAT = {16: (2**11, "2¹¹"), 32: (2**24, "2²⁴"), 64: (2**53, "2⁵³")}
_WRITTEN_LONGER = r"^(?:\+|-?0[0-9]|-?[0-9]+\.)"  # than a number need be
_WHOLE_IN_TEXT = r"^\+?(-?)0*([0-9]+)(?:\.0*)?$"
_PORTION = 2**16  # users whose seeds are drawn at a time
_LONGEST_NAME = 60  # of a column, in what a release says

Refusal = Callable[[int, str], ValueError]  # of a row of a batch, and what is needed there


def refuse_cut_of_nobody(rng: np.random.Generator | None, key: bytes | None) -> None:
    """A ValueError if a cut is to be repeated where no users are named."""
    if rng is not None or key is not None:
        raise ValueError("rng and key say how users are cut: need users, too")


def cut_key(rng: np.random.Generator | None = None, key: bytes | None = None) -> bytes:
    """The 32 bytes of a cut: of the operating system, unless those of a generator, or a key, repeat one."""
    if rng is not None and key is not None:
        raise ValueError("rng and key: need one of them, not both")
    if key is not None:
        return key
    if rng is None:
        return os.urandom(_KEY_BYTES)
    if not isinstance(rng, np.random.Generator):
        raise ValueError(f"rng = {rng!r} is not allowed: need None or a numpy Generator")
    return rng.bytes(_KEY_BYTES)


def seeds(key: bytes, ids: UInt64[np.ndarray, "users 2"]) -> UInt64[np.ndarray, "users 4"]:
    """256 bits for each user, a function of the key and of what identifies the user.

    They are two blocks of AES-256 under the key. Blocks are all different, as the lowest bit of the
    second word of an id is 0, so that the bits are those of a random permutation at different points:
    uniform, independent across users, and never all 0.

    Parameters
    ----------
    key : bytes
        32 of them.
    ids : uint64[users, 2]
        As `UserNumbers.ids` gives them: the second word is even.

    Returns
    -------
    uint64[users, 4]
        States of `kernels.next_word`.

    Raises
    ------
    ValueError
        A key of another length.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    if not isinstance(key, bytes) or len(key) != _KEY_BYTES:
        raise ValueError(
            f"key must be {_KEY_BYTES} bytes, as those of os.urandom({_KEY_BYTES})"
        )
    cipher = Cipher(algorithms.AES(key), modes.ECB())  # every block is another: nothing repeats
    encryptor = cipher.encryptor()
    states = np.empty((len(ids), 4), np.uint64)
    for first in range(0, len(ids), _PORTION):
        blocks = np.repeat(ids[first : first + _PORTION].astype("<u8"), 2, axis=0)
        blocks[1::2, 1] |= np.uint64(1)
        drawn = np.frombuffer(encryptor.update(blocks.tobytes()), "<u8")
        states[first : first + _PORTION] = drawn.reshape(-1, 4)
    return states


class Users(NamedTuple):
    """Whose each row is: a number a person, and what identifies the person of each number."""

    numbers: Int[np.ndarray, " rows"]
    ids: UInt64[np.ndarray, "numbers 2"] | None = None  # None where it is the number itself
    who: str = "a user"  # one of them, in words

    def ids_of(self, numbers: Int[np.ndarray, " users"]) -> UInt64[np.ndarray, "users 2"]:
        """What identifies some users, by their numbers."""
        if self.ids is not None:
            return self.ids[numbers]
        ids = np.zeros((len(numbers), 2), np.uint64)
        ids[:, 0] = numbers.astype(np.int64).view(np.uint64)
        return ids


class UserNumbers:
    """The users of a column, given in batches, as whole numbers: one a person, never two people in one.

    Whole numbers, dates and truth values are their own numbers, in 64 bits; a user of any other kind is
    numbered when first seen. What identifies a user, `ids`, depends on the user's value alone. All
    values of a column are of one kind: whether 7 and "7" are one person is not for us to say.

    Parameters
    ----------
    column : str
        Its name, for errors and for what a release says.
    """

    def __init__(self, column: str):
        self.column = column
        self._kind: str | None = None
        self._beyond_int64: bool | None = (
            None  # which of the numbers with the highest bit there are
        )
        self._names: NumberedNames | None = None  # of users who are no numbers

    def numbers(
        self, values: pa.Array, first_row: int = 0, refusal: Refusal | None = None
    ) -> Int[np.ndarray, " rows"]:
        """The users of some rows.

        Parameters
        ----------
        values : pyarrow.Array
            A user a row.
        first_row : int
            The row of the table where they begin, for errors.
        refusal : callable, optional
            What is said of a row of these, where more is known of it than its number.

        Returns
        -------
        int64[rows]

        Raises
        ------
        ValueError
            A value that is missing, or of a kind that identifies nobody, with its row.
        """

        def refuse(row: int, need: str) -> ValueError:
            if refusal is not None:
                return refusal(row, need)
            place = f"column {self.column!r}, row {first_row + row}"
            return ValueError(f"{place}: a value is missing, or says not who: need {need}")

        is_coded = pa.types.is_dictionary(values.type)
        if is_coded and (
            _kind(values.type.value_type) != _TEXT or values.dictionary.null_count
        ):
            values = values.dictionary_decode()
            is_coded = False
        if values.null_count:
            row = int(values.is_null().to_numpy(zero_copy_only=False).argmax())
            raise refuse(row, "a user")
        if pa.types.is_null(values.type):  # of no rows
            return np.zeros(0, np.int64)
        self._refuse_other_kind(_kind(values.type.value_type if is_coded else values.type))
        if pa.types.is_floating(values.type):
            return _float_bits(values, refuse)
        if self._kind != _TEXT and not pa.types.is_decimal(values.type):
            numbers = _whole_numbers(values)
            if self._kind == _WHOLE and len(numbers) and numbers.min() < 0:
                self._refuse_other_sign(pa.types.is_uint64(values.type))
            return numbers
        places = values.indices.to_numpy() if is_coded else slice(None)
        texts = values.dictionary if is_coded else values
        if self._kind != _TEXT:
            texts = texts.cast(pa.string())
        names = texts.cast(pa.large_binary())
        nameless = pc.equal(pc.binary_length(names), 0).to_numpy(zero_copy_only=False)
        if nameless.any() and nameless[places].any():
            raise refuse(int(nameless[places].argmax()), "a user")
        if self._names is None:
            self._names = NumberedNames()
        return self._names.numbers_of(names)[places]

    def ids(self) -> UInt64[np.ndarray, "numbers 2"] | None:
        """What identifies the user of each number, in 127 bits; None where it is the number itself."""
        if self._names is None:
            return None
        names = self._names.all()
        _refuse_number_written_twice(self.column, names)
        return _digests(names)

    def ids_from(self, first: int) -> UInt64[np.ndarray, "numbers 2"] | None:
        """The same of the numbers from one on, whatever is written in two ways."""
        return None if self._names is None else _digests(self._names.all()[first:])

    def written_longer(self) -> tuple[UInt64[np.ndarray, "n 2"], UInt64[np.ndarray, "n 2"]]:
        """Ids of users who are numbers that are written as 07, and those that 7 would have."""
        names = pa.array([], pa.large_binary()) if self._names is None else self._names.all()
        names = names.filter(pc.match_substring_regex(names, _WRITTEN_LONGER))
        names = names.filter(pc.match_substring_regex(names, _WHOLE_IN_TEXT))
        plain = pc.replace_substring_regex(names, _WHOLE_IN_TEXT, r"\1\2")
        return _digests(names), _digests(plain)

    def forget(self) -> None:
        """Number users anew; of which kind they are stays known."""
        self._names = None

    @property
    def known(self) -> tuple[str | None, bool | None]:
        """Of which kind the users are, and which of the numbers with the highest bit there are."""
        return self._kind, self._beyond_int64

    def agree_with(self, known: tuple[str | None, bool | None]) -> None:
        """A ValueError if users of other rows, of which this is `known`, may be the same as others."""
        kind, beyond_int64 = known
        if kind is not None:
            self._refuse_other_kind(kind)
        if beyond_int64 is not None:
            self._refuse_other_sign(beyond_int64)

    def users(self, numbers: Int[np.ndarray, " rows"]) -> Users:
        """Whose each row is, of all rows that were given."""
        return Users(numbers, self.ids(), in_words("a user", self.column))

    def _refuse_other_sign(self, is_unsigned: bool) -> None:
        """A ValueError if -1 and 2⁶⁴ - 1, the same 64 bits, may both be users."""
        if self._beyond_int64 is None:
            self._beyond_int64 = is_unsigned
        if self._beyond_int64 != is_unsigned:
            raise ValueError(
                f"column {self.column!r}: some users are below 0, others 2⁶³ or more: need whole numbers "
                "of one type, or text"
            )

    def _refuse_other_kind(self, kind: str | None) -> None:
        if kind is None:
            raise ValueError(
                f"column {self.column!r} cannot say who a row is of: need whole numbers, text, bytes "
                "or dates, one value a user"
            )
        if self._kind not in (None, kind):
            raise ValueError(
                f"column {self.column!r}: some users are {self._kind}, others {kind}; need one kind, "
                "as 7 and '7' may be one person or two"
            )
        self._kind = kind


def _digests(names: pa.Array) -> UInt64[np.ndarray, "names 2"]:
    """127 bits of each name."""
    parts = (blake2b(x, digest_size=16, person=b"user").digest() for x in names.to_pylist())
    ids = np.frombuffer(b"".join(parts), "<u8").astype(np.uint64).reshape(-1, 2)
    ids[:, 1] &= ~np.uint64(1)
    return ids


def _refuse_number_written_twice(column: str, names: pa.Array) -> None:
    """A ValueError if two users are one number, as "7", "07" and "7.0": both may be one person."""
    if not pc.any(pc.match_substring_regex(names, _WRITTEN_LONGER)).as_py():
        return
    names = names.filter(pc.match_substring_regex(names, _WHOLE_IN_TEXT))
    numbers = pc.replace_substring_regex(names, _WHOLE_IN_TEXT, r"\1\2")
    encoded = numbers.dictionary_encode()
    if len(encoded.dictionary) == len(names):
        return
    places = encoded.indices.to_numpy()
    _, first = np.unique(places, return_index=True)
    again = int(np.setdiff1d(np.arange(len(places)), first)[0])
    one, other = (names[int(i)].as_py().decode() for i in (first[places[again]], again))
    raise ValueError(
        f"column {column!r}: some users are {shown(one)}, others {shown(other)}: the same number, which "
        "may be one person or two; write each user in one way"
    )


def users_of(values: Any) -> Users:
    """Whose each row is, from one value a row: `Users`, numbers, or a column of any kind."""
    if isinstance(values, Users):
        return values
    column = UserNumbers("users")
    array = values if isinstance(values, pa.Array) else user_column(pd.Series(values))
    return Users(column.numbers(array), column.ids())


def user_column(column: Any) -> pa.Array:
    """A column of a pandas or polars frame as an Arrow array, without making text of mixed values."""
    name = getattr(column, "name", None)
    try:
        if hasattr(column, "to_arrow"):
            if str(column.dtype) == "Object":  # polars gives the addresses of Python's values
                raise pa.ArrowInvalid("Python's own values")
            return column.to_arrow()
        array = pa.Array.from_pandas(column)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as e:
        raise ValueError(
            f"column {name!r} cannot say who a row is of: need values of one kind, whole numbers of 64 "
            f"bits, text, bytes or dates ({str(e)[:80]})"
        ) from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _kind(dtype: pa.DataType) -> str | None:
    """What users of a type are; None if they are not told apart. Values of two kinds are never compared."""
    types = pa.types
    if types.is_integer(dtype):
        return _WHOLE
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return _TEXT
    if types.is_binary(dtype) or types.is_large_binary(dtype) or types.is_binary_view(dtype):
        return _TEXT
    if types.is_fixed_size_binary(dtype):
        return _TEXT
    if types.is_temporal(dtype) and not types.is_interval(dtype):
        return str(dtype)  # 1 second and 1 microsecond are both 1
    if types.is_boolean(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return str(dtype)
    return None


def _whole_numbers(values: pa.Array) -> Int[np.ndarray, " rows"]:
    """Numbers, dates and truth values as 64 bits, one to one."""
    if pa.types.is_uint64(values.type):
        return values.to_numpy().view(np.int64)
    if not pa.types.is_integer(values.type):
        if pa.types.is_boolean(values.type):
            values = values.cast(pa.int8())
        else:
            wide = values.type.bit_width == 64
            values = values.view(pa.int64() if wide else pa.int32())
    return values.to_numpy()


def _float_bits(
    values: pa.Array, refuse: Callable[[int, str], ValueError]
) -> Int[np.ndarray, " rows"]:
    """Numbers with fractions as their 64 bits; those that may stand for several ids are refused."""
    floats = values.cast(pa.float64()).to_numpy()
    largest, shown_largest = _LARGEST_FLOAT[values.type.bit_width]
    bad = ~(np.abs(floats) < largest)
    if bad.any():
        row = int(bad.argmax())
        need = "a user" if np.isnan(floats[row]) else f"a number below {shown_largest}, or text"
        raise refuse(row, need)
    return (floats + 0.0).view(np.int64)  # -0.0 is 0.0


def in_words(unit: str, column: str) -> str:
    """Whom a column names, on one line."""
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in column)
    shown = plain if len(plain) <= _LONGEST_NAME else f"{plain[:_LONGEST_NAME]}…"
    return f"{unit} (column {shown})"


def without_column(text: str) -> str:
    """The unit without the name of the column that `in_words` appends."""
    return text.partition(" (column ")[0]
