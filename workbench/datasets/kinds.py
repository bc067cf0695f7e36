"""Kinds of datasets. A dataset is a real file, a synthetic stand-in that replaces a real file (a "twin"), or
a generator of other synthetic data.

A paper's statement cannot be tested on a stand-in if it is about a property that we invented. So the checks
of statements ask which kind of dataset was used (`kind_of`), and which properties are invented
(`Twin.invented`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from workbench.compiled import pl
from workbench.data import UNBOUNDED, Bound, Interactions
from workbench.datasets.published import WEEKDAYS, File
from workbench.spaces import Domain
from workbench.value import parameter, sealed

# Kinds

REAL_FILE = "real file"
TWIN = "twin"  # generated with the published statistics of data that it stands in for
GENERATOR = "generator"  # generated from a stated distribution


class Dataset:
    """Base class of all datasets. A dataset states its kind, its source, and whether its exact counts may be
    shown.

    Attributes
    ----------
    kind : str
        "real file" (published data), "twin" (synthetic data that replace real data) or "generator" (other
        synthetic data).
    cite : str
        Key of the dataset's source in the file `references.bib`.
    truth_public : bool
        Whether exact counts may be shown next to a release, because the data are public or generated.
    """

    kind: ClassVar[str] = GENERATOR
    cite: ClassVar[str]
    truth_public: ClassVar[bool] = True


class RealFile(Dataset):
    """Base class of datasets that are read from published files. The module `published` finds, downloads and
    verifies these files.
    """

    kind: ClassVar[str] = REAL_FILE
    schema: ClassVar[tuple[File, ...]]  # files, how they are written, and their hashes

    def files(self) -> tuple[File, ...]:
        """Return the published files of the dataset."""
        return self.schema


class RecordsFile(RealFile):
    """Base class of datasets of published records. A record consists of a user, an item (for example a film)
    and a context (for example the day of the week).

    If a class does not state its list of items, the list consists of all items that occur in the files, in
    ascending order. If the attribute `once` is True, no user may have the same item twice. Loading then
    raises an error if a user does, and sorts each user's records by item.
    """

    contexts: ClassVar[tuple[str, ...]] = WEEKDAYS
    once: ClassVar[bool] = False

    def _records(self) -> pl.DataFrame:
        """Read the files. Return the columns `user` (null if the row is to be left out), `item` (a label) and
        `context` (a code).
        """
        raise NotImplementedError

    @cached_property
    def _kept(self) -> pl.DataFrame:
        return self._records()

    @cached_property
    def items(self) -> range | tuple[Any, ...]:
        """Labels of all items, for example the published numbers of films."""
        return tuple(self._kept["item"].unique().sort())

    @property
    def domain(self) -> Domain:
        """All pairs of an item and a context. If the class states no list of items, the property reads the
        items from the files.
        """
        shape = (len(self.items), len(self.contexts))
        return Domain(("item", "context"), shape, (self.items, self.contexts))

    def load(self) -> Interactions:
        """Load the records. Raise a ValueError if a row is invalid, or if a file does not have the number of
        rows that the dataset states. If a row is invalid, the message names the row.
        """
        items = self.items
        if isinstance(items, range):
            frame = self._records()
            item = pl.col("item") - items[0]
        else:
            frame = self._kept.drop_nulls("user")
            item = pl.col("item").replace_strict(items, range(len(items)))
        item = item.cast(pl.UInt16 if len(items) <= 2**16 else pl.Int32)
        frame = frame.with_columns(item).sort(
            "user", *["item"] * self.once, maintain_order=True
        )
        users, own, contexts = (sealed(column.to_numpy(writable=True)) for column in frame)
        data = Interactions(self.domain, users, own, contexts, UNBOUNDED, True)
        if not self.once:
            return data
        again = (data.users[1:] == data.users[:-1]) & (data.items[1:] == data.items[:-1])
        if again.any():
            row = int(again.argmax())
            raise ValueError(
                f"{self.files()[0].find()}: user {data.users[row]} has item {items[data.items[row]]} a "
                "second time, need one record at most of a user and item"
            )
        return replace(data, bound=Bound(len(items), 1), distinct=True)


def records(user: str, item: str, context: pl.Expr) -> tuple[pl.Expr, ...]:
    """Return expressions for the columns `user`, `item` and `context`, in types that need little memory."""
    return (
        pl.col(user).cast(pl.Int32).alias("user"),
        pl.col(item).alias("item"),
        context.cast(pl.UInt8).alias("context"),
    )


class Twin(Dataset):
    """Base class of synthetic data that replace real data (stand-ins, or "twins"). The synthetic data agree
    with published statistics of the real data.

    Attributes
    ----------
    original : str
        Text that names the real data, and says how to get them if they are available.
    invented : mapping
        Descriptions of those properties of the synthetic data that we chose ourselves, by keyword, for
        example "order" or "counts". A paper's statement about such a property cannot be tested on these data.
    """

    if TYPE_CHECKING:  # a field, or a property

        @property
        def original(self) -> str: ...  # noqa: D102

    kind: ClassVar[str] = TWIN
    invented: ClassVar[Mapping[str, str]]


def unwrapped(dataset: Any) -> Any:
    """Return the dataset from which this dataset is computed, for example by sorting. If it is not computed
    from another one, return the dataset itself.
    """
    while hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    return dataset


def kind_of(dataset: Any) -> str:
    """Return the kind of a dataset. The function also accepts datasets from other packages, which need not
    state their kind.

    Parameters
    ----------
    dataset : dataset
        Dataset, for example `Adult()`.

    Returns
    -------
    str
        "real file", "twin" or "generator".
    """
    dataset = unwrapped(dataset)
    return getattr(dataset, "kind", REAL_FILE if hasattr(dataset, "files") else GENERATOR)


def differences(ours: Mapping[str, int], published: Mapping[str, int]) -> tuple[str, ...]:
    """Compare numbers of a file with published numbers. Return a description of each number that differs.

    >>> differences({"users": 3, "records": 8}, {"users": 6040, "records": 8})
    ('3 users (published: 6,040)',)
    """
    names = (name for name in published if ours[name] != published[name])
    return tuple(f"{ours[name]:,} {name} (published: {published[name]:,})" for name in names)


def remarks_on(dataset: Any) -> tuple[str, ...]:
    """Return descriptions of the differences between a dataset's file and the published facts about it."""
    return dataset.remarks() if hasattr(dataset, "remarks") else ()


# Generated


def seed_field() -> Any:
    """Return the declaration of a field `seed` for datasets that are generated."""
    return parameter(0, 0, integer=True, doc="seed of the generator")


def root(is_below: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Find the number at which the function `is_below` changes from True to False. Return the two
    neighbouring floats between which the function changes.
    """
    while (middle := (low + high) / 2) not in (low, high):
        if is_below(middle):
            low = middle
        else:
            high = middle
    return low, high
