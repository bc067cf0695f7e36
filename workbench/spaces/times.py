"""The rule that takes a part of a date or time: its hour, weekday, month, year, date and so on."""

from __future__ import annotations

import re
from datetime import date, datetime, time, timedelta
from typing import Any

from workbench.compiled import pl
from workbench.spaces.rules import MAX_LABELS, Rule, is_list, is_text, only
from workbench.value import not_allowed, parameter, shown, value

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_PARTS: dict[str, tuple[Any, ...] | range] = {
    "hour": range(24),
    "weekday": WEEKDAYS,
    "day": range(1, 32),
    "week": range(1, 54),
    "month": range(1, 13),
    "quarter": ("Q1", "Q2", "Q3", "Q4"),
}
_SPANS = {"year": "%Y", "year-month": "%Y-%m", "date": "%Y-%m-%d"}  # and how an end is written
_DIRECTIVES = set("YymdbBjHIMSfpz%")
_DATES = ("Ymd", "ymd", "Ybd", "ybd", "YBd", "yBd", "Yj", "yj")


def _is_end(x: Any) -> str | None:
    return (
        None
        if isinstance(x, str | int) and not isinstance(x, bool)
        else "need a date, or a part"
    )


@value
class TimePart(Rule):
    """A part of a date or time: one that recurs, or one of a stated span.

    Recurring parts are hour (0 … 23), weekday (Monday …), day (1 … 31), ISO week (1 … 53), month (1 … 12)
    and quarter (Q1 … Q4). Year, year-month (2024-03) and date (2024-03-31) need `first` and `last`, because
    which of them there are is public and never learnt from the data; what lies outside is what `other` says.

    Columns of dates and times are taken as they are. Text needs `format`, for example
    "%Y-%m-%d %H:%M:%S" for 2025-03-31 07:30:00. The clock is the one that was written, unless `zone` is
    stated.

    Parameters
    ----------
    time : str
        Which part: "hour", "weekday", "day", "week", "month", "quarter", "year", "year-month" or "date".
    format : str, optional
        How text is written, as of `datetime.strptime`, of %Y %y %m %d %b %B %j %H %I %M %S %f %p %z.
    zone : str, optional
        A name of the Time Zone Database, as Europe/Zurich: times that name an offset or a zone are
        turned into this one. Without it they are refused, because their hour is that of another clock.
    recorded_in : str, optional
        The zone of times that name none, as UTC; they are turned into `zone`. A date alone stays. An
        hour that its clock shows twice is the first; one that it leaves out is outside.
    first, last : str or int, optional
        The span of a year, year-month or date, both ends included: 2020, "2020-01" or "2020-01-31".
    date_only : bool
        The column holds dates that were exported as midnight UTC: the date is taken as it is written, in
        no zone, and another time of the day is outside.
    labels : optional
        Other names for the values, in their order.

    Raises
    ------
    ValueError
        A format without the part, or a zone that does not exist.

    Examples
    --------
    >>> TimePart("weekday", column="start").labels[:2]
    ('Monday', 'Tuesday')
    """

    time: str = parameter(choices=(*_PARTS, *_SPANS), doc="part of the time")
    format: str | None = parameter(None, check=is_text, doc="format of text")
    zone: str | None = parameter(None, check=is_text, doc="time zone of the part")
    recorded_in: str | None = parameter(
        None, check=is_text, doc="time zone of times without one"
    )
    labels: tuple[Any, ...] | range | None = parameter(
        None, check=is_list, doc="labels, in order"
    )
    first: str | int | None = parameter(None, check=_is_end, doc="first label of a span")
    last: str | int | None = parameter(None, check=_is_end, doc="last label of a span")
    date_only: bool = parameter(False, choices=(False, True), doc="read midnight UTC as a date")

    def __post_init__(self) -> None:
        super().__post_init__()
        usual = self._usual_labels()
        labels = tuple(usual if self.labels is None else self.labels)
        if len(labels) != len(usual):
            raise not_allowed(self, "labels", f"need {len(usual)}")
        object.__setattr__(self, "labels", usual if labels == tuple(usual) else labels)
        for name in ("zone", "recorded_in"):
            if getattr(self, name) is not None:
                _refuse_unknown_zone(self, name)
        if self.date_only and (self.zone or self.time == "hour"):
            raise not_allowed(self, "date_only", "a date alone has no zone and no hour")
        if self.recorded_in and not self.zone:
            raise not_allowed(self, "recorded_in", "need zone too, to which times are turned")
        if self.format is not None:
            self._refuse_wrong_format()

    def _usual_labels(self) -> tuple[Any, ...] | range:
        if self.time in _PARTS:
            if self.first is not None or self.last is not None:
                raise not_allowed(self, "first", f"there is none of {self.time}, which recurs")
            return _PARTS[self.time]
        written = _SPANS[self.time]
        ends = []
        for name in ("first", "last"):
            try:
                ends.append(datetime.strptime(str(getattr(self, name)), written))
            except ValueError:
                example = datetime(2024, 3, 31).strftime(written)
                raise not_allowed(
                    self, name, f"need the {name} {self.time}, as {example}"
                ) from None
        first, last = ends
        numbers = range(self._number(first), self._number(last) + 1)
        if not 0 < len(numbers) <= MAX_LABELS:
            raise not_allowed(
                self, "last", f"need at least first = {self.first}, of at most {MAX_LABELS:,}"
            )
        match self.time:
            case "year":
                return numbers
            case "year-month":
                return tuple(f"{n // 12:04}-{n % 12 + 1:02}" for n in numbers)
        return tuple(f"{first + timedelta(days=k):%Y-%m-%d}" for k in range(len(numbers)))

    def _number(self, moment: datetime) -> int:
        """Which year, month or day it is, counted from one that is never used."""
        if self.time == "year":
            return moment.year
        return (
            moment.year * 12 + moment.month - 1
            if self.time == "year-month"
            else moment.toordinal()
        )

    def _part(self, clock: pl.Series) -> pl.Series:
        """Places in the labels; a span's may lie outside."""
        match self.time:
            case "year-month":
                part = clock.dt.year().cast(pl.Int64) * 12 + clock.dt.month().cast(pl.Int64) - 1
            case "date":
                epoch = date(1970, 1, 1).toordinal()
                part = clock.cast(pl.Date).to_physical().cast(pl.Int64) + epoch
            case _:
                part = getattr(clock.dt, self.time)().cast(pl.Int64)
        if self.time in _PARTS:
            return part if self.time == "hour" else part - 1
        return part - self._number(datetime.strptime(str(self.first), _SPANS[self.time]))

    def _refuse_wrong_format(self) -> None:
        directives = self._directives
        unknown = sorted(set(directives) - _DIRECTIVES)
        if unknown:
            known = " ".join(f"%{c}" for c in "YymdbBjHIMSfpz")
            raise not_allowed(self, "format", f"there is no %{unknown[0]} here; need {known}")
        has_date = any(set(date) <= set(directives) for date in _DATES)
        has_hour = "H" in directives or {"I", "p"} <= set(directives)
        if self.time == "hour" and not has_hour:
            raise not_allowed(self, "format", "it has no hour (%H, or %I with %p)")
        if self.time != "hour" and not has_date:
            raise not_allowed(self, "format", "it has no full date (as %Y-%m-%d)")
        if not has_date and (set(directives) & set("Yymdbj") or "z" in directives):
            raise not_allowed(self, "format", "need a full date, or none")
        if not has_date and self.recorded_in:
            raise not_allowed(self, "recorded_in", "a clock without a date has no zone")
        if "z" in directives and not self.zone and not self.date_only:
            raise not_allowed(self, "format", "with %z need zone, in which the part is told")

    @property
    def _directives(self) -> str:
        return "".join(re.findall("%(.?)", self.format or "")).replace("%", "")

    @property
    def need(self) -> str:
        """Allowed form of times, for an error."""
        return "a time" if self.format is None else f"a time written as {self.format}"

    def places(self, values: pl.Series) -> pl.Series:
        """Return the places of times in `labels`."""
        parts = self._part(self._clock(values))
        return only(parts, parts.is_between(0, len(self._usual_labels()) - 1))

    def _clock(self, values: pl.Series) -> pl.Series:
        """Dates or times on the clock that counts; null where there is none."""
        kind = values.dtype
        if kind == pl.Null:
            return values.cast(pl.Datetime("us"))
        if kind == pl.Datetime:
            if kind.time_zone is not None and self.zone is None and not self.date_only:
                raise ValueError(
                    f"column {shown(values.name)} is in {kind.time_zone}: state the zone in which the "
                    f'{self.time} is told, as "zone": "{kind.time_zone}"; or "date_only": true if these are '
                    "dates that were exported as midnight UTC"
                )
            return self._in_zone(values)
        if kind in (pl.Date, pl.Time) and (kind == pl.Time) == (self.time == "hour"):
            return values
        if kind not in (pl.String, pl.Categorical, pl.Enum):
            raise ValueError(
                f"column {shown(values.name)} holds {kind}: TimePart {self.time!r} needs times or text"
            )
        if self.format is None:
            raise ValueError(
                f"column {shown(values.name)} holds text. State how its times are written, for example "
                '"format": "%Y-%m-%d %H:%M:%S" for 2025-03-31 07:30:00, or "%Y-%m-%d" for 2025-03-31.'
            )
        return self._formatted(values.cast(pl.String), self.format)

    def _in_zone(self, times: pl.Series) -> pl.Series:
        """The clock of `zone`, where it is stated; of dates as midnight UTC that of UTC."""
        if self.date_only:
            if times.dtype.time_zone is not None:
                times = times.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
            is_midnight = (times.dt.time() == time(0)).fill_null(False)
            return times.set(~is_midnight, None)
        if times.dtype.time_zone is None and self.recorded_in:
            times = times.dt.replace_time_zone(
                self.recorded_in, ambiguous="earliest", non_existent="null"
            )
        if times.dtype.time_zone is not None:
            times = times.dt.convert_time_zone(self.zone).dt.replace_time_zone(None)
        return times

    def _formatted(self, text: pl.Series, written: str) -> pl.Series:
        if not any(set(date) <= set(self._directives) for date in _DATES):
            text = "1970-01-01 " + text
            written = f"%Y-%m-%d {written}"
        has_hour = "H" in self._directives or "I" in self._directives
        if has_hour and "M" not in self._directives:  # polars wants both or none
            text = text + " 00"
            written = f"{written} %M"
        written = written.replace(".%f", "%.f").replace("%z", "%#z")
        return self._in_zone(text.str.to_datetime(written, time_unit="us", strict=False))


def _refuse_unknown_zone(rule: TimePart, name: str) -> None:
    zone = getattr(rule, name)
    known = re.fullmatch("[A-Za-z0-9_+/-]{1,60}", zone) is not None
    if known:
        try:
            pl.Series([0]).cast(pl.Datetime("us", zone)).dt.hour()
        except pl.exceptions.PolarsError:
            known = False
    if not known:
        need = "need a name of the Time Zone Database, as Europe/Zurich"
        raise not_allowed(rule, name, need)
