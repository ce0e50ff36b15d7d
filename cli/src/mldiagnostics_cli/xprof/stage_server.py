"""Serve a stage on this machine.

`idle_server` sends it each request before XProf gets it.
"""

from __future__ import annotations

import shutil
import sys
import threading
from contextlib import contextmanager
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.runs.session_cache import SessionTooLarge
from mldiagnostics.store import open_store
from typing_extensions import override

from mldiagnostics_cli.xprof.staging import SessionStage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


LOG_DIRECTORY = "logs"
"""The log directory of XProf below the directory of the cache."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, stage: SessionStage) -> None:
        self.stage = stage
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        """Prepare the cache for the request; respond with 200, or the problem."""
        status, message = HTTPStatus.OK, ""
        try:
            self.server.stage.prepare(self.path)
        except SessionTooLarge as error:
            status, message = HTTPStatus.INSUFFICIENT_STORAGE, str(error)
        except (MLDiagnosticsError, OSError) as error:
            status, message = HTTPStatus.BAD_GATEWAY, str(error)
        if message:
            self.log_error("%s", message)
        body = message.encode()
        self.send_response_only(status)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    @override
    def log_message(self, format: str, *args: object) -> None:
        sys.stderr.write(f"{format % args}\n")


@contextmanager
def serving_stage(url: str, directory: Path, limit: int) -> Iterator[int]:
    """Serve the cache of a log directory on 127.0.0.1, and yield the port.

    Args:
        url: The log directory, in a bucket.
        directory: Directory of the cache. An earlier copy in it is deleted.
        limit: Most bytes of the cache.

    Raises:
        MLDiagnosticsError: The bucket cannot be listed.
    """
    shown, partial = directory / LOG_DIRECTORY, directory / "partial"
    for each in (shown, partial):
        shutil.rmtree(each, ignore_errors=True)
    shown.mkdir(parents=True)
    stage = SessionStage(open_store(url), shown, partial, limit)
    stage.refresh()
    with _Server(stage) as server:
        for work in (server.serve_forever, lambda: _fetch_newest(stage)):
            threading.Thread(target=work, daemon=True).start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()


def _fetch_newest(stage: SessionStage) -> None:
    try:
        stage.fetch_newest()
    except (MLDiagnosticsError, OSError) as error:  # a request for the session repeats it
        sys.stderr.write(f"newest session: {error}\n")
