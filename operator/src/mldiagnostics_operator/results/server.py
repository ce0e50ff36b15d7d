"""The API for files of runs and captures, which API servers pass on from readers."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final

from aiohttp import web
from mldiagnostics_api import results
from mldiagnostics_kube.serving.bounded_server import BoundedServer, Bounds

from mldiagnostics_operator.fair_slots import FairSlots
from mldiagnostics_operator.results import limits
from mldiagnostics_operator.results.checks import DirectoryChecks
from mldiagnostics_operator.results.requests import GROUP_PATH, InvalidRequest, parse
from mldiagnostics_operator.results.volume import FilePart, TooManyFiles, list_files, read_part

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path
    from ssl import SSLContext

    from mldiagnostics_kube.serving.bounded_server import Respond

    from mldiagnostics_operator.results.front_proxy import FrontProxy
    from mldiagnostics_operator.results.requests import FilesRequest

_log: Final = logging.getLogger(__name__)
_REASONS: Final = {400: "BadRequest", 403: "Forbidden", 404: "NotFound", 409: "Conflict", 429: "TooManyRequests"}


class ResultsServer:
    """Serves files to API servers with one of the given client certificates.

    Args:
        root: Mount point of the volume.
        proxy: The client certificates.
        answered: Called with the HTTP status of each answer.
    """

    def __init__(self, root: Path, proxy: FrontProxy, *, answered: Callable[[int], None] = lambda _: None) -> None:
        self._root: Final = root
        self._proxy: Final = proxy
        self._answered: Final = answered
        self._checks: Final = DirectoryChecks(root, time.monotonic)
        self._slots: Final = FairSlots(limits.READS, per_namespace=limits.READS_OF_NAMESPACE)
        self._of_namespace: Final = Counter[str]()
        """Requests that wait, read or send."""
        self._threads: Final = ThreadPoolExecutor(limits.READS, thread_name_prefix="results")

    def serving(self, port: int, tls: SSLContext) -> AbstractAsyncContextManager[int]:
        """Serve while the block runs; it gets the port."""
        bounds = Bounds(
            connections=limits.CONNECTIONS, head_lines=limits.HEAD_LINES, head_line_bytes=limits.HEAD_LINE_BYTES
        )
        return BoundedServer(self._route, bounds).serving(port, tls)

    def close(self) -> None:
        """Stop the threads."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _route(self, request: web.BaseRequest) -> Respond | web.Response:
        if not self._proxy.admits(request.get_extra_info("peercert")):
            return self._failure(403, "client certificate: is not that of an API server; send requests to it")
        if request.method != "GET":
            return self._failure(405, f"{request.method[:20]}: not allowed here; use GET")
        if request.path == GROUP_PATH:
            return web.json_response(results.discovery())
        try:
            wanted = parse(request.path, list(request.query.items()))
        except InvalidRequest as invalid:
            return self._failure(invalid.status, str(invalid))
        return lambda _: self._respond(request, wanted)

    async def _respond(self, request: web.BaseRequest, wanted: FilesRequest) -> web.StreamResponse:
        """Answer in turn, within the namespace's share, until the answer is sent."""
        namespace = wanted.namespace
        if self._of_namespace[namespace] >= limits.READS_OF_NAMESPACE + limits.WAITING_OF_NAMESPACE:
            return self._failure(429, f"namespace {namespace}: too many requests for files; try again in a second")
        self._of_namespace[namespace] += 1
        try:
            async with self._slots.slot(namespace):
                return await self._send(request, await self._answer(wanted))
        finally:
            self._of_namespace[namespace] -= 1
            if not self._of_namespace[namespace]:
                del self._of_namespace[namespace]

    async def _answer(self, wanted: FilesRequest) -> web.Response:
        reading = asyncio.get_running_loop().run_in_executor(self._threads, self._read, wanted)
        try:
            async with asyncio.timeout(limits.READ_S):
                return await reading
        except TimeoutError:
            return self._failure(503, f"{wanted.directory}: the volume did not respond in {limits.READ_S:g} s")

    def _read(self, wanted: FilesRequest) -> web.Response:
        """Read the directory or the part, in a thread."""
        directory, namespace = wanted.directory, wanted.namespace
        if not self._checks.is_readable(directory, namespace):
            return self._failure(
                404, f"{directory}: not the directory of a run or a profile session of namespace {namespace}"
            )
        try:
            if wanted.file:
                path = (*directory.segments, *wanted.file)
                return self._part(read_part(self._root, path, wanted.offset, results.PART_BYTES), wanted)
            suffixes = wanted.suffixes
            files = list_files(
                self._root,
                directory.segments,
                lambda name: not suffixes or name.endswith(suffixes),
                most=results.MAX_FILES,
            )
        except TooManyFiles:
            message = f"{directory}: has too many files, more than {results.MAX_FILES}; read them in the volume"
            return self._failure(422, message)
        except OSError as error:
            return self._failure(404, f"{'/'.join((str(directory), *wanted.file))}: {error.strerror or error}")
        return self._success(web.json_response({"files": [{"file": name, "bytes": size} for name, size in files]}))

    def _part(self, part: FilePart, wanted: FilesRequest) -> web.Response:
        if wanted.version not in ("", part.version):
            return self._failure(409, f"{'/'.join(wanted.file)}: was replaced meanwhile; read it from its start")
        headers = {results.SIZE_HEADER: str(part.size), results.VERSION_HEADER: part.version}
        return self._success(web.Response(body=part.content, content_type="application/octet-stream", headers=headers))

    async def _send(self, request: web.BaseRequest, response: web.Response) -> web.Response:
        try:
            async with asyncio.timeout(limits.SEND_S):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            if request.transport is not None:
                request.transport.abort()
        return response

    def _success(self, response: web.Response) -> web.Response:
        self._answered(response.status)
        return response

    def _failure(self, status: int, message: str) -> web.Response:
        """Return an answer in the form of the API server's own."""
        self._answered(status)
        headers: Mapping[str, str] = {"Retry-After": "1"} if status == 429 else {}
        document = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": _REASONS.get(status, "Unknown"),
            "code": status,
        }
        return web.json_response(document, status=status, headers=headers)
