"""Orders of an online shop by weekday, and lines of its invoices by hour."""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from workbench.compiled import pl
from workbench.data import UNBOUNDED, Bound, Interactions, SparseTable
from workbench.datasets.delimited import WEEKDAYS, UserRecords, read_blocks
from workbench.datasets.kinds import REAL_FILE, seed_field
from workbench.datasets.published import File
from workbench.spaces import Domain
from workbench.value import Int, parameter, value

# Retail hours

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
_START = datetime(2010, 12, 1)
_END = datetime(2011, 12, 10)
_WRITTEN = "%Y-%m-%d %H:%M:%S"


@value
class RetailHours:
    """Lines of invoices of an online shop by the hour, 1 December 2010 to 9 December 2011.

    One unit is one customer, with at most `most` lines, drawn without replacement by a generator that
    `seed` and the customer's number start: a customer more or less moves nobody else's lines, and the
    bound holds for any seed, also a published one. Of 541,909 lines, cancellations among them, 135,080
    name no customer and are left out; the others are of 4,372 customers, from 1 to 7,983 lines each, 93
    on average: `most` = 10 keeps 40,802. The 8,976 hours of the period are public; most are at night or
    on Saturdays, and empty.

    Terms: CC BY 4.0. Source: Chen, Online Retail, UCI Machine Learning Repository, 2015,
    doi:10.24432/C5BW33.
    """

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "onlineretail2015"
    truth_public: ClassVar[bool] = True

    most: int = parameter(10, 1, integer=True, unit="lines", doc="of one customer")
    seed: int = seed_field()

    @property
    def domain(self) -> Domain:
        """Hours, numbered from midnight before 1 December 2010."""
        return Domain(("bin",), ((_END - _START).days * 24,))

    def files(self) -> tuple[File, ...]:
        """UCI's table as text."""
        return (RETAIL,)

    def load(self) -> SparseTable:
        """The table; a time that cannot be read, or outside the period, is a ValueError."""
        need = f"a time as {_WRITTEN} from {_START:%Y-%m-%d} to before {_END:%Y-%m-%d}"
        frames = [pl.DataFrame(schema={"customer": pl.String, "bin": pl.Int64})]
        for block in read_blocks(RETAIL.find(), ("InvoiceDate", "CustomerID")):
            times = block.frame["InvoiceDate"].str.to_datetime(
                _WRITTEN, time_unit="us", strict=False
            )
            block.refuse(~times.is_between(_START, _END, closed="left"), "InvoiceDate", need)
            bins = (times - _START).dt.total_hours()
            frames.append(pl.DataFrame({"customer": block.frame["CustomerID"], "bin": bins}))
        keys = self._bounded(pl.concat(frames).drop_nulls("customer"))
        domain = self.domain
        bound = Bound(min(self.most, domain.size), self.most, self.most)
        return SparseTable.from_keys(domain, keys, np.ones_like(keys), bound, truth_public=True)

    def _bounded(self, lines: pl.DataFrame) -> Int[np.ndarray, " lines"]:
        """The hours of the lines that are kept."""
        lines = lines.sort(
            "customer", "bin"
        )  # what is drawn may not depend on the file's order
        sizes = lines.group_by("customer", maintain_order=True).len()
        is_drawn = np.ones(len(lines), bool)
        start = 0
        for customer, size in sizes.iter_rows():
            if size > self.most:
                name = hashlib.sha256(customer.encode()).digest()
                rng = np.random.default_rng([self.seed, int.from_bytes(name)])
                is_drawn[start : start + size] = False
                is_drawn[start + rng.choice(size, self.most, replace=False)] = True
            start += size
        return lines["bin"].to_numpy()[is_drawn]


# Online retail

LINES = 541_909
CUSTOMERS = range(12_346, 18_288)  # numbers of customers, most of them someone's


class InvoiceLines(NamedTuple):
    """The lines with a customer, the stock codes of all lines, how many lines name no customer."""

    records: UserRecords
    stock_codes: tuple[str, ...]
    without_customer: int


@value
class OnlineRetail:
    """406,829 lines of invoices: customer, stock code, day of the week; a year to December 2011.

    All 541,909 lines are read, cancellations among them; 135,080 name no customer and are left
    out, because no bound could hold for whom they belong to (`without_customer()` counts them).
    The others are of 4,372 customers, from 1 to 7,983 lines each. The day is that of the shop's
    own time, without a zone (it is in the UK); nothing was ever ordered on a Saturday, which
    stays in the list of days all the same.

    Items are the shop's 4,070 stock codes: its own list, taken as public, which is every code of
    the file, also of lines without a customer, among them postage, discounts and fees (POST, D,
    BANK CHARGES); of 3,684 some line names a customer. Customers are the published numbers.

    One unit is one customer with all their lines; nothing bounds how many. A customer may order
    an item again and again.

    Terms: CC BY 4.0. Source: Chen, Online Retail, UCI Machine Learning Repository, 2015,
    doi:10.24432/C5BW33.
    """

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "onlineretail2015"
    truth_public: ClassVar[bool] = True

    @property
    def domain(self) -> Domain:
        """Stock codes in the order of their text, and days of the week; reads the file."""
        codes = self._lines.stock_codes
        return Domain(("item", "context"), (len(codes), 7), (codes, WEEKDAYS))

    def files(self) -> tuple[File, ...]:
        """UCI's table as text."""
        return (RETAIL,)

    def without_customer(self) -> int:
        """How many lines name no customer and are left out."""
        return self._lines.without_customer

    def load(self) -> Interactions:
        """The records; a bad line, or too few of them, is a ValueError that says where."""
        return self._lines.records.interactions(
            self.domain, UNBOUNDED, once=False, truth_public=self.truth_public
        )

    @cached_property
    def _lines(self) -> InvoiceLines:
        path = RETAIL.find()
        rows = []
        stock_codes = set()
        lines = 0
        for block in read_blocks(path, ("StockCode", "InvoiceDate", "CustomerID")):
            block.refuse(block.frame["StockCode"].is_null(), "StockCode", "a stock code")
            times = block.times(
                "InvoiceDate", "%Y-%m-%d %H:%M:%S", "a time as 2010-12-01 08:26:00"
            )
            lines += len(block.frame)
            stock_codes.update(block.frame["StockCode"].unique())
            is_named = block.frame["CustomerID"].is_not_null()
            block.keep(is_named.to_numpy())
            block.frame = block.frame.select(
                "StockCode", pl.col("CustomerID").str.strip_suffix(".0")
            )
            customers = CUSTOMERS[0] + block.codes("CustomerID", CUSTOMERS)
            rows.append((block, customers, times.filter(is_named).dt.weekday().to_numpy() - 1))
        if lines != LINES:
            raise ValueError(f"{path} ends after {lines:,} lines of invoices; need {LINES:,}")
        names = tuple(sorted(stock_codes))
        kind = pl.Enum(names)
        records = UserRecords()
        for block, customers, days in rows:
            records.add(block, customers, block.codes("StockCode", kind), days)
        return InvoiceLines(records, names, lines - len(records))
