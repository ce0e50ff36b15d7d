"""The way of a parsed report into the memory, in slices of work; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics_api.reports.shown_configs import shown_configs

from mldiagnostics_operator.control_plane.memory.packed_events import repacked
from mldiagnostics_operator.control_plane.memory.run_memory import Extras

if TYPE_CHECKING:
    from collections.abc import Generator

    from mldiagnostics_api.reports.run_key import RunKey

    from mldiagnostics_operator.control_plane.http.bodies import PackedBody
    from mldiagnostics_operator.control_plane.memory.table import ReportTable


def misses_events(table: ReportTable, key: RunKey, body: PackedBody) -> bool:
    """Return whether the events of a report begin behind those that are known."""
    return body.events is not None and body.events.first > table.known_events(key, body.report.incarnation)


def extras_of(table: ReportTable, key: RunKey, body: PackedBody) -> Generator[None, None, Extras]:
    """Return the large parts of a report, as far as the memory has room.

    It yields after each slice of work.

    Raises:
        InvalidReport: The events are not packed events.
    """
    events = configs = None
    if body.events is not None:
        events = yield from repacked(
            bytes(body.events.items),
            body.events.first,
            table.known_events(key, body.report.incarnation),
            most=table.event_room(key),
            most_bytes=table.budget.events.room(key),
        )
    if body.configs is not None:
        configs = yield from shown_configs(body.configs.by_name())
    return Extras(events, configs)
