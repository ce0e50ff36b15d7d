"""Diagnosis of a session, from the files beside its traces."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from mldiagnostics.errors import MLDiagnosticsError, NotStored, StoreNotFound
from mldiagnostics.findings import MAX_DIAGNOSIS_BYTES, parse_diagnosis
from mldiagnostics.layout import diagnosis_key, sanitize
from mldiagnostics.store import open_store

from mldiagnostics_view.endpoints.bodies import json_response
from mldiagnostics_view.endpoints.problems import RequestProblem
from mldiagnostics_view.session_diagnosis import noted_diagnosis, session_diagnosis

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp import web

    from mldiagnostics_view.sources.catalog import Catalog


class Diagnoses:
    """Reads diagnoses; it never reads a trace.

    Args:
        seen: Returns the catalog as the viewer of a request sees it.
    """

    def __init__(self, seen: Callable[[web.Request], Catalog]) -> None:
        self._seen = seen

    def add_to(self, app: web.Application, run: str) -> None:
        """Add the address below that of a run."""
        app.router.add_get(f"{run}/sessions/{{session}}/diagnosis", self.session)

    async def session(self, request: web.Request) -> web.Response:
        """Return the diagnosis of a session."""
        source = self._seen(request).source(request.match_info["source"])
        key, session = request.match_info["key"], request.match_info["session"]
        problem: Exception = RequestProblem(
            HTTPStatus.NOT_FOUND, f"session '{session[:100]}': has no diagnosis yet; use the command below"
        )
        document = None
        try:
            directory = await source.directory(key)
            document = await asyncio.to_thread(_read, directory, session) if directory else None
        except MLDiagnosticsError as error:  # the status of the run may have the findings
            problem = error
        document = document or noted_diagnosis(session, (await source.detail(key)).findings)
        if document is None:
            raise problem
        return await json_response(request, lambda: document)


def _read(directory: str, session: str) -> dict[str, Any] | None:
    """Return the document of a session; None without a diagnosis.

    A name that is a path has none.
    """
    if sanitize(session) != session:
        return None
    store, key = open_store(directory), diagnosis_key(session)
    try:
        with store.open(key) as file:
            content = file.read(MAX_DIAGNOSIS_BYTES + 1)
    except (NotStored, StoreNotFound):
        return None
    from mldiagnostics_diagnosis.sessions import read_summaries  # noqa: PLC0415 - pydantic loads with the first session

    return session_diagnosis(parse_diagnosis(content, source=store.url(key)), read_summaries(store, session))
