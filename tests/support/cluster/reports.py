"""Reports as documents, applied to a table as the endpoint applies them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson
from mldiagnostics_operator.control_plane.http import bodies
from mldiagnostics_operator.control_plane.http.intake import extras_of
from mldiagnostics_operator.control_plane.memory.run_memory import WrittenFile
from mldiagnostics_operator.control_plane.slices import finished

if TYPE_CHECKING:
    from mldiagnostics_api.reports.run_key import RunKey
    from mldiagnostics_operator.control_plane.http.bodies import PackedBody
    from mldiagnostics_operator.control_plane.identity.sender import Sender
    from mldiagnostics_operator.control_plane.memory.journal_page import JournalPage
    from mldiagnostics_operator.control_plane.memory.table import ReportTable


def body_of(document: Any) -> PackedBody:
    """Return a report as the endpoint reads it."""
    return bodies.parse(orjson.dumps(document))


def apply(table: ReportTable, key: RunKey, body: PackedBody, sender: Sender, received: float) -> None:
    """Apply a report with all its parts."""
    table.require_room(key, body.report)
    table.apply(key, body.report, sender, received, finished(extras_of(table, key, body)))


def persist(table: ReportTable, key: RunKey, *, now: float = 1.0) -> JournalPage:
    """Write what is not persisted into a journal that keeps everything."""
    page = finished(table.page(key))
    assert page is not None
    files = {name: WrittenFile(len(each.head) + len(each.lines)) for name, each in page.segments.items()}
    table.persisted(key, page, files, now)
    return page
