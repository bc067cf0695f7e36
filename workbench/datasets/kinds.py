"""Kinds of datasets: real files, synthetic stand-ins ("twins") and generators.

A stand-in cannot test a statement that rests on an invented property. Checks therefore use `kind_of` a
dataset and the marks in `Twin.invented`.
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
    """Base class of datasets.

    Attributes
    ----------
    kind : str
        "real file", "twin" or "generator".
    cite : str
        Key of the source in `references.bib`.
    truth_public : bool
        Whether exact counts may be shown next to a release.
    """

    kind: ClassVar[str] = GENERATOR
    cite: ClassVar[str]
    truth_public: ClassVar[bool] = True


class RealFile(Dataset):
    """Dataset of published files. The module `published` finds, downloads and verifies them."""

    kind: ClassVar[str] = REAL_FILE
    schema: ClassVar[tuple[File, ...]]  # files, how they are written, and their hashes

    def files(self) -> tuple[File, ...]:
        """Return the published files of the dataset."""
        return self.schema


class RecordsFile(RealFile):
    """Dataset of published records. Each has a user, an item, and a context, for example the day of the
    week.

    If a class states no range of items, the items are those that occur in the files, in ascending order. If
    `once` is true, no user has an item twice. Loading enforces this, and sorts each user's records by item.
    """

    contexts: ClassVar[tuple[str, ...]] = WEEKDAYS
    once: ClassVar[bool] = False

    def _records(self) -> pl.DataFrame:
        """Return the columns `user` (null if the row is left out), `item` (a label) and `context` (a
        code).
        """
        raise NotImplementedError

    @cached_property
    def _kept(self) -> pl.DataFrame:
        return self._records()

    @cached_property
    def items(self) -> range | tuple[Any, ...]:
        """Labels of items."""
        return tuple(self._kept["item"].unique().sort())

    @property
    def domain(self) -> Domain:
        """Domain of items × contexts. The property reads the files, unless the items are known."""
        shape = (len(self.items), len(self.contexts))
        return Domain(("item", "context"), shape, (self.items, self.contexts))

    def load(self) -> Interactions:
        """Load the records. Raise a ValueError for an invalid row, which the message names, and for too few
        rows.
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
    """Return expressions for the columns of records, in narrow types."""
    return (
        pl.col(user).cast(pl.Int32).alias("user"),
        pl.col(item).alias("item"),
        context.cast(pl.UInt8).alias("context"),
    )


class Twin(Dataset):
    """Base class of synthetic stand-ins for data with published statistics.

    Attributes
    ----------
    original : str
        Data that it replaces, and the way to get it if there is one.
    invented : mapping
        Properties that we chose ourselves, by marks such as "order" or "counts". They test nothing
        about the paper.
    """

    if TYPE_CHECKING:  # a field, or a property

        @property
        def original(self) -> str: ...  # noqa: D102

    kind: ClassVar[str] = TWIN
    invented: ClassVar[Mapping[str, str]]


def unwrapped(dataset: Any) -> Any:
    """Return the dataset from which a dataset is computed, for example by sorting. If there is none, return
    the dataset itself.
    """
    while hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    return dataset


def kind_of(dataset: Any) -> str:
    """Return the kind of a dataset. The function also finds it for a dataset of another package that states
    no kind.

    Parameters
    ----------
    dataset : dataset
        A dataset's value.

    Returns
    -------
    str
        "real file", "twin" or "generator".
    """
    dataset = unwrapped(dataset)
    return getattr(dataset, "kind", REAL_FILE if hasattr(dataset, "files") else GENERATOR)


def differences(ours: Mapping[str, int], published: Mapping[str, int]) -> tuple[str, ...]:
    """Describe which numbers of a file differ from the published ones.

    >>> differences({"users": 3, "records": 8}, {"users": 6040, "records": 8})
    ('3 users (published: 6,040)',)
    """
    names = (name for name in published if ours[name] != published[name])
    return tuple(f"{ours[name]:,} {name} (published: {published[name]:,})" for name in names)


def remarks_on(dataset: Any) -> tuple[str, ...]:
    """Return the differences between a dataset's file and the published facts about it."""
    return dataset.remarks() if hasattr(dataset, "remarks") else ()


# Generated


def seed_field() -> Any:
    """Declare the seed of a generator."""
    return parameter(0, 0, integer=True, doc="seed of the generator")


def root(is_below: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Find the place at which `is_below` changes from true to false. Return the two neighbouring floats
    around it.
    """
    while (middle := (low + high) / 2) not in (low, high):
        if is_below(middle):
            low = middle
        else:
            high = middle
    return low, high
