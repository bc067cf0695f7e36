"""The users that rows belong to, what identifies each of them, and where their draws come from."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import pa, pd, pl
from workbench.data import user_kernels
from workbench.data.sources import series_of
from workbench.randomness import KEY_BYTES, system_key
from workbench.spaces.rules import distinct
from workbench.value import Bool, Int, UInt64, shown

_SEED = int.from_bytes(
    system_key()[:8]
)  # of hashes: nobody can choose names that are slow to look up
_PORTION = 2**16  # users whose seeds are drawn at a time
_LONGEST_NAME = 60  # of a column, in what a release says

# Draws


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
        return system_key()
    if not hasattr(rng, "bytes"):
        raise ValueError(f"rng = {rng!r} is not allowed: need None or a numpy Generator")
    return rng.bytes(KEY_BYTES)


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

    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ValueError(f"key must be {KEY_BYTES} bytes, as those of os.urandom({KEY_BYTES})")
    cipher = Cipher(algorithms.AES(key), modes.ECB())  # every block is another: nothing repeats
    encryptor = cipher.encryptor()
    states = np.empty((len(ids), 4), np.uint64)
    for first in range(0, len(ids), _PORTION):
        blocks = np.repeat(ids[first : first + _PORTION].astype("<u8"), 2, axis=0)
        blocks[1::2, 1] |= np.uint64(1)
        drawn = np.frombuffer(encryptor.update(blocks.tobytes()), "<u8")
        states[first : first + _PORTION] = drawn.reshape(-1, 4)
    return states


# Users


class Users(NamedTuple):
    """Users of rows: a number per person, and what identifies the person of each number."""

    numbers: Int[np.ndarray, " rows"]
    ids: UInt64[np.ndarray, "numbers 2"] | pl.Series | None = None  # names; None: the number
    who: str = "a user"  # one of them, in words

    def ids_of(self, numbers: Int[np.ndarray, " users"]) -> UInt64[np.ndarray, "users 2"]:
        """Return what identifies some users, by their numbers."""
        if isinstance(self.ids, np.ndarray):
            return self.ids[numbers]
        if self.ids is not None:
            return _digests(self.ids.gather(numbers))
        ids = np.zeros((len(numbers), 2), np.uint64)
        ids[:, 0] = numbers.astype(np.int64).view(np.uint64)
        return ids


def users_of(values: Any, user_type: str | None = None) -> Users:
    """Return the user of each row, from `Users`, numbers, or a column of any kind."""
    if isinstance(values, Users):
        return values
    column = UserNumbers("users", user_type)
    is_column = isinstance(values, pa.Array | pa.ChunkedArray | pl.Series | pd.Series)
    series = series_of("users", values if is_column else pd.Series(values))
    return column.users(column.numbers(series))._replace(who="a user")


def in_words(unit: str, column: str) -> str:
    """Whom a column names, on one line."""
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in column)
    shown = plain if len(plain) <= _LONGEST_NAME else f"{plain[:_LONGEST_NAME]}…"
    return f"{unit} (column {shown})"


def without_column(text: str) -> str:
    """The unit without the name of the column that `in_words` appends."""
    return text.partition(" (column ")[0]


# Columns of users

_WHOLE = "integers"
_TEXT = "text"
_UNUSUAL = -2  # in place of a number: a text that does not say who
_DIGITS = {"Float16": 11, "Float32": 24}  # bits of a float that are exact; else 53
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_INTEGER = r"^(?:0|-?[1-9][0-9]*)$"
_NUMBER = (  # that somebody may write for an integer, in any digits
    r"^[+\-−﹣＋－]?[\s\pZ]*(?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|(?:"
    r"(?:\p{Nd}+|\p{Nd}{1,3}(?:[,٬'’]\p{Nd}{2,3})+|\p{Nd}{1,3}(?:[\s\pZ]\p{Nd}{3})+)(?:[.,٫．，]\p{Nd}*)?"
    r"|[.,٫．，]\p{Nd}+)(?:[eE][+\-−]?\p{Nd}+)?)$"
)
_A_USER = 'a user; "missing_user": "drop" in the domain file leaves such rows out'
_ONE_SPELLING = (
    "an integer in its usual spelling, such as 7, or text that does not look like a number; if 7 and 007 "
    "are different people, --user-type text (in Python user_type='text') keeps such spellings apart"
)

Refusal = Callable[[int, str], Exception]  # of a row of a batch, and what is needed there


class UserNumbers:
    """Numbers the users of a column, given in batches: one number per person, never one for two people.

    Each value says by itself who a person is. Integers, in any type, are people by their number: 3, and
    3.0 in a column of floats, is person 3. Text is a person by its characters, in Unicode's composed form
    and without space around them. Text that spells a number in another way than an integer's usual one
    (007, 7.0, 1,000) is refused, unless all users are read as text. Dates and times are people by the day
    and the microsecond.

    All values of a column are of one kind, because 7 and "7" may be one person or two.

    Parameters
    ----------
    column : str
        Its name, for errors and for what a release says.
    user_type : "text", optional
        Read users as text, integers as they are usually spelled. Text that spells a number is then a
        person of its own. By default each column is of the kind that its type states.
    """

    def __init__(self, column: str, user_type: str | None = None):
        if user_type not in (None, _TEXT):
            raise ValueError(f"user_type = {user_type!r} is not allowed: need None or 'text'")
        self.column = column
        self.kind: str | None = None
        self._as_text = user_type is not None
        self.forget()

    def forget(self) -> None:
        """Number users anew; of which kind they are stays known."""
        self._names = _DifferentTexts()
        self._is_unusual = np.zeros(0, bool)  # of each name: it spells a number

    def numbers(
        self, values: pl.Series, refusal: Refusal | None = None
    ) -> Int[np.ndarray, " rows"]:
        """The users of some rows.

        Parameters
        ----------
        values : polars.Series
            A user a row.
        refusal : callable, optional
            Of the number of a row here and what is needed: the error that names the row's place.

        Returns
        -------
        int64[rows]

        Raises
        ------
        ValueError
            A value that is missing, or of a kind that identifies nobody, with its row.
        """
        numbers, refused = self.read(values)
        for need, bad in refused:
            if bad.any():
                row = int(bad.argmax())
                if refusal is not None:
                    raise refusal(row, need)
                found = "nothing" if values[row] is None else shown(values[row])
                raise ValueError(
                    f"column {self.column!r}, row {row}: found {found}, need {need}"
                )
        return numbers

    def read(
        self, values: pl.Series
    ) -> tuple[Int[np.ndarray, " rows"], list[tuple[str, Bool[np.ndarray, " rows"]]]]:
        """The users of some rows, and what is needed where they do not say who, with these rows."""
        if values.dtype not in (pl.Categorical, pl.Enum):
            return self._read(values)
        different, places = distinct(values)
        numbers, refused = self._read(different)
        return numbers[places], [(need, bad[places]) for need, bad in refused]

    @staticmethod
    def present(values: pl.Series) -> pl.Series:
        """Which rows name a user."""
        if _kind(values.dtype) == _TEXT:
            return (_trimmed(values) != "").fill_null(False)
        present = values.is_not_null()
        return present & values.is_not_nan() if values.dtype.is_float() else present

    def _read(
        self, values: pl.Series
    ) -> tuple[Int[np.ndarray, " rows"], list[tuple[str, Bool[np.ndarray, " rows"]]]]:
        kind = _kind(values.dtype)
        if kind == _TEXT:
            values = _trimmed(values)
            missing = (values == "").fill_null(True)
        else:
            missing = ~self.present(values)
        refused = [(_A_USER, missing.to_numpy())]
        if values.dtype == pl.Null:
            return np.zeros(len(values), np.int64), refused
        as_text = self._as_text and values.dtype.is_numeric()
        self.refuse_other_kind(_TEXT if as_text else kind)
        if kind == _TEXT:
            numbers = self._named(values)
            return numbers, [*refused, (_ONE_SPELLING, numbers == _UNUSUAL)]
        numbers, need = _whole(values)
        refused.append((need, (numbers.is_null() & ~missing).to_numpy()))
        if not as_text:
            return numbers.fill_null(0).to_numpy(), refused
        is_unsigned = values.dtype == pl.UInt64
        return self._named((values if is_unsigned else numbers).cast(pl.String)), refused

    def _named(self, texts: pl.Series) -> Int[np.ndarray, " rows"]:
        """Numbers of texts; negative where one does not say who."""
        known = len(self._is_unusual)
        numbers = self._names.numbers(texts)
        new = self._names.series(known)
        if len(new):
            seen = new.str.replace_all(f"[{_INVISIBLE}]", "")
            unusual = seen.str.contains(_NUMBER) & ~new.str.contains(_INTEGER)
            self._is_unusual = np.append(self._is_unusual, unusual.to_numpy())
        if self._as_text or not self._is_unusual.any():
            return numbers
        return np.where(self._is_unusual[numbers], _UNUSUAL, numbers)

    def ids(self, first: int = 0) -> UInt64[np.ndarray, "numbers 2"] | None:
        """Return what identifies the user of each number from one on, in 127 bits. None if the number does."""
        return _digests(self._names.series(first)) if self._names.size else None

    def users(self, numbers: Int[np.ndarray, " rows"]) -> Users:
        """Return the user of each row, for all rows that were given."""
        names = self._names.series() if self._names.size else None
        return Users(numbers, names, in_words("a user", self.column))

    def refuse_other_kind(self, kind: str | None) -> None:
        """A ValueError if users of this kind may be the same as those that were seen."""
        if kind is None:
            raise ValueError(
                f"column {self.column!r} cannot say who a row is of: need integers, text, dates or "
                "times, one value per user"
            )
        if self.kind not in (None, kind):
            raise ValueError(
                f"column {self.column!r}: some users are {self.kind}, others {kind}; need one kind, "
                "as 7 and '7' may be one person or two. If they are one, --user-type text (in Python "
                "user_type='text') reads all as text"
            )
        self.kind = kind


def _kind(dtype: pl.DataType) -> str | None:
    """What users of a type are; None if they are not told apart. Values of two kinds are never compared."""
    if dtype == pl.UInt64:
        return "integers of 64 bits without a sign"  # 2⁶⁴ − 1 is no −1
    if dtype.is_numeric():
        return _WHOLE
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return _TEXT
    if isinstance(dtype, pl.Datetime):
        return "times" if dtype.time_zone is None else "times of a zone"
    return "dates" if dtype == pl.Date else None


def _trimmed(values: pl.Series) -> pl.Series:
    """Texts in Unicode's composed form, without space around them."""
    texts = values.cast(pl.String)
    if (texts.str.len_bytes() != texts.str.len_chars()).any():  # ASCII is composed
        texts = texts.str.normalize("NFC")
    return texts.str.strip_chars(_SPACE + _INVISIBLE)


def _whole(values: pl.Series) -> tuple[pl.Series, str]:
    """Users as integers, each by itself, null where it is none; and what is needed there."""
    kind = values.dtype
    if kind == pl.UInt64:
        return values.reinterpret(signed=True), ""
    numbers = values.to_physical().cast(pl.Int64, strict=False)
    if kind.is_float():
        bits = _DIGITS.get(str(kind), 53)  # from here on, different ids are the same float
        floats = values.cast(pl.Float64)
        exact = (floats == floats.floor()) & (floats.abs() < 2**bits)
        power = str(bits).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        return numbers.set(~exact.fill_null(False), None), f"an integer below 2{power}, or text"
    if kind.is_decimal():
        whole = values.cast(pl.Int64, strict=False)
        return whole.set(
            (whole != values).fill_null(True), None
        ), "an integer of 64 bits, or text"
    if isinstance(kind, pl.Datetime):
        times = values.cast(pl.Datetime("us", kind.time_zone))
        exact = times.cast(kind) == values
        return times.to_physical().set(~exact.fill_null(False), None), (
            "a time to the microsecond, or text"
        )
    return numbers, "an integer below 2⁶³, or text"


def _digests(names: pl.Series) -> UInt64[np.ndarray, "names 2"]:
    """127 bits of each name."""
    empty = blake2b(digest_size=16, person=b"user")
    parts = []
    for name in names.cast(pl.Binary):
        hashed = empty.copy()
        hashed.update(name)
        parts.append(hashed.digest())
    ids = np.frombuffer(b"".join(parts), "<u8").astype(np.uint64).reshape(-1, 2)
    ids[:, 1] &= ~np.uint64(1)
    return ids


class _DifferentTexts:
    """Different texts, numbered from 0 in the order in which they come."""

    def __init__(self) -> None:
        self._allocate(2**10, 2**14)

    def _allocate(self, capacity: int, length: int) -> None:
        """Empty, with room for so many texts of so many bytes in all."""
        self.size = 0
        self._slots = np.full(2 * capacity, -1, np.int64)
        self._starts = np.zeros(capacity + 1, np.int64)
        self._text = np.empty(length, np.uint8)

    def numbers(self, texts: pl.Series) -> Int[np.ndarray, " rows"]:
        """The number of each text; a missing one is empty."""
        texts = texts.fill_null("")
        array = texts.to_arrow(compat_level=pl.CompatLevel.oldest())
        _, starts, text = array.buffers()
        starts = np.frombuffer(starts, np.int64, len(array) + 1, 8 * array.offset)
        text = np.frombuffer(text, np.uint8)
        self._reserve(self.size + len(texts), int(self._starts[self.size]) + len(text))
        held = self._slots, self._starts, self._text
        numbers = np.empty(len(texts), np.int64)
        self.size = user_kernels.number_texts(
            texts.hash(_SEED).to_numpy(), starts, text, self.size, *held, numbers
        )
        return numbers

    def series(self, first: int = 0) -> pl.Series:
        """The texts from one on, in the order of numbers."""
        starts = self._starts[first : self.size + 1]
        text = self._text[starts[0] : starts[-1]].copy()
        buffers = map(pa.py_buffer, (starts - starts[0], text))
        return pl.Series(pa.LargeStringArray.from_buffers(self.size - first, *buffers))

    def _reserve(self, capacity: int, length: int) -> None:
        """Room for so many texts; each growth at least doubles it."""
        if capacity >= len(self._starts) or length > len(self._text):
            names = self.series()
            self._allocate(1 << capacity.bit_length(), 1 << length.bit_length())
            self.numbers(names)
