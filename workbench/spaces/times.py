"""The rule that takes the hour, weekday, day or month of a date or time."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from workbench.compiled import pl
from workbench.spaces.rules import MISSING, OUTSIDE, Rule, is_list, is_text
from workbench.value import Int, not_allowed, parameter, shown, value

WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_PARTS: dict[str, tuple[Any, ...] | range] = {
    "hour": range(24),
    "weekday": WEEKDAYS,
    "day": range(1, 32),
    "month": range(1, 13),
}
_DIRECTIVES = set("YymdbBjHIMSfpz%")
_DATES = ("Ymd", "ymd", "Ybd", "ybd", "YBd", "yBd", "Yj", "yj")


@value
class TimePart(Rule):
    """The hour (0 … 23), weekday (Monday …), day (1 … 31) or month (1 … 12) of a date or time.

    Columns of dates and times are taken as they are. Text needs `format`, for example
    "%Y-%m-%d %H:%M:%S" for 2025-03-31 07:30:00. The clock is the one that was written, unless `zone` is
    stated.

    Parameters
    ----------
    time : "hour", "weekday", "day" or "month"
        Which part.
    format : str, optional
        How text is written, as of `datetime.strptime`, of %Y %y %m %d %b %B %j %H %I %M %S %f %p %z.
    zone : str, optional
        A name of the Time Zone Database, as Europe/Zurich: times that name an offset or a zone are
        turned into this one. Without it they are refused, because their hour is that of another clock.
    recorded_in : str, optional
        The zone of times that name none, as UTC; they are turned into `zone`. A date alone stays. An
        hour that its clock shows twice is the first; one that it leaves out is outside.
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

    time: str = parameter(choices=tuple(_PARTS), doc="which part")
    format: str | None = parameter(None, check=is_text, doc="how text is written")
    zone: str | None = parameter(None, check=is_text, doc="in which the part is told")
    recorded_in: str | None = parameter(None, check=is_text, doc="zone of times that name none")
    labels: tuple[Any, ...] | range | None = parameter(
        None, check=is_list, doc="names, in their order"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        usual = _PARTS[self.time]
        labels = tuple(usual if self.labels is None else self.labels)
        if len(labels) != len(usual):
            raise not_allowed(self, "labels", f"need {len(usual)}")
        object.__setattr__(self, "labels", usual if labels == tuple(usual) else labels)
        for name in ("zone", "recorded_in"):
            if getattr(self, name) is not None:
                _refuse_unknown_zone(self, name)
        if self.recorded_in and not self.zone:
            raise not_allowed(self, "recorded_in", "need zone too, to which times are turned")
        if self.format is not None:
            self._refuse_wrong_format()

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
        if "z" in directives and not self.zone:
            raise not_allowed(self, "format", "with %z need zone, in which the part is told")

    @property
    def _directives(self) -> str:
        return "".join(re.findall("%(.?)", self.format or "")).replace("%", "")

    @property
    def need(self) -> str:
        """How times are written."""
        return "a time" if self.format is None else f"a time written as {self.format}"

    def places(self, values: pl.Series) -> Int[np.ndarray, " rows"]:
        """Places of hours, weekdays, days or months."""
        missing = values.is_null()
        clock = self._clock(values)
        parts = getattr(clock.dt, self.time)().cast(pl.Int64)
        first = 0 if self.time == "hour" else 1
        if not parts.null_count():
            return parts.to_numpy() - first
        places = parts.fill_null(0).to_numpy() - first
        absent = np.where(missing.to_numpy(), MISSING, OUTSIDE)
        return np.where(parts.is_null().to_numpy(), absent, places)

    def _clock(self, values: pl.Series) -> pl.Series:
        """Dates or times on the clock that counts; null where there is none."""
        kind = values.dtype
        if kind == pl.Null:
            return values.cast(pl.Datetime("us"))
        if kind == pl.Datetime:
            if kind.time_zone is not None and self.zone is None:
                raise ValueError(
                    f"column {shown(values.name)} is in {kind.time_zone}: state the zone in which the "
                    f'{self.time} is told, as "zone": "{kind.time_zone}"'
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
        """The clock of `zone`, where it is stated."""
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
