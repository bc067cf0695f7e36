"""The kinds of datasets: real files, synthetic stand-ins and generators.

A statement of a paper that rests on what a twin invents cannot be judged on it: checks ask `kind_of`, and
the marks of `Twin.invented`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

from workbench.compiled import pl
from workbench.data import UNBOUNDED, Bound, Interactions
from workbench.datasets.published import File
from workbench.datasets.reading import WEEKDAYS
from workbench.spaces import Domain
from workbench.value import parameter, sealed

# Kinds

REAL_FILE = "real file"
TWIN = "twin"  # made up, with the published statistics of data that it stands in for
GENERATOR = "generator"  # made up by a law that is stated


class Dataset:
    """What all datasets say of themselves.

    Attributes
    ----------
    kind : str
        "real file", "twin" or "generator".
    cite : str
        The source, as references name it.
    truth_public : bool
        Exact counts may be shown beside a release.
    """

    kind: ClassVar[str] = GENERATOR
    cite: ClassVar[str]
    truth_public: ClassVar[bool] = True


class RealFile(Dataset):
    """A dataset of published files, which `published` finds, fetches and checks."""

    kind: ClassVar[str] = REAL_FILE
    schema: ClassVar[tuple[File, ...]]  # files, how they are written, and their hashes

    def files(self) -> tuple[File, ...]:
        """The files that hold it, as their publisher has them."""
        return self.schema


class RecordsFile(RealFile):
    """A dataset of published records: a user, an item, and the day of the week or another context.

    Items are those that the files name, in their order, unless a class states a range. Users who have
    no item twice are `once`, which loading enforces: their records are sorted by item.
    """

    contexts: ClassVar[tuple[str, ...]] = WEEKDAYS
    once: ClassVar[bool] = False

    def _records(self) -> pl.DataFrame:
        """Columns `user` (null: left out), `item` and `context`, of which only items are labels."""
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
        """Items × contexts. Reads the files, unless the items are known."""
        shape = (len(self.items), len(self.contexts))
        return Domain(("item", "context"), shape, (self.items, self.contexts))

    def load(self) -> Interactions:
        """Load the records. Raises ValueError for a bad row or too few rows, with its place."""
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
    """The columns of records, in narrow types."""
    return (
        pl.col(user).cast(pl.Int32).alias("user"),
        pl.col(item).alias("item"),
        context.cast(pl.UInt8).alias("context"),
    )


class Twin(Dataset):
    """What twins say of themselves: of what they are made, by marks such as "order" or "counts".

    Attributes
    ----------
    original : str
        The data that it stands in for, and how to get it, where that can be done.
    invented : mapping
        What is ours, and so decides nothing about the paper.
    """

    if TYPE_CHECKING:  # a field, or a property

        @property
        def original(self) -> str: ...  # noqa: D102

    kind: ClassVar[str] = TWIN
    invented: ClassVar[Mapping[str, str]]


def unwrapped(dataset: Any) -> Any:
    """The dataset whose records another one sorts, adds up or moves elsewhere; else itself."""
    while hasattr(dataset, "dataset"):
        dataset = dataset.dataset
    return dataset


def kind_of(dataset: Any) -> str:
    """What any dataset is, also one of another package that does not say it.

    Parameters
    ----------
    dataset : dataset
        A value, as figures run on it.

    Returns
    -------
    str
        "real file", "twin" or "generator".
    """
    dataset = unwrapped(dataset)
    return getattr(dataset, "kind", REAL_FILE if hasattr(dataset, "files") else GENERATOR)


def differences(ours: Mapping[str, int], published: Mapping[str, int]) -> tuple[str, ...]:
    """Which numbers of a file are others than those that are published of it, in words.

    >>> differences({"users": 3, "records": 8}, {"users": 6040, "records": 8})
    ('3 users (published: 6,040)',)
    """
    names = (name for name in published if ours[name] != published[name])
    return tuple(f"{ours[name]:,} {name} (published: {published[name]:,})" for name in names)


def remarks_on(dataset: Any) -> tuple[str, ...]:
    """How a published file differs from what is published of it; of anything else nothing."""
    return dataset.remarks() if hasattr(dataset, "remarks") else ()


# Generated


def seed_field() -> Any:
    """The field that makes a generator replayable."""
    return parameter(0, 0, integer=True, doc="seed of the generator")


def root(is_below: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """The two neighbouring floats between which something begins to be false."""
    while (middle := (low + high) / 2) not in (low, high):
        if is_below(middle):
            low = middle
        else:
            high = middle
    return low, high
