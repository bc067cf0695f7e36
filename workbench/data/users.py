"""Users to whom rows belong. The module converts the names of users to numbers, and computes the random bits
that determine the kept rows of each user.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from workbench.compiled import in_slices, pa, pd, pl
from workbench.data import user_kernels
from workbench.data.sources import Batch, Frame, series_of
from workbench.randomness import KEY_BYTES, system_key
from workbench.spaces.rules import Refused, Texts, distinct, only
from workbench.value import Int, UInt64

_SEED = int.from_bytes(
    system_key()[:8]
)  # of hashes: nobody can choose names that are slow to look up
_LONGEST_NAME = 60  # of a column, in what a release says

# Draws


def refuse_cut_of_nobody(rng: np.random.Generator | None, key: bytes | None) -> None:
    """Raise a ValueError if a generator or a key is given. The workbench calls this function if no users are
    named. Without users, no rows are left out at random, so a generator or a key would have no effect.
    """
    if rng is not None or key is not None:
        raise ValueError("rng and key say how users are cut: need users, too")


def cut_key(rng: np.random.Generator | None = None, key: bytes | None = None) -> bytes:
    """Return a key of 32 bytes, which determines the random choice of the rows that are kept. If you pass a
    key, the result is this key. If you pass a generator, the key is drawn from the generator. By default, the
    key comes from the operating system.
    """
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
    """Return 256 random bits for each user. These bits determine the random choices for the user. The bits
    depend only on the key and on the identifier of the user.

    For each user, the cipher AES-256 encrypts two blocks with the key. The first block is the identifier of the
    user. The second block is the same identifier, but with the lowest bit changed from 0 to 1. So the blocks of
    all users are different. The two encrypted blocks are the 256 random bits of the user. If AES behaves like a
    random permutation, the bits are uniform, independent across users, and never all 0.

    Parameters
    ----------
    key : bytes
        Secret key of 32 bytes.
    ids : uint64[users, 2]
        Identifier of each user, from `UserNumbers.ids`. The second number of an identifier is even.

    Returns
    -------
    uint64[users, 4]
        First state of a random number generator for each user. The function `user_kernels.next_word` takes this
        state.

    Raises
    ------
    ValueError
        If the key does not have 32 bytes.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    if not isinstance(key, bytes) or len(key) != KEY_BYTES:
        raise ValueError(f"key must be {KEY_BYTES} bytes, as those of os.urandom({KEY_BYTES})")
    cipher = Cipher(algorithms.AES(key), modes.ECB())  # every block is another: nothing repeats
    encryptor = cipher.encryptor()
    blocks = np.repeat(ids.astype("<u8"), 2, axis=0)
    blocks[1::2, 1] |= np.uint64(1)
    drawn = np.frombuffer(encryptor.update(blocks.tobytes()), "<u8")
    return drawn.astype(np.uint64).reshape(-1, 4)


# Users


class Users(NamedTuple):
    """Users to whom the rows of a table belong. Users are numbered from 0. `numbers` contains, for each row,
    the number of its user. `ids` contains the identifier (two 64-bit integers) or the name of each user, in the
    order of the numbers.

    If `ids` is None, the number of a user is also the user's identifier. `who` is the term for a user in the
    texts of a release, for example "a user (column id)".
    """

    numbers: Int[np.ndarray, " rows"]
    ids: UInt64[np.ndarray, "numbers 2"] | pl.Series | None = None  # names; None: the number
    who: str = "a user"  # one of them, in words

    def ids_of(self, numbers: Int[np.ndarray, " users"]) -> UInt64[np.ndarray, "users 2"]:
        """Return the identifiers of the users with the given numbers, each as two 64-bit integers."""
        if isinstance(self.ids, np.ndarray):
            return self.ids[numbers]
        if self.ids is not None:
            return _digests(self.ids.gather(numbers))
        ids = np.zeros((len(numbers), 2), np.uint64)
        ids[:, 0] = numbers.astype(np.int64).view(np.uint64)
        return ids


def users_of(values: Any, user_type: str | None = None) -> Users:
    """Return a `Users` object for the users of rows. The argument `values` may already be such an object, a
    sequence of numbers, or a column of text, dates or times.
    """
    if isinstance(values, Users):
        return values
    column = UserNumbers("users", user_type)
    if isinstance(values, np.ndarray):
        values = pd.Series(values)
    if not isinstance(values, pa.Array | pa.ChunkedArray | pl.Series | pd.Series):
        try:
            values = pl.Series("users", [*values])  # of one type, or it is refused
        except (TypeError, pl.exceptions.PolarsError):
            need = "integers below 2⁶⁴, or only text"
            raise ValueError(
                f"users are of several types: need values of one, such as {need}"
            ) from None
    series = series_of("users", values)
    numbers, refused = column.read(series)
    frame = series.to_frame()
    Batch(Frame(frame), 0, len(frame), frame).refuse(refused)
    return column.users(numbers)._replace(who="a user")


def in_words(unit: str, column: str) -> str:
    """Return a text that names a protected unit and the column that identifies units, for example "a user
    (column id)". If the name of the column is long, the end of this name is cut off.
    """
    plain = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in column)
    shown = plain if len(plain) <= _LONGEST_NAME else f"{plain[:_LONGEST_NAME]}…"
    return f"{unit} (column {shown})"


def without_column(text: str) -> str:
    """Return the name of a protected unit without the name of its column. For example, "a user (column id)"
    becomes "a user".
    """
    return text.partition(" (column ")[0]


# Columns of users

_WHOLE = "integers"
_TEXT = "text"
_NOBODY = -1  # in place of a number: a text that names nobody
_UNUSUAL = -2  # a text that does not say who
_SPACE = "".join(filter(str.isspace, map(chr, range(0x3001))))
_INVISIBLE = "\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_INTEGER = r"^(?:0|-?[1-9][0-9]*)$"
_NUMBER = (  # that somebody may write for an integer, in any digits
    r"^[+\-−﹣＋－]?[\s\pZ]*(?:0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|(?:"
    r"(?:\p{Nd}+|\p{Nd}{1,3}(?:[,٬'’]\p{Nd}{2,3})+|\p{Nd}{1,3}(?:[\s\pZ]\p{Nd}{3})+)(?:[.,٫．，]\p{Nd}*)?"
    r"|[.,٫．，]\p{Nd}+)(?:[eE][+\-−]?\p{Nd}+)?)$"
)
_A_USER = "a user"
_DROPS = '. "missing_user": "drop" in the domain file leaves such rows out'
_ONE_SPELLING = (
    "an integer in its usual spelling, such as 7, or text that does not look like a number. If 7 and 007 "
    "are different people, use --user-type text (in Python user_type='text')"
)
_AN_INTEGER = "an integer (as a float below 2⁵³, as one of 32 bits below 2²⁴), or text"
_A_TIME = "a time to the microsecond, or text"

Numbers = Int[np.ndarray, " rows"]


class UserNumbers:
    """Numbering of the users in a column that is read in batches. Each user gets one number, and two users
    never have the same number.

    Integers are compared by value. For example, 3.0 in a column of floats is the same user as 3 in another
    batch. Texts are compared without the spaces around them and after Unicode normalisation (NFC). If a text is
    an unusual spelling of a number, for example 007, 7.0 or 1,000, an error is raised. But with
    `user_type="text"`, such a text is the name of a separate user. Dates are equal if they are the same day,
    and times if they are the same microsecond.

    All batches of a column must contain values of the same type, because it is unknown whether 7 and "7" are
    the same user.

    Parameters
    ----------
    column : str
        Name of the column, which is also used in error messages.
    user_type : "text", optional
        With "text", all users are read as text. An integer becomes a text, for example "7". By default, users
        are read in the type that the column has.
    missing : "refuse", "drop" or texts, optional
        Treatment of rows whose user is missing. "refuse" (the default) raises an error, and "drop" leaves
        such rows out. If you give texts, for example ("NA", "unknown"), rows with such a text are also left
        out.
    """

    def __init__(
        self,
        column: str,
        user_type: str | None = None,
        missing: str | Sequence[str] | None = None,
    ):
        if user_type not in (None, _TEXT):
            raise ValueError(f"user_type = {user_type!r} is not allowed: need None or 'text'")
        self.column = column
        self.kind: str | None = None
        self._as_text = user_type is not None
        self._need = _A_USER + _DROPS if missing else _A_USER
        self._drops = missing not in (None, "refuse")
        texts = () if isinstance(missing, str) else missing or ()
        self._nobody = Texts(dict.fromkeys(texts, 0))
        self.forget()

    def forget(self) -> None:
        """Forget all users, so that numbers begin at 0 again. The type of the column is remembered."""
        self._names = _DifferentTexts()
        self._people = np.zeros(0, np.int64)  # of each name: the number of its usual spelling

    def of_rows(self, batch: Batch) -> tuple[Batch, Numbers, Refused]:
        """Read the users of a batch of rows. Return three things: the batch without the rows that are left out,
        the number that stands for the user of each remaining row, and the values that are not allowed.
        """
        numbers, refused = self.read(batch.frame[self.column])
        if self._drops:
            present = ~refused[0][2]
            batch = batch.where(pl.Series(present))
            numbers = numbers[present]
            refused = [(name, need, bad[present]) for name, need, bad in refused]
        return batch, numbers, refused

    def read(self, values: pl.Series) -> tuple[Numbers, Refused]:
        """Return, for each row, the number that stands for its user. Also return a list of the values that are
        not allowed. The first entry of this list is about rows whose user is missing.
        """
        if values.dtype in (pl.Categorical, pl.Enum):
            different, places = distinct(values)
            numbers, refused = self.read(different)
            return numbers[places], [(name, need, bad[places]) for name, need, bad in refused]
        kind = values.dtype
        if kind == pl.Null:
            none = np.ones(len(values), bool)
            return np.zeros(len(values), np.int64), [(self.column, self._need, none)]
        as_text = self._as_text and kind.is_numeric()
        self.refuse_other_kind(_TEXT if as_text else _kind(kind))
        if kind == pl.String:
            numbers = self._named(values)
            return numbers, [
                (self.column, self._need, numbers == _NOBODY),
                (self.column, _ONE_SPELLING, numbers == _UNUSUAL),
            ]
        whole = _whole(values)
        missing = values.is_null() | values.is_nan() if kind.is_float() else values.is_null()
        missing |= self._nobody.have(values)
        need = _A_TIME if isinstance(kind, pl.Datetime) else _AN_INTEGER
        refused = [
            (self.column, self._need, missing.to_numpy()),
            (self.column, need, (whole.is_null() & ~missing).to_numpy()),
        ]
        if as_text:
            return self._named(
                (values if kind == pl.UInt64 else whole).cast(pl.String)
            ), refused
        return whole.fill_null(0).to_numpy(), refused

    def _named(self, texts: pl.Series) -> Numbers:
        """Return the number of the user whom each text names. Texts that name nobody, and unusual spellings
        of numbers, get a negative number.
        """
        numbers, new = self._names.numbers(texts)
        if len(new):
            known = len(self._people)
            spelled = _trimmed(new)
            people = np.arange(known, known + len(new))
            if not self._as_text:
                seen = spelled.str.replace_all(f"[{_INVISIBLE}]", "")
                unusual = seen.str.contains(_NUMBER) & ~spelled.str.contains(_INTEGER)
                people[unusual.to_numpy()] = _UNUSUAL
            people[((spelled == "") | self._nobody.have(spelled)).to_numpy()] = _NOBODY
            self._people = np.append(self._people, people)
            others = (spelled != new).to_numpy()
            if others.any():
                named = self._named(spelled.filter(others))
                self._people[known + np.flatnonzero(others)] = named
        return self._people[numbers]

    def ids(self) -> UInt64[np.ndarray, "numbers 2"] | None:
        """Return the identifiers of the users. Row i belongs to the user with the number i. An identifier is a
        hash of 127 bits, stored as two 64-bit integers. If the data identify users by integers, return None,
        because the number of a user is then also the identifier.
        """
        return _digests(self._names.series()) if self._names.size else None

    def users(self, numbers: Numbers) -> Users:
        """Return a `Users` object for rows, given the number of each row's user. The object also contains the
        names of the users and of the column.
        """
        names = self._names.series() if self._names.size else None
        return Users(numbers, names, in_words("a user", self.column))

    def refuse_other_kind(self, kind: str | None) -> None:
        """Raise a ValueError if the users of this batch are of another type than the users of earlier batches,
        for example text after integers. It is then unknown whether 7 and "7" are the same user.
        """
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
    """Return a word for the kind of users in a column of this type, for example "integers", or None if the
    type cannot identify users.
    """
    if dtype == pl.UInt64:
        return "integers of 64 bits without a sign"  # 2⁶⁴ − 1 is no −1
    if dtype.is_numeric():
        return _WHOLE
    if isinstance(dtype, pl.Datetime):
        return "times" if dtype.time_zone is None else "times of a zone"
    return {pl.String: _TEXT, pl.Date: "dates"}.get(dtype.base_type())


def _trimmed(texts: pl.Series) -> pl.Series:
    """Return texts without spaces around them and after Unicode normalisation (NFC)."""
    if (texts.str.len_bytes() != texts.str.len_chars()).any():  # ASCII is composed
        texts = texts.str.normalize("NFC")
    return texts.str.strip_chars(_SPACE + _INVISIBLE)


def _whole(values: pl.Series) -> pl.Series:
    """Return users of a numeric, date or time type as integers. A value that is not exactly an integer
    becomes null.
    """
    kind = values.dtype
    if kind == pl.UInt64:
        return values.reinterpret(signed=True)
    if isinstance(kind, pl.Datetime):
        times = values.dt.cast_time_unit("us")
        return only(times.to_physical(), times.dt.cast_time_unit(kind.time_unit) == values)
    whole = values.cast(pl.Int64, strict=False)
    if kind.is_float():
        bits = np.finfo(str(kind).lower()).nmant + 1  # above, different integers are one float
        whole = only(whole, whole.abs() < 2**bits)
    if kind.is_float() or kind.is_decimal():
        return only(whole, whole.cast(kind, strict=False) == values)
    return whole


def _digests(names: pl.Series) -> UInt64[np.ndarray, "names 2"]:
    """Return a hash of 127 bits for each name."""
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
    """List of distinct texts. They are numbered from 0 in the order in which they first occur."""

    def __init__(self) -> None:
        self._allocate(2**10, 2**14)

    def _allocate(self, capacity: int, length: int) -> None:
        """Empty the list, and allocate memory for `capacity` texts with `length` bytes together."""
        self.size = 0
        self._end = 0
        self._slots = np.full(
            (2 * capacity, 2), -1, np.int64
        )  # a number, and where its text is
        self._text = np.empty(length, np.uint8)

    def numbers(self, texts: pl.Series) -> tuple[Numbers, pl.Series]:
        """Return the number of each text, and the texts that are new, which are added to the list. A missing
        text counts as an empty text.
        """
        texts = texts.fill_null("")
        array = texts.to_arrow(compat_level=pl.CompatLevel.oldest())
        _, starts, text = array.buffers()
        starts = np.frombuffer(starts, np.int64, len(array) + 1, 8 * array.offset)
        text = np.frombuffer(text, np.uint8)
        capacity = self.size + len(texts)
        length = self._end + len(text) + len(texts)
        if 2 * capacity > len(self._slots) or length > len(self._text):
            names = self.series()
            self._allocate(1 << capacity.bit_length(), 1 << length.bit_length())
            self.numbers(names)
        first = self._end
        numbers = np.full(len(texts), -1)
        hashes = texts.hash(_SEED).to_numpy()
        held = self._slots, self._text

        def find(part: slice) -> None:
            own = starts[part.start : part.stop + 1]
            user_kernels.find_texts(hashes[part], own, text, *held, numbers[part])

        if self.size:
            in_slices(find, len(texts))
        self.size, self._end = user_kernels.add_texts(
            hashes, starts, text, self.size, self._end, *held, numbers
        )
        return numbers, self.series(first)

    def series(self, first: int = 0) -> pl.Series:
        """Return the texts of the list in the order of their numbers, beginning with the text at byte
        `first`.
        """
        text = self._text[first : self._end]
        is_end = text == user_kernels.END
        ends = np.flatnonzero(is_end)
        starts = np.append(0, ends - np.arange(len(ends)))
        buffers = map(pa.py_buffer, (starts, text[~is_end]))
        return pl.Series(pa.LargeStringArray.from_buffers(len(ends), *buffers))
