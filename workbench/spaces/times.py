"""Rule that extracts a part of a date or time, for example its hour, weekday, month or date."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime, time
from functools import cached_property
from typing import Any

from workbench.compiled import pl
from workbench.spaces.rules import MAX_LABELS, Rule, is_list, is_text, only
from workbench.value import not_allowed, parameter, shown, value

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_PARTS: dict[
    str, Any
] = {  # labels of parts that recur. For other parts, the format of the ends and the step
    "hour": range(24),
    "weekday": WEEKDAYS,
    "day": range(1, 32),
    "week": range(1, 54),
    "month": range(1, 13),
    "quarter": ("Q1", "Q2", "Q3", "Q4"),
    "year": {"%Y": "1y"},
    "year-month": {"%Y-%m": "1mo"},
    "date": {"%Y-%m-%d": "1d"},
}
_DIRECTIVES = "%Y %y %m %d %b %B %j %H %I %M %S %f %p %z"


def _is_zone(x: Any) -> str | None:
    with suppress(ValueError, pl.exceptions.PolarsError):
        if isinstance(x, str) and x:
            pl.Series([0]).cast(pl.Datetime("us", x)).dt.hour()
            return None
    return "need a name of the Time Zone Database, for example Europe/Zurich"


@value
class TimePart(Rule):
    """Rule that computes an attribute, for example the hour, the weekday or the month, from dates or times.

    Some parts of a time recur, so all of their values are known. These parts are hour (0 to 23), weekday
    (Monday to Sunday), day (1 to 31), ISO week (1 to 53), month (1 to 12) and quarter (Q1 to Q4). The other
    parts are year, year-month (2024-03) and date (2024-03-31). If you use one of these three parts, state the
    first and the last possible value. Choose the two values from public knowledge, and not from the data. A
    time outside the stated range has no label (name of a value). The parameter `other` determines what happens
    to the row of such a time.

    The column that the rule reads may have a data type for dates or times. If the column contains text, state
    the `format` of the text, for example "%Y-%m-%d %H:%M:%S" for 2025-03-31 07:30:00. Times without an offset
    or a zone are used as written, unless you state `recorded_in`.

    Parameters
    ----------
    time : str
        Part of the time that becomes the attribute: "hour", "weekday", "day", "week", "month", "quarter",
        "year", "year-month" or "date".
    format : str, optional
        Format of the times, if the column contains text. Write the format in the notation of Python's
        `datetime.strptime`. The allowed directives are %Y %y %m %d %b %B %j %H %I %M %S %f %p %z.
    zone : str, optional
        Time zone from which the attribute is computed. Give its name in the Time Zone Database, for example
        Europe/Zurich. Times with an offset or a zone are converted to this zone. If the column contains times
        with an offset or a zone, state `zone`, or set `date_only` to True. Otherwise an error is raised,
        because an hour could refer to any zone.
    recorded_in : str, optional
        Time zone in which times without a zone were recorded, for example UTC. The workbench converts such
        times to `zone`. Dates without a time are not converted. On a day on which clocks are set back, one
        hour occurs twice, and the workbench assumes the first of the two. On a day on which clocks are set
        forward, one hour does not occur, and a time in this hour has no label.
    first, last : str or int, optional
        First and last possible value of a year, year-month or date, for example 2020, "2020-01" or
        "2020-01-31".
    date_only : bool
        Whether the column contains dates that a program exported as times at midnight UTC. With True, the
        rule uses the date as written, and a time other than midnight has no label. Default False.
    labels : optional
        Names for the values of the attribute. These names replace the usual names, in the same order.

    Raises
    ------
    ValueError
        If the part cannot be computed from a text in the stated `format`, if a zone does not exist, or if two
        settings contradict each other.

    Examples
    --------
    >>> TimePart("weekday", column="start").labels[:2]
    ('Monday', 'Tuesday')
    """

    time: str = parameter(choices=tuple(_PARTS))
    format: str | None = parameter(None, check=is_text)
    zone: str | None = parameter(None, check=_is_zone)
    recorded_in: str | None = parameter(None, check=_is_zone)
    labels: tuple[Any, ...] | range | None = parameter(None, check=is_list)
    first: str | int | None = None
    last: str | int | None = None
    date_only: bool = parameter(False, choices=(False, True))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._name(self._span[0], self.labels)
        if self.date_only and (self.zone or self.time == "hour"):
            raise not_allowed(self, "date_only", "a date alone has no zone and no hour")
        if self.recorded_in and not self.zone:
            raise not_allowed(self, "recorded_in", "need zone too, to which times are turned")
        if self.format is not None:
            self._refuse_wrong_format(self.format)

    @cached_property
    def _span(self) -> tuple[tuple[Any, ...] | range, int]:
        """Usual labels of the chosen part of the time, and the number that belongs to the first label. For
        example, the number of Monday is 1.
        """
        known = _PARTS[self.time]
        if not isinstance(known, dict):
            if (self.first, self.last) != (None, None):
                raise not_allowed(self, "first", f"there is none of {self.time}, which recurs")
            return known, int(self.time != "hour")
        ((written, step),) = known.items()
        try:
            ends = [datetime.strptime(str(x), written) for x in (self.first, self.last)]
        except ValueError:
            need = (
                f"need the first {self.time} and the last, as {datetime(2024, 3, 31):{written}}"
            )
            given = f" with last = {shown(self.last)}"
            raise not_allowed(self, "first", need, given) from None
        first, last = self._numbers(pl.Series(ends))
        if not 0 <= last - first < MAX_LABELS:
            raise not_allowed(
                self, "last", f"need at least first = {self.first}, of at most {MAX_LABELS:,}"
            )
        if self.time == "year":
            return range(first, last + 1), first
        moments = pl.datetime_range(*ends, step, eager=True)
        return tuple(moments.dt.strftime(written)), first

    def _numbers(self, clock: pl.Series) -> pl.Series:
        """Return the chosen part of each time as a number, for example 7 for the hour of 07:30. For
        "year-month" and "date", months or days are counted without starting again in a new year.
        """
        match self.time:
            case "year-month":
                return clock.dt.year().cast(pl.Int64) * 12 + clock.dt.month()
            case "date":
                return clock.cast(pl.Date).to_physical().cast(pl.Int64)
        return getattr(clock.dt, self.time)().cast(pl.Int64)

    def _refuse_wrong_format(self, written: str) -> None:
        """Raise a ValueError if the part of the time cannot be read from a text in this format.

        As a test, the method writes a time in the format and reads it again. The result must be the same
        time.
        """
        if re.sub("|".join([*_DIRECTIVES.split(), "%%", "[^%]"]), "", written):
            raise not_allowed(self, "format", f"need directives out of {_DIRECTIVES}")
        if "%z" in written and not self.zone and not self.date_only:
            raise not_allowed(
                self, "format", "with %z give zone, as 'Europe/Zurich', or date_only"
            )
        is_dated = _has_date(written)
        if not is_dated and (self.recorded_in or "%z" in written):
            raise not_allowed(self, "format", "a clock without a date has no zone")
        moment = datetime(*((2024, 10, 23) if is_dated else (1970, 1, 1)))
        moment = moment.replace(hour=17 if self.time == "hour" else 0, tzinfo=UTC)
        clock = pl.Series([moment])
        if "%z" not in written:
            clock = clock.dt.replace_time_zone(None)
        text = pl.Series([moment.strftime(written)])
        try:
            is_read = self._formatted(text, written).equals(self._in_zone(clock))
        except pl.exceptions.PolarsError:
            is_read = False
        if not is_read or not (is_dated or self.time == "hour"):
            hour = "%H, or %I with %p, and " if self.time == "hour" else ""
            need = f"it does not give the {self.time}: need {hour}a full date, as %Y-%m-%d"
            raise not_allowed(self, "format", need)

    @property
    def need(self) -> str:
        """Text for an error message that says in which form times are allowed."""
        return "a time" if self.format is None else f"a time written as {self.format}"

    def places(self, values: pl.Series) -> pl.Series:
        """Return the position of each time's label in the list `labels`, counted from 0. The position is null
        if the value is not a time or is outside the stated range.
        """
        labels, first = self._span
        parts = self._numbers(self._clock(values)) - first
        return only(parts, parts.is_between(0, len(labels) - 1))

    def _clock(self, values: pl.Series) -> pl.Series:
        """Return the dates or times of a column, in the time zone of the attribute. A text that is not a time
        becomes null.
        """
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
        if kind != pl.String or self.format is None:
            raise ValueError(
                f"column {shown(values.name)} holds {'text' if kind == pl.String else kind}: "
                f'"time": "{self.time}" needs dates or times, or text with its format, for example '
                '"format": "%Y-%m-%d %H:%M:%S" for 2025-03-31 07:30:00'
            )
        return self._formatted(values, self.format)

    def _in_zone(self, times: pl.Series) -> pl.Series:
        """Return times converted to `zone`, if a zone was given. With `date_only`, the times stay in UTC, and
        times that are not midnight become null.
        """
        if self.date_only:
            if times.dtype.time_zone is not None:
                times = times.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
            return only(times, times.dt.time() == time(0))
        if times.dtype.time_zone is None and self.recorded_in:
            times = times.dt.replace_time_zone(
                self.recorded_in, ambiguous="earliest", non_existent="null"
            )
        if times.dtype.time_zone is not None:
            times = times.dt.convert_time_zone(self.zone).dt.replace_time_zone(None)
        return times

    def _formatted(self, text: pl.Series, written: str) -> pl.Series:
        if not _has_date(written):
            text = "1970-01-01 " + text
            written = f"%Y-%m-%d {written}"
        if re.search("%[HI]", written) and "%M" not in written:  # polars wants both or none
            text = text + " 00"
            written = f"{written} %M"
        written = written.replace(".%f", "%.f").replace("%z", "%#z")
        return self._in_zone(text.str.to_datetime(written, time_unit="us", strict=False))


def _has_date(written: str) -> bool:
    return re.search("%[Yymdbj]", written) is not None
