"""OnlineRetail: which customer of an online shop ordered what, on which day of the week."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from workbench.datasets.by_user import UserRecords
from workbench.datasets.delimited import read
from workbench.datasets.event_series import RETAIL
from workbench.datasets.netflix_prize import WEEKDAYS
from workbench.datasets.published import File
from workbench.domain import Domain
from workbench.table import UNBOUNDED
from workbench.value import value

if TYPE_CHECKING:
    from workbench.interactions import Interactions

LINES = 541_909
CUSTOMERS = range(12_346, 18_288)  # numbers of customers, most of them someone's


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

    cite: ClassVar[str] = "onlineretail2015"
    truth_public: ClassVar[bool] = True

    @property
    def domain(self) -> Domain:
        """Stock codes in the order of their text, and days of the week; reads the file."""
        codes = self._read[1]
        return Domain(("item", "context"), (len(codes), 7), (codes, WEEKDAYS))

    def files(self) -> tuple[File, ...]:
        """UCI's table as text."""
        return (RETAIL,)

    def without_customer(self) -> int:
        """How many lines name no customer and are left out."""
        return self._read[2]

    def load(self) -> Interactions:
        """The records; a bad line, or too few of them, is a ValueError that says where."""
        return self._read[0].interactions(
            self.domain, UNBOUNDED, once=False, truth_public=self.truth_public
        )

    @cached_property
    def _read(self) -> tuple[UserRecords, tuple[str, ...], int]:
        """The rows, the stock codes that occur, and how many lines name no customer."""
        import polars as pl

        path, kept, codes, lines, dropped = RETAIL.find(), [], set(), 0, 0
        for block in read(path, ("StockCode", "InvoiceDate", "CustomerID")):
            block.refuse(block.frame["StockCode"].is_null(), "StockCode", "a stock code")
            days = block.frame["InvoiceDate"].str.to_datetime(
                "%Y-%m-%d %H:%M:%S", time_unit="us", strict=False
            )
            block.refuse(days.is_null(), "InvoiceDate", "a time as 2010-12-01 08:26:00")
            lines += len(block.lines)
            codes.update(block.frame["StockCode"].unique())
            named = block.frame["CustomerID"].is_not_null()
            dropped += int((~named).sum())
            block.lines, days = block.lines[named.to_numpy()], days.filter(named)
            block.frame = block.frame.filter(named).select(
                "StockCode", pl.col("CustomerID").str.strip_suffix(".0")
            )
            who = CUSTOMERS[0] + block.codes("CustomerID", CUSTOMERS)
            kept.append((block, who, days.dt.weekday().to_numpy() - 1))
        if lines != LINES:
            raise ValueError(f"{path} ends after {lines:,} lines of invoices; need {LINES:,}")
        out, known = UserRecords(), tuple(sorted(codes))
        for block, who, days in kept:
            out.add(block, who, block.codes("StockCode", pl.Enum(known)), days)
        return out, known, dropped
