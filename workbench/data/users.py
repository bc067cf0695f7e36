"""The users that rows belong to, what identifies each of them, and where their draws come from."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import pa, pc, pd, pl
from workbench.data import user_kernels
from workbench.value import Bool, Int, UInt64, shown

# Names

_LEAST = 2**10  # places of a table, and bytes of names


class NumberedNames:
    """Different names, each with a number: found by a hash, and compared whole.

    The hash is one of many, drawn at random, so that nobody can choose names which collide.
    """

    def __init__(self) -> None:
        self._hash_seed = int.from_bytes(os.urandom(8))
        self._size = 0
        self._hashes = np.empty(_LEAST, np.uint64)  # of the name of each number
        self._ends = np.zeros(_LEAST, np.int64)  # of the name of each number, 1 on
        self._content = np.empty(_LEAST, np.uint8)  # all names
        self._table = np.full(_LEAST, -1)  # numbers, each near the place that its hash says

    def __len__(self) -> int:
        return self._size

    def numbers_of(self, names: pa.LargeBinaryArray) -> Int[np.ndarray, " names"]:
        """The numbers of some names, of which those that are new get the next ones."""
        _, ends, content = names.buffers()
        ends = np.frombuffer(ends, np.int64)[names.offset : names.offset + len(names) + 1]
        content = np.frombuffer(content or b"", np.uint8)
        self._make_room(len(names), int(ends[-1] - ends[0]))
        numbers = np.empty(len(names), np.int64)
        self._size = user_kernels.number_names(
            _hashes(names, self._hash_seed),
            ends,
            content,
            self._size,
            self._hashes,
            self._ends,
            self._content,
            self._table,
            numbers,
        )
        return numbers

    def all(self) -> pa.LargeBinaryArray:
        """The name of each number."""
        buffers = [None, pa.py_buffer(self._ends), pa.py_buffer(self._content)]
        return pa.Array.from_buffers(pa.large_binary(), self._size, buffers)

    def _make_room(self, names: int, n_bytes: int) -> None:
        """For so many new names; a table is at most a quarter full."""
        self._hashes = _longer(self._hashes, self._size, names)
        self._ends = _longer(self._ends, self._size + 1, names)
        self._content = _longer(self._content, int(self._ends[self._size]), n_bytes)
        if 4 * (self._size + names) > len(self._table):
            places = 1 << (8 * (self._size + names) - 1).bit_length()
            self._table = np.full(places, -1)
            user_kernels.place_names(self._hashes[: self._size], self._table)


def _longer(array: np.ndarray, size: int, more: int) -> np.ndarray:
    """An array with its first numbers and room for more."""
    if size + more <= len(array):
        return array
    longer = np.empty(2 * (size + more), array.dtype)
    longer[:size] = array[:size]
    return longer


def _hashes(names: pa.Array, seed: int) -> UInt64[np.ndarray, " names"]:
    return pl.Series(names).hash(seed).to_numpy()


# Users

_KEY_BYTES = 32
_WHOLE = "integers"
_TEXT = "text"
_BYTES = "bytes"
# of floats of so many bits: from here on, different ids are the same float
_LARGEST_FLOAT = {16: (2**11, "2¹¹"), 32: (2**24, "2²⁴"), 64: (2**53, "2⁵³")}
_OBJECTS = {  # kinds of Python's values, of which a column of objects may hold one
    *(
        "bytes",
        "date",
        "decimal",
        "empty",
        "floating",
        "integer",
        "mixed-integer-float",
        "string",
    )
}
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_INTEGER = r"^(?:0|-?[1-9][0-9]*)$"
_NUMBER = (  # that somebody may write for an integer, in any digits
    r"^[+\-−﹣＋－]?[\s\pZ]*(?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|(?:"
    r"(?:\p{Nd}+|\p{Nd}{1,3}(?:[,٬'’]\p{Nd}{2,3})+|\p{Nd}{1,3}(?:[\s\pZ]\p{Nd}{3})+)(?:[.,٫．，]\p{Nd}*)?"
    r"|[.,٫．，]\p{Nd}+)(?:[eE][+\-−]?\p{Nd}+)?)$"
)
_ONE_SPELLING = (
    "an integer in its usual spelling, such as 7, or text that does not look like a number; if 7 and 007 "
    "are different people, --user-type text (in Python user_type='text') keeps such spellings apart"
)
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
    """Numbers the users of a column, given in batches: one number per person, never one for two people.

    Each value says by itself who a person is. Integers, in any type, are people by their number: 3, and
    3.0 in a column of floats, is person 3. Text is a person by its characters, in Unicode's composed form
    and without space around them. Text that spells a number in another way than an integer's usual one
    (007, 7.0, 1,000) is refused, unless all users are read as text. Bytes are people as they are, and
    dates and times by the day and the microsecond.

    All values of a column are of one kind, because 7 and "7" may be one person or two.

    Parameters
    ----------
    column : str
        Its name, for errors and for what a release says.
    user_type : "text", optional
        Read users as text: integers as they are usually spelled, and bytes as UTF-8. Text that spells a
        number is then a person of its own. By default each column is of the kind that its type states.
    """

    def __init__(self, column: str, user_type: str | None = None):
        if user_type not in (None, _TEXT):
            raise ValueError(f"user_type = {user_type!r} is not allowed: need None or 'text'")
        self.column = column
        self._as_text = user_type is not None
        self._kind: str | None = None
        self._beyond_int64: bool | None = (
            None  # which of the numbers with the highest bit there are
        )
        self._names: NumberedNames | None = None  # of users who are no numbers
        self._spelled = np.zeros(0, np.int64)  # numbers of names that spell a number

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

        def refuse(bad: Bool[np.ndarray, " rows"], need: str) -> None:
            if not bad.any():
                return
            row = int(bad.argmax())
            if refusal is not None:
                raise refusal(row, need)
            place = f"column {self.column!r}, row {first_row + row}"
            found = given[row].as_py()
            if found is None or found != found:
                raise ValueError(f"{place}: a value is missing")
            raise ValueError(f"{place}: found {shown(found)}, need {need}")

        given = values
        values, places = self._distinct(values)
        if pa.types.is_null(values.type) and not len(values):
            return np.zeros(0, np.int64)
        refuse(_is_missing(values)[places], "a user")
        read = self._read(values)
        refuse(read.bad[places], read.need)
        if pa.types.is_integer(read.values.type):
            numbers = read.values.to_numpy()
            is_unsigned = numbers.dtype == np.uint64
            numbers = numbers.view(np.int64) if is_unsigned else numbers
            if self._kind == _WHOLE and len(numbers) and numbers.min() < 0:
                self._refuse_other_sign(is_unsigned)
            return numbers
        if self._names is None:
            self._names = NumberedNames()
        known = len(self._names)
        numbers = self._names.numbers_of(read.values)[places]
        if self._kind == _TEXT and not self._as_text:
            new = self._names.all()[known:].cast(pa.large_string())
            self._spelled = np.append(
                self._spelled, known + np.flatnonzero(_spells_number(new))
            )
            if len(self._spelled):
                refuse(np.isin(numbers, self._spelled), _ONE_SPELLING)
        return numbers

    def refused(self, values: pa.Array) -> Iterator[tuple[str, Bool[np.ndarray, " rows"]]]:
        """What is needed in rows that do not say who, and which rows these are."""
        values, places = self._distinct(values)
        missing = _is_missing(values)
        yield "a user", missing[places]
        present = np.flatnonzero(~missing)
        if not len(present):
            return
        read = self._read(values.take(pa.array(present)))
        bad = np.zeros(len(values), bool)
        bad[present] = read.bad
        yield read.need, bad[places]
        if self._kind == _TEXT and not self._as_text:
            bad[present] = _spells_number(read.values.cast(pa.large_string()))
            yield _ONE_SPELLING, bad[places]

    def ids(self, first: int = 0) -> UInt64[np.ndarray, "numbers 2"] | None:
        """What identifies the user of each number from one on, in 127 bits; None where the number does."""
        return None if self._names is None else _digests(self._names.all()[first:])

    def forget(self) -> None:
        """Number users anew; of which kind they are stays known."""
        self._names = None
        self._spelled = self._spelled[:0]

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

    def _distinct(self, values: pa.Array) -> tuple[pa.Array, Any]:
        """Values, and the place of each row's among them; values of a dictionary need not be in a row."""
        if not pa.types.is_dictionary(values.type):
            return values, slice(None)
        names = values.dictionary
        if values.null_count or names.null_count or _kind(names.type) not in (_TEXT, _BYTES):
            return values.dictionary_decode(), slice(None)
        return names, values.indices.to_numpy()

    def _read(self, values: pa.Array) -> _Read:
        """Values that are not missing as integers, or as names."""
        kind = _kind(values.type)
        read = _read(kind, values, self._as_text)
        self._refuse_other_kind(_TEXT if self._as_text and kind in (_WHOLE, _BYTES) else kind)
        return read

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
                f"column {self.column!r} cannot say who a row is of: need integers, text, bytes, dates or "
                "times, one value per user"
            )
        if self._kind not in (None, kind):
            raise ValueError(
                f"column {self.column!r}: some users are {self._kind}, others {kind}; need one kind, "
                "as 7 and '7' may be one person or two. If they are one, --user-type text (in Python "
                "user_type='text') reads all as text"
            )
        self._kind = kind


class _Read(NamedTuple):
    """Users as integers or as names; the rows that say not who, and what these need."""

    values: pa.Array
    bad: Bool[np.ndarray, " rows"]
    need: str


def _read(kind: str | None, values: pa.Array, as_text: bool) -> _Read:
    """Each value by itself, of a kind; none is missing."""
    bad = np.zeros(len(values), bool)
    need = ""
    if kind == _TEXT:
        return _names(values)
    if kind == _BYTES:
        values = values.cast(pa.large_binary())
        if not as_text:
            return _Read(values, pc.equal(values, b"").to_numpy(zero_copy_only=False), "a user")
        values, bad = _cast(values, pa.large_string())
        return _Read(values, bad, "text in UTF-8") if bad.any() else _names(values)
    if pa.types.is_floating(values.type):
        floats = values.cast(pa.float64()).to_numpy()
        largest, shown_largest = _LARGEST_FLOAT[values.type.bit_width]
        bad = ~(np.abs(floats) < largest) | (floats != np.floor(floats))
        values = pa.array(np.where(bad, 0, floats).astype(np.int64))
        need = f"an integer below {shown_largest}, or text"
    elif pa.types.is_decimal(values.type):
        values, bad = _cast(values, pa.int64())
        need = "an integer of 64 bits, or text"
    elif pa.types.is_date(values.type):
        values, bad = _cast(values, pa.date32())
        values = values.cast(pa.int32())
        need = "a date"
    elif pa.types.is_timestamp(values.type):
        values, bad = _cast(values, pa.timestamp("us", values.type.tz))
        values = values.cast(pa.int64())
        need = "a time to the microsecond, or text"
    if as_text and kind == _WHOLE:
        values = values.cast(pa.string()).cast(pa.large_binary())
    return _Read(values, bad, need)


def _cast(values: pa.Array, dtype: pa.DataType) -> tuple[pa.Array, Bool[np.ndarray, " rows"]]:
    """Values in another type; of those that do not fit, which they are, and no values."""

    def fits(row: int) -> bool:
        try:
            values.slice(row, 1).cast(dtype)
        except pa.ArrowInvalid:
            return False
        return True

    try:
        return values.cast(dtype), np.zeros(len(values), bool)
    except pa.ArrowInvalid:
        return pa.nulls(len(values), dtype), np.array([not fits(i) for i in range(len(values))])


def _names(texts: pa.Array) -> _Read:
    """Text in Unicode's composed form, without space and what is invisible around it."""
    texts = texts.cast(pa.large_string())
    if not len(texts):
        return _Read(texts.cast(pa.large_binary()), np.zeros(0, bool), "")
    _, ends, content = texts.buffers()
    ends = np.frombuffer(ends, np.int64)[texts.offset : texts.offset + len(texts) + 1]
    characters = np.frombuffer(content or b"", np.uint8)[ends[0] : ends[-1]]
    if len(characters) and characters.max() >= 128:
        texts = pc.utf8_normalize(texts, "NFC")
    if len(characters) and (characters.max() >= 128 or characters.min() <= ord(" ")):
        texts = pc.utf8_trim(texts, _SPACE + _INVISIBLE)
    empty = pc.equal(texts, "").to_numpy(zero_copy_only=False)
    return _Read(texts.cast(pa.large_binary()), empty, "a user")


def _spells_number(texts: pa.Array) -> Bool[np.ndarray, " texts"]:
    """Which texts spell a number, but not as an integer is usually spelled."""
    usual = pc.match_substring_regex(texts, _INTEGER)
    seen = pc.replace_substring_regex(texts, rf"[{_INVISIBLE}]", "")
    spelled = pc.and_not(pc.match_substring_regex(seen, _NUMBER), usual)
    return spelled.to_numpy(zero_copy_only=False)


def _is_missing(values: pa.Array) -> Bool[np.ndarray, " rows"]:
    is_float = pa.types.is_floating(values.type)
    return pc.is_null(values, nan_is_null=is_float).to_numpy(zero_copy_only=False)


def _digests(names: pa.Array) -> UInt64[np.ndarray, "names 2"]:
    """127 bits of each name."""
    parts = (blake2b(x, digest_size=16, person=b"user").digest() for x in names.to_pylist())
    ids = np.frombuffer(b"".join(parts), "<u8").astype(np.uint64).reshape(-1, 2)
    ids[:, 1] &= ~np.uint64(1)
    return ids


def users_of(values: Any, user_type: str | None = None) -> Users:
    """Whose each row is, from one value a row: `Users`, numbers, or a column of any kind."""
    if isinstance(values, Users):
        return values
    column = UserNumbers("users", user_type)
    array = values if isinstance(values, pa.Array) else user_column(pd.Series(values))
    return Users(column.numbers(array), column.ids())


def user_column(column: Any) -> pa.Array:
    """A column of a pandas or polars frame as an Arrow array, without making one type of several kinds."""
    name = getattr(column, "name", None)
    try:
        if hasattr(column, "to_arrow"):
            if str(column.dtype) == "Object":  # polars gives the addresses of Python's values
                raise pa.ArrowInvalid("Python's own values")
            return column.to_arrow()
        held = column.cat.categories if column.dtype == "category" else column
        if held.dtype == object and not _are_of_one_kind(held):
            raise pa.ArrowInvalid("Python's values of several kinds")
        array = pa.Array.from_pandas(column)
    except (pa.ArrowException, OverflowError, UnicodeEncodeError) as e:
        raise ValueError(
            f"column {name!r} cannot say who a row is of: need values of one kind, integers of 64 bits, "
            f"text, bytes, dates or times ({str(e)[:80]}). To read all as text, convert the column first, "
            f"for example frame[{name!r}].astype(str)"
        ) from None
    return array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array


def _are_of_one_kind(values: Any) -> bool:
    """Whether Arrow makes of each of Python's values what it makes of it alone."""
    kind = pd.api.types.infer_dtype(values, skipna=True)
    is_day_and_time = kind == "date" and any(isinstance(x, datetime) for x in values)
    return kind in _OBJECTS and not is_day_and_time


def _kind(dtype: pa.DataType) -> str | None:
    """What users of a type are; None if they are not told apart. Values of two kinds are never compared."""
    types = pa.types
    if types.is_integer(dtype) or types.is_floating(dtype) or types.is_decimal(dtype):
        return _WHOLE
    if types.is_string(dtype) or types.is_large_string(dtype) or types.is_string_view(dtype):
        return _TEXT
    if types.is_binary(dtype) or types.is_large_binary(dtype) or types.is_binary_view(dtype):
        return _BYTES
    if types.is_fixed_size_binary(dtype):
        return _BYTES
    if types.is_date(dtype):
        return "dates"
    if types.is_timestamp(dtype):
        return "times" if dtype.tz is None else "times of a zone"
    return None


def in_words(unit: str, column: str) -> str:
    """Whom a column names, on one line."""
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in column)
    shown = plain if len(plain) <= _LONGEST_NAME else f"{plain[:_LONGEST_NAME]}…"
    return f"{unit} (column {shown})"


def without_column(text: str) -> str:
    """The unit without the name of the column that `in_words` appends."""
    return text.partition(" (column ")[0]
