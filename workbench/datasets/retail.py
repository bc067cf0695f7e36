"""Invoice lines of an online shop, either counted by hour, or as records of customers and items. An invoice
line is one product on an invoice.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import ClassVar

import numpy as np

from workbench.compiled import pl
from workbench.data import Bound, SparseTable
from workbench.datasets.kinds import RealFile, RecordsFile, records, seed_field
from workbench.datasets.published import TEXT, Column, File, integers, table, times, weekday
from workbench.spaces import Domain
from workbench.value import Int, parameter, value

# Retail hours

RETAIL = File(
    "online_retail",
    "online_retail.csv",
    "https://archive.ics.uci.edu/static/public/352/online+retail.zip",
    renderings=("c35975c40d0e1e105090fbb11188a409393055f873841bd012915475fc84e69f",),
    how="UCI publishes it as a spreadsheet in "
    "https://archive.ics.uci.edu/static/public/352/online+retail.zip: save its sheet as "
    "comma-separated text with times such as 2010-12-01 08:26:00",
)
_START = datetime(2010, 12, 1)
_END = datetime(2011, 12, 10)
_WHEN = times("%Y-%m-%d %H:%M:%S", "2010-12-01 08:26:00", (_START, _END))


@value
class RetailHours(RealFile):
    """Table that counts the invoice lines (products on invoices) of an online shop in each hour from 1
    December 2010 to 9 December 2011.

    The protected unit is one customer. The table counts at most `most` lines of each customer. If a customer
    has more lines, the dataset draws `most` of these lines at random. The draw depends only on `seed` and on
    the customer's number, and not on other customers. You may publish the seed, because the table counts at
    most `most` lines per customer for every seed.

    The file has 541,909 lines, including cancellations. The table leaves out 135,080 of these lines, because
    they name no customer. The other lines belong to 4,372 customers, who have 1 to 7,983 lines each, and 93
    lines on average. With `most=10`, the table counts 40,802 lines. The list of the 8,976 hours is public.
    Most hours have no line, because they are at night or on a Saturday.

    Terms: CC BY 4.0. Source: Chen, Online Retail, UCI Machine Learning Repository, 2015,
    doi:10.24432/C5BW33.
    """

    cite: ClassVar[str] = "onlineretail2015"
    schema = (RETAIL,)

    most: int = parameter(
        10, 1, integer=True, unit="lines", doc="largest number of lines that count per customer"
    )
    seed: int = seed_field()

    @property
    def domain(self) -> Domain:
        """All 8,976 hours from 1 December 2010 to 9 December 2011. Hour 0 is the first hour of 1 December
        2010.
        """
        return Domain(("bin",), ((_END - _START).days * 24,))

    def load(self) -> SparseTable:
        """Load the table of counts. Raise a ValueError if the time of a line cannot be read, or is not
        between 1 December 2010 and 9 December 2011.
        """
        columns = {"InvoiceDate": _WHEN, "CustomerID": TEXT}
        hour = (pl.col("InvoiceDate") - _START).dt.total_hours()
        lines = RETAIL.frame(columns, pl.col("CustomerID").alias("customer"), hour.alias("bin"))
        keys = self._bounded(lines.drop_nulls("customer"))
        domain = self.domain
        bound = Bound(min(self.most, domain.size), self.most, self.most)
        return table(domain, [(keys, None)], bound)

    def _bounded(self, lines: pl.DataFrame) -> Int[np.ndarray, " lines"]:
        """Draw at most `most` lines of each customer. Return the hours of these lines."""
        kept = []
        lines = lines.sort("customer", "bin")  # so that the file's order decides nothing
        for (customer,), own in lines.group_by("customer", maintain_order=True):
            hours = own["bin"].to_numpy()
            if len(hours) > self.most:
                name = hashlib.sha256(customer.encode()).digest()
                rng = np.random.default_rng([self.seed, int.from_bytes(name)])
                hours = hours[rng.choice(len(hours), self.most, replace=False)]
            kept.append(hours)
        return np.concatenate(kept)


# Online retail

LINES = 541_909


@value
class OnlineRetail(RecordsFile):
    """Invoice lines (products on invoices) of an online shop: 406,829 lines in the year to December 2011.
    Each record consists of a customer, a stock code (the item) and the day of the week (the context).

    The file has 541,909 lines, including cancellations. The dataset leaves out 135,080 lines that name no
    customer, because it is unknown which of them belong to the same customer. The other lines belong to 4,372
    customers, who have 1 to 7,983 lines each. The day of the week is in the shop's local time in the
    UK. There are no orders on Saturdays, but Saturday is in the list of contexts.

    The items are the shop's 4,070 stock codes, which we treat as public. The list contains all stock codes in
    the file, including those for postage, discounts and fees (POST, D, BANK CHARGES). In lines that name a
    customer, 3,684 of the codes occur. The users are the published numbers of customers.

    The protected unit is one customer with all of their lines. A customer may have any number of lines, and
    may have several with the same item.

    Terms: CC BY 4.0. Source: Chen, Online Retail, UCI Machine Learning Repository, 2015,
    doi:10.24432/C5BW33.
    """

    cite: ClassVar[str] = "onlineretail2015"
    schema = (RETAIL,)

    def _records(self) -> pl.DataFrame:
        columns = {
            "StockCode": Column("a stock code"),
            "InvoiceDate": _WHEN,
            "CustomerID": integers(12_346, 18_287)._replace(optional=True),
        }
        day = weekday(pl.col("InvoiceDate"))
        return RETAIL.frame(columns, *records("CustomerID", "StockCode", day), rows=LINES)
