"""EventSeries and RetailHours: events counted over bins of time, so many of a unit at most."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Int

from workbench.datasets.delimited import read
from workbench.datasets.published import File
from workbench.domain import Domain
from workbench.table import Bound, SparseTable
from workbench.value import parameter, value

if TYPE_CHECKING:
    import polars as pl


def _moment(text: Any) -> str | None:
    try:
        return "need a time without zone" if datetime.fromisoformat(text).tzinfo else None
    except (TypeError, ValueError):
        return 'need a day or time such as "2010-12-01" or "2010-12-01 08:00"'


def _format(text: Any) -> str | None:
    moment = datetime(2010, 11, 12)
    try:
        good = datetime.strptime(moment.strftime(text), text) == moment
    except (TypeError, ValueError):
        good = False
    return None if good else 'need a format of days and times such as "%Y-%m-%d %H:%M:%S"'


@value
class EventSeries:
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
    seed: int = parameter(0, 0, integer=True)
    truth_public: bool = parameter(False, choices=(False, True), doc="counts may be shown")

    def __post_init__(self):
        if self._ends <= self._starts:
            raise ValueError(
                f"EventSeries.end = {self.end!r} is not after start {self.start!r}"
            )

    @property
    def domain(self) -> Domain:
        """Bins, numbered from 0; the last may be shorter than the others."""
        minutes = (self._ends - self._starts).total_seconds() / 60
        return Domain(("bin",), (int(-(-minutes // self.minutes)),))

    def files(self) -> tuple[File, ...]:
        """The list of events."""
        return (File("", self.path, how="give its path"),)

    def load(self) -> SparseTable:
        """The table; a time that cannot be read, or outside the period, is a ValueError."""
        import polars as pl

        domain, path = self.domain, self.files()[0].find()
        need = f"a time as {self.written} from {self.start} to before {self.end}"
        frames = [pl.DataFrame(schema={"unit": pl.String, "bin": pl.Int64})]
        for block in read(path, (self.time, self.unit)):
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

    def _bounded(self, events: pl.DataFrame) -> Int[np.ndarray, " kept"]:
        """The bins of the events that are kept."""
        events = events.sort("unit", "bin")  # what is drawn may not depend on the file's order
        units = events.group_by("unit", maintain_order=True).len()
        keep, start = np.ones(len(events), bool), 0
        for unit, n in units.iter_rows():
            if n > self.most:
                name = hashlib.sha256(unit.encode()).digest()
                rng = np.random.default_rng([self.seed, int.from_bytes(name)])
                keep[start : start + n] = False
                keep[start + rng.choice(n, self.most, replace=False)] = True
            start += n
        return events["bin"].to_numpy()[keep]

    @property
    def _starts(self) -> datetime:
        return datetime.fromisoformat(self.start)

    @property
    def _ends(self) -> datetime:
        return datetime.fromisoformat(self.end)


RETAIL = File(
    "online_retail",
    "online_retail.csv",
    "https://archive.ics.uci.edu/static/public/352/online+retail.zip",
    renderings=(
        "b19fdc64fc45b4f84081391ae3fc193725dceec278038094f8464fa83158a653",
        "c35975c40d0e1e105090fbb11188a409393055f873841bd012915475fc84e69f",
    ),
    how="UCI publishes it as a spreadsheet in "
    "https://archive.ics.uci.edu/static/public/352/online+retail.zip: save its sheet as "
    "comma-separated text with times such as 2010-12-01 08:26:00",
)


@value
class RetailHours:
    """Lines of invoices of an online shop by the hour, 1 December 2010 to 9 December 2011.

    One unit is one customer, with at most `most` lines, drawn as `EventSeries` says. Of 541,909
    lines, cancellations among them, 135,080 name no customer and are left out; the others are
    of 4,372 customers, from 1 to 7,983 lines each, 93 on average: `most` = 10 keeps 40,802. The
    8,976 hours of the period are public; most are at night or on Saturdays, and empty.

    Terms: CC BY 4.0. Source: Chen, Online Retail, UCI Machine Learning Repository, 2015,
    doi:10.24432/C5BW33.
    """

    cite: ClassVar[str] = "onlineretail2015"
    truth_public: ClassVar[bool] = True

    most: int = parameter(10, 1, integer=True, unit="lines", doc="of one customer")
    seed: int = parameter(0, 0, integer=True)

    @property
    def domain(self) -> Domain:
        """Hours, numbered from midnight before 1 December 2010."""
        return self._series("").domain

    def files(self) -> tuple[File, ...]:
        """UCI's table as text."""
        return (RETAIL,)

    def load(self) -> SparseTable:
        """The table; a time that cannot be read, or outside the period, is a ValueError."""
        return self._series(str(RETAIL.find())).load()

    def _series(self, path: str) -> EventSeries:
        columns, period = ("InvoiceDate", "CustomerID"), ("2010-12-01", "2011-12-10")
        return EventSeries(
            path, *columns, *period, self.most, seed=self.seed, truth_public=True
        )
