"""RetailHours: lines of invoices of an online shop by the hour, so many of a customer at most."""

from __future__ import annotations

from typing import ClassVar

from workbench.datasets._generated import seed_field
from workbench.datasets._kinds import REAL_FILE
from workbench.datasets.event_series import EventSeries
from workbench.datasets.readers.published import File
from workbench.domain import Domain
from workbench.table import SparseTable
from workbench.value import parameter, value

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

    kind: ClassVar[str] = REAL_FILE
    cite: ClassVar[str] = "onlineretail2015"
    truth_public: ClassVar[bool] = True

    most: int = parameter(10, 1, integer=True, unit="lines", doc="of one customer")
    seed: int = seed_field()

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
        return EventSeries(
            path,
            time="InvoiceDate",
            unit="CustomerID",
            start="2010-12-01",
            end="2011-12-10",
            most=self.most,
            seed=self.seed,
            truth_public=True,
        )
