"""Addresses of the server and their handlers."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from aiohttp import web
from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics_kube.client.apiserver import ClusterError

from mldiagnostics_view.curves.moments import moments_of
from mldiagnostics_view.curves.progress import ReadingStages
from mldiagnostics_view.curves.queries import curves_of, metrics_of
from mldiagnostics_view.curves.rank_columns import rank_columns, steps_at_times
from mldiagnostics_view.documents import RunActions, json_text, run_document, runs_text
from mldiagnostics_view.endpoints.actions import Actions
from mldiagnostics_view.endpoints.assets import PAGE
from mldiagnostics_view.endpoints.authentication import access_of
from mldiagnostics_view.endpoints.bodies import digest_of, json_response, json_text_body, send
from mldiagnostics_view.endpoints.diagnoses import Diagnoses
from mldiagnostics_view.endpoints.live import EventStreams
from mldiagnostics_view.endpoints.parameters import curve_query, metric_search, rank_query, run_names
from mldiagnostics_view.endpoints.points import points_file, points_table
from mldiagnostics_view.endpoints.problems import RequestProblem
from mldiagnostics_view.endpoints.reports import Reports, cluster_report
from mldiagnostics_view.endpoints.xprof_pages import XprofPages
from mldiagnostics_view.run_values import run_values
from mldiagnostics_view.sources.source import RunUnknown
from mldiagnostics_view.xprof.hosted import HostedXprof

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.runs import RunRow

    from mldiagnostics_view.curves.open_runs import OpenRuns
    from mldiagnostics_view.curves.progress import ReadProgress
    from mldiagnostics_view.curves.reader import CurveReader
    from mldiagnostics_view.endpoints.bodies import Body
    from mldiagnostics_view.sources.catalog import Catalog
    from mldiagnostics_view.xprof.opening import SessionOpener


_FOREVER: Final = "public, max-age=31536000, immutable"


_UNREADABLE: Final = (RequestProblem, MLDiagnosticsError, ClusterError)


class Routes:
    """Handlers over the sources, the open curves and the page."""

    def __init__(
        self,
        catalog: Catalog,
        open_runs: OpenRuns,
        assets: Mapping[str, Body],
        xprof: SessionOpener | None,
        names: Sequence[str],
    ) -> None:
        self._catalog, self._open_runs, self._assets = catalog, open_runs, assets
        self._actions, self._diagnoses = Actions(self._seen, xprof), Diagnoses(self._seen)
        self._reports, self._streams = Reports(), EventStreams()
        self._xprof = XprofPages(self._seen, xprof, names) if isinstance(xprof, HostedXprof) else None

    def add_to(self, app: web.Application) -> None:
        """Add all addresses to an application."""
        run = "/api/runs/{source}/{key}"
        app.router.add_get("/api/runs", self.runs)
        app.router.add_get("/api/goodput", self.accounts)
        app.router.add_get("/api/values", self.values)
        app.router.add_get("/api/live", self.live_runs, allow_head=False)
        app.router.add_get(run, self.run)
        app.router.add_get(f"{run}/files", self.files)
        app.router.add_get(f"{run}/metrics", self.metrics)
        app.router.add_get(f"{run}/curves", self.curves)
        app.router.add_get(f"{run}/points", self.points)
        app.router.add_get(f"{run}/points.csv", self.points_csv)
        app.router.add_get(f"{run}/texts", self.texts)
        app.router.add_get(f"{run}/ranks", self.ranks)
        app.router.add_get(f"{run}/goodput", self.goodput)
        app.router.add_get(f"{run}/steptimes", self.step_times)
        app.router.add_get(f"{run}/schedules", self.schedules)
        app.router.add_get(f"{run}/live", self.live_run, allow_head=False)
        self._actions.add_to(app, run)
        self._diagnoses.add_to(app, run)
        if self._xprof is not None:
            self._xprof.add_to(app)
        app.router.add_get("/assets/{name}", self.asset)
        for page in ("/", "/compare", "/runs/{source}/{key}"):
            app.router.add_get(page, self.page)
        app.router.add_get("/{run_id:[A-Za-z0-9][A-Za-z0-9._-]*}", self.link)
        app.router.add_get("/{unknown:(?!api/).*}", self.unknown_page)
        app.on_shutdown.append(self._streams.aclose)

    def is_stream(self, request: web.Request) -> bool:
        """Return whether the response is a stream of events, or one of XProf."""
        streams = [self.live_runs, self.live_run, *([self._xprof.show] if self._xprof else [])]
        return request.match_info.handler in streams

    async def runs(self, request: web.Request) -> web.Response:
        """Return the runs of all sources."""
        lists = await self._seen(request).lists()
        return send(request, await asyncio.to_thread(lambda: json_text_body(runs_text(lists))))

    async def run(self, request: web.Request) -> web.Response:
        """Return one run."""
        document = await self._document(request)
        return await json_response(request, lambda: document)

    async def files(self, request: web.Request) -> web.Response:
        """Return why the files of a run cannot be read from here; null if they can."""
        problem = None
        try:
            await self._directory(request)
        except _UNREADABLE as error:
            problem = str(error)
        return await json_response(request, lambda: {"problem": problem})

    async def metrics(self, request: web.Request) -> web.Response:
        """Return the metrics of a run, with the progress of their reader."""
        search = metric_search(request.query)
        reader, progress, is_complete = await self._reader(request)
        return await json_response(
            request,
            lambda: {
                **metrics_of(reader, search),
                "steps": steps_at_times(reader),
                **moments_of(reader),
                "progress": progress.to_json(is_complete=is_complete),
            },
        )

    async def curves(self, request: web.Request) -> web.Response:
        """Return the visible part of curves."""
        query = curve_query(request.query)
        reader, progress, is_complete = await self._reader(request)
        return await json_response(
            request, lambda: {**curves_of(reader, query), "progress": progress.to_json(is_complete=is_complete)}
        )

    async def points(self, request: web.Request) -> web.Response:
        """Return the points of curves as they were recorded, for a table."""
        query = curve_query(request.query)
        return await points_table(request, query, *await self._reader(request))

    async def points_csv(self, request: web.Request) -> web.Response:
        """Return all points of curves as a file."""
        query = curve_query(request.query)
        return await points_file(request, query, *await self._reader(request))

    async def texts(self, request: web.Request) -> web.Response:
        """Return the newest texts that a run has recorded."""
        reader, progress, is_complete = await self._reader(request)
        with reader.reading:
            document = reader.texts.to_json()
        return await json_response(request, lambda: {**document, "progress": progress.to_json(is_complete=is_complete)})

    async def ranks(self, request: web.Request) -> web.Response:
        """Return the values of each rank in columns of time."""
        query = rank_query(request.query)
        reader, _, _ = await self._reader(request)
        return await json_response(request, lambda: rank_columns(reader, query))

    async def goodput(self, request: web.Request) -> web.Response:
        """Return the goodput report of a run: of its files, else of its MLRun."""
        source, key = _address(request)
        seen = self._seen(request).source(source)
        problem = None
        try:
            directory = await self._directory(request)
        except _UNREADABLE as error:
            problem = str(error)
        else:
            report = await self._reports.get(replace((await seen.detail(key)).row, directory=directory))
            if report.account is not None:
                return send(request, report.body)
        account = await seen.account(key)
        return await json_response(request, lambda: cluster_report(account, problem))

    async def accounts(self, request: web.Request) -> web.Response:
        """Return the accounts of time of some runs; null for runs without one."""
        rows = await self._wanted_rows(request)
        accounts = await asyncio.gather(*(self._account(request, name, row) for name, row in rows.items()))
        return await json_response(request, lambda: {"runs": dict(zip(rows, accounts, strict=True))})

    async def values(self, request: web.Request) -> web.Response:
        """Return cells of some runs for the list; null for broken ones."""
        rows = await self._wanted_rows(request)
        cells = await asyncio.gather(*(self._values(request, name, row) for name, row in rows.items()))
        return await json_response(request, lambda: {"runs": dict(zip(rows, cells, strict=True))})

    async def step_times(self, request: web.Request) -> web.Response:
        """Return the distribution of the step times of a run."""
        source, key = _address(request)
        directory = await self._directory(request)
        detail = await self._seen(request).source(source).detail(key)
        return send(request, await self._reports.step_times(replace(detail.row, directory=directory)))

    async def schedules(self, request: web.Request) -> web.Response:
        """Return the schedules that apply to a run, with their captures of it."""
        source, key = _address(request)
        shown = await self._seen(request).source(source).schedules(key)
        return await json_response(request, lambda: {"schedules": [each.to_json() for each in shown]})

    async def live_runs(self, request: web.Request) -> web.StreamResponse:
        """Send an event when the list of runs has changed."""

        async def look() -> tuple[Any, bool]:
            lists = await self._seen(request).lists()
            return {"revision": await asyncio.to_thread(lambda: digest_of(runs_text(lists)))}, False

        return await self._streams.send(request, {"runs": look})

    async def live_run(self, request: web.Request) -> web.StreamResponse:
        """Send an event when a run or its curves change, or more of its lines are read."""
        directory = await self._directory(request, needed=False)

        async def look_at_run() -> tuple[Any, bool]:
            return {"revision": digest_of(json_text(await self._document(request)))}, False

        stages = ReadingStages()

        async def look_at_curves() -> tuple[Any, bool]:
            _, progress, is_complete = await self._open_runs.get(directory, wait_s=0)
            return {"revision": stages.after(progress, is_complete=is_complete)}, not is_complete

        async def look_at_progress() -> tuple[Any, bool]:
            _, progress, is_complete = await self._open_runs.get(directory, wait_s=0)
            return {"percent": progress.percent // 5 * 5}, not is_complete

        looks = {"run": look_at_run}
        if directory:
            looks |= {"curves": look_at_curves, "progress": look_at_progress}
        return await self._streams.send(request, looks)

    async def asset(self, request: web.Request) -> web.Response:
        """Return a file of the bundle, whose name changes with its content."""
        body = self._assets.get(request.match_info["name"])
        if body is None:
            raise RequestProblem(HTTPStatus.NOT_FOUND, "The page has another version now; reload it.")
        response = send(request, body)
        response.headers["Cache-Control"] = _FOREVER
        return response

    async def link(self, request: web.Request) -> web.Response:
        """Redirect to the page of a run by its id.

        The SDK and `MLRun.status.url` link to it.

        Without such a run, the page says that the address is not known.
        """
        run_id = request.match_info["run_id"]
        lists = await self._seen(request).lists()
        pages = [f"{each.name}/{run.key}" for each in lists for run in each.runs if run.row.run_id == run_id]
        if not pages:
            return await self.unknown_page(request)
        location = f"/runs/{quote(pages[0], safe='/:')}"
        return web.Response(status=HTTPStatus.FOUND, headers={"Location": location})

    async def page(self, request: web.Request) -> web.Response:
        """Return the page, which reads its state from the URL."""
        return send(request, self._assets[PAGE])

    async def unknown_page(self, request: web.Request) -> web.Response:
        """Return the page, which says that the address is not known."""
        response = send(request, self._assets[PAGE])
        response.set_status(HTTPStatus.NOT_FOUND)
        return response

    async def _wanted_rows(self, request: web.Request) -> dict[str, RunRow]:
        """Return the listed runs that a request names."""
        wanted = run_names(request.query)
        listed = {f"{each.name}/{run.key}": run.row for each in await self._seen(request).lists() for run in each.runs}
        return {name: listed[name] for name in wanted if name in listed}

    async def _values(self, request: web.Request, name: str, row: RunRow) -> dict[str, Any] | None:
        name, _, key = name.partition("/")
        source, metrics = self._seen(request).source(name), dict[str, float]()
        with suppress(MLDiagnosticsError, ClusterError, OSError, RunUnknown):  # as below
            configs = await source.configs(key)
            with suppress(MLDiagnosticsError, ClusterError):
                if directory := await source.directory(key, may_copy=False):
                    metrics = await self._reports.last_values(replace(row, directory=directory))
            return run_values(configs, metrics)
        return None

    async def _account(self, request: web.Request, name: str, row: RunRow) -> Mapping[str, Any] | None:
        name, _, key = name.partition("/")
        source = self._seen(request).source(name)
        if row.is_independent:
            return None
        with suppress(MLDiagnosticsError, ClusterError, OSError, RunUnknown):  # a broken run hides only its own bar
            if account := await source.account(key):  # first: files on a volume are copied
                return account
            if directory := await source.directory(key):
                return await self._reports.account(replace(row, directory=directory))
        return None

    def _seen(self, request: web.Request) -> Catalog:
        return self._catalog.seen_with(access_of(request))

    async def _document(self, request: web.Request) -> dict[str, Any]:
        source, key = _address(request)
        seen = self._seen(request).source(source)
        detail = await seen.detail(key)
        if detail.row.goodput is None and (account := await self._account(request, f"{source}/{key}", detail.row)):
            detail = replace(detail, row=replace(detail.row, goodput=account["goodput"]))
        actions = RunActions(await seen.captures.obstacle(key), self._actions.opens_xprof)
        return await asyncio.to_thread(run_document, source, key, detail, actions)

    async def _reader(self, request: web.Request) -> tuple[CurveReader, ReadProgress, bool]:
        return await self._open_runs.get(await self._directory(request))

    async def _directory(self, request: web.Request, *, needed: bool = True) -> str:
        source, key = _address(request)
        directory = ""
        try:
            directory = await self._seen(request).source(source).directory(key)
        except (MLDiagnosticsError, ClusterError):
            if needed:
                raise
        if needed and not directory:
            raise RequestProblem(
                HTTPStatus.CONFLICT,
                "The files of this run cannot be read from here. Set storageLocation to a bucket that its "
                "namespace may use, such as s3://…, to see curves; the newest values are in the MLRun.",
            )
        return directory


def _address(request: web.Request) -> tuple[str, str]:
    return request.match_info["source"], request.match_info["key"]
