"""The times of a schedule: a fixed period, or cron in a time zone."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, Protocol, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError
from typing_extensions import override

from mldiagnostics_api.formats import quote

PERIOD_PATTERN: Final = r"^[1-9][0-9]{0,5}[smhd]$"
SHORTEST_PERIOD_S: Final = 60
LONGEST_CRON: Final = 128
_UNITS_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_CRON_FIELDS: Final = 5


class Timing(Protocol):
    """Times at which a schedule is due, as Unix seconds."""

    def after(self, time: float) -> float | None:
        """Return the first of them that is later than `time`; None if there is none."""


@dataclass(frozen=True, slots=True)
class Every(Timing):
    """A fixed period, counted from an anchor; daylight saving does not shift it."""

    period_s: float
    anchor: float
    """The first slot is one period later."""

    @override
    def after(self, time: float) -> float:
        passed = max(0, int((time - self.anchor) // self.period_s))
        slot = self.anchor + (passed + 1) * self.period_s
        return slot if slot > time else slot + self.period_s


@dataclass(frozen=True, slots=True)
class Cron(Timing):
    """A cron expression of five fields, in the local time of a zone.

    As in Debian's cron, a time that daylight saving skips comes at once, and one that it repeats comes once.
    """

    expression: str
    zone: ZoneInfo

    @classmethod
    def parse(cls, expression: str, zone: str = "UTC") -> Self:
        """Parse an expression, and the name of a zone such as `Europe/Berlin`.

        Raises:
            ValueError: One of them is not valid.
        """
        if len(expression.split()) != _CRON_FIELDS or len(expression) > LONGEST_CRON:
            raise ValueError(
                f"cron: {quote(expression)} does not have 5 fields in at most {LONGEST_CRON} characters; "
                "use minute, hour, day of month, month and day of week"
            )
        try:
            known = ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, OSError):
            message = (
                f"timeZone: {quote(zone)} is not known; use a name of the IANA database, for example Europe/Berlin"
            )
            raise ValueError(message) from None
        try:
            CronSim(expression, datetime(2026, 1, 1, tzinfo=UTC))
        except CronSimError as error:
            raise ValueError(f"cron: {quote(expression)}: {error}; see `man 5 crontab`") from None
        return cls(expression, known)

    @override
    def after(self, time: float) -> float | None:
        for slot in CronSim(self.expression, datetime.fromtimestamp(time, self.zone)):
            if slot.timestamp() > time:  # an hour that is repeated names the slot of its first pass again
                return slot.timestamp()
        return None


def parse_period(text: str) -> int:
    """Return the seconds of a period such as `90s`, `10m`, `6h` or `1d`.

    Raises:
        ValueError: It is not one, or shorter than a minute.
    """
    if not re.fullmatch(PERIOD_PATTERN, text):
        raise ValueError(f"every: {quote(text)} is not a period; use for example 10m, 6h or 1d")
    seconds = int(text[:-1]) * _UNITS_S[text[-1]]
    if seconds < SHORTEST_PERIOD_S:
        raise ValueError(f"every: {quote(text)} is shorter than {SHORTEST_PERIOD_S} s; use a longer period")
    return seconds
