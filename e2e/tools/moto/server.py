"""Serve an empty S3 in memory: `python server.py HOST PORT`."""

import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto.server import DomainDispatcherApplication, create_backend_app  # type: ignore[import-not-found]
from werkzeug.serving import run_simple

application = DomainDispatcherApplication(create_backend_app)
turn = threading.Lock()


def in_turn(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    """Answer one request at a time: moto's conditions are not atomic, those of real services are."""
    with turn:
        answer: Iterable[bytes] = application(environ, start_response)
        return answer


if __name__ == "__main__":
    run_simple(sys.argv[1], int(sys.argv[2]), in_turn, threaded=True)
