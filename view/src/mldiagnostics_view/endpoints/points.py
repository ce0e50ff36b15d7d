"""Responses with points as they were recorded: a table for the page, and a file."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import TYPE_CHECKING

from mldiagnostics_view.curves.exact_points import csv_of, points_of
from mldiagnostics_view.endpoints.bodies import Body, json_response, send
from mldiagnostics_view.endpoints.problems import RequestProblem
from mldiagnostics_view.limits import MAX_CSV_POINTS, MAX_TABLE_POINTS

if TYPE_CHECKING:
    from aiohttp import web

    from mldiagnostics_view.curves.progress import ReadProgress
    from mldiagnostics_view.curves.queries import CurveQuery
    from mldiagnostics_view.curves.reader import CurveReader


async def points_table(
    request: web.Request, query: CurveQuery, reader: CurveReader, progress: ReadProgress, is_complete: bool
) -> web.Response:
    """Return the first points of a window as JSON."""
    state = progress.to_json(is_complete=is_complete)
    return await json_response(request, lambda: {**points_of(reader, query, most=MAX_TABLE_POINTS), "progress": state})


async def points_file(
    request: web.Request, query: CurveQuery, reader: CurveReader, _progress: ReadProgress, is_complete: bool
) -> web.Response:
    """Return all points of a window as CSV.

    Raises `RequestProblem` while lines are read.
    """
    if not is_complete:
        raise RequestProblem(HTTPStatus.CONFLICT, "The run is being read; try again in a few seconds.")
    text = await asyncio.to_thread(csv_of, reader, query, most=MAX_CSV_POINTS)
    if text is None:
        raise RequestProblem(
            HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"The window has more than {MAX_CSV_POINTS:,} points; zoom in."
        )
    response = send(request, Body(text.encode(), "text/csv"))
    response.headers["Content-Disposition"] = 'attachment; filename="points.csv"'
    return response
