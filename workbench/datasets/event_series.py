"""EventSeries: events counted over bins of time, so many of a unit at most."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, SparseTable
from workbench.datasets.delimited import read_blocks
from workbench.datasets.kinds import seed_field
from workbench.datasets.own_file import OwnFile
from workbench.spaces import Domain
from workbench.value import Int, parameter, value


def _moment(text: Any) -> str | None:
    try:
        return "need a time without zone" if datetime.fromisoformat(text).tzinfo else None
    except (TypeError, ValueError):
        return 'need a day or time such as "2010-12-01" or "2010-12-01 08:00"'


def _format(text: Any) -> str | None:
    moment = datetime(2010, 11, 12)
    try:
        is_format = datetime.strptime(moment.strftime(text), text) == moment
    except (TypeError, ValueError):
        is_format = False
    return None if is_format else 'need a format of days and times such as "%Y-%m-%d %H:%M:%S"'


@value
class EventSeries(OwnFile):
    """Events of a period, from a comma-separated file of your own, over bins of time.

    The first line of the file names its columns, of which `time` and `unit` are read: when an
    event was, and whose. One unit is all events of one value of `unit`, in its exact spelling.
    The period from `start` to before `end` is public: the domain is its bins of `minutes` each,
    in their order, whatever the file holds; an event outside it is an error.

    Of a unit with more than `most` events, `most` are kept, drawn without replacement by a
    generator that `seed` and the unit's own name start: the draw depends on nothing else, so
    that a unit more or less moves nobody else's events, and the bound holds for any seed, also
    a published one. Events that name no unit are left out, because no bound could hold for whom
    they belong to; how many is not said, because it depends on the data.
    """

    path: str
    time: str
    unit: str
    start: str = parameter(check=_moment, doc="the first moment of the period")
    end: str = parameter(check=_moment, doc="the first moment after it")
    most: int = parameter(low=1, integer=True, unit="events", doc="of one unit")
    minutes: int = parameter(60, 1, integer=True, doc="length of a bin")
    written: str = parameter("%Y-%m-%d %H:%M:%S", check=_format, doc="how times are written")
    seed: int = seed_field()
    truth_public: bool = parameter(False, choices=(False, True), doc="counts may be shown")

    def __post_init__(self) -> None:
        if self._ends <= self._starts:
            raise ValueError(
                f"EventSeries.end = {self.end!r} is not after start {self.start!r}"
            )

    @property
    def domain(self) -> Domain:
        """Bins, numbered from 0; the last may be shorter than the others."""
        minutes = (self._ends - self._starts).total_seconds() / 60
        return Domain(("bin",), (int(-(-minutes // self.minutes)),))

    def load(self) -> SparseTable:
        """The table; a time that cannot be read, or outside the period, is a ValueError."""
        domain = self.domain
        path = self._find()
        need = f"a time as {self.written} from {self.start} to before {self.end}"
        frames = [pl.DataFrame(schema={"unit": pl.String, "bin": pl.Int64})]
        for block in read_blocks(path, (self.time, self.unit)):
            times = block.frame[self.time].str.to_datetime(
                self.written, time_unit="us", strict=False
            )
            inside = (times >= self._starts) & (times < self._ends)
            block.refuse(~inside, self.time, need)
            bins = (times - self._starts).dt.total_microseconds() // (self.minutes * 60_000_000)
            frames.append(pl.DataFrame({"unit": block.frame[self.unit], "bin": bins}))
        keys = self._bounded(pl.concat(frames).drop_nulls("unit"))
        bound = Bound(min(self.most, domain.size), self.most, self.most)
        return SparseTable.from_keys(
            domain, keys, np.ones_like(keys), bound, truth_public=self.truth_public
        )

    def _bounded(self, events: pl.DataFrame) -> Int[np.ndarray, " events"]:
        """The bins of the events that are kept."""
        events = events.sort("unit", "bin")  # what is drawn may not depend on the file's order
        sizes = events.group_by("unit", maintain_order=True).len()
        is_drawn = np.ones(len(events), bool)
        start = 0
        for unit, size in sizes.iter_rows():
            if size > self.most:
                name = hashlib.sha256(unit.encode()).digest()
                rng = np.random.default_rng([self.seed, int.from_bytes(name)])
                is_drawn[start : start + size] = False
                is_drawn[start + rng.choice(size, self.most, replace=False)] = True
            start += size
        return events["bin"].to_numpy()[is_drawn]

    @property
    def _starts(self) -> datetime:
        return datetime.fromisoformat(self.start)

    @property
    def _ends(self) -> datetime:
        return datetime.fromisoformat(self.end)
