"""A real fake-gcs-server for Google's own client."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cluster.ports import free_port
from cluster.tools import tool

if TYPE_CHECKING:
    from collections.abc import Iterator

_START_LIMIT_S = 60.0


@dataclass(frozen=True, slots=True)
class Emulator:
    """A running emulator; `url` is the value for `STORAGE_EMULATOR_HOST`."""

    url: str

    def make_bucket(self, name: str) -> None:
        """Create an empty bucket."""
        self._request("POST", "/storage/v1/b", f'{{"name": "{name}"}}'.encode())

    def make_object(self, bucket: str, name: str, data: bytes) -> None:
        """Upload an object without our code or Google's."""
        self._request("POST", f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}", data)

    def _request(self, method: str, path: str, body: bytes) -> None:
        request = urllib.request.Request(self.url + path, data=body, method=method)
        with urllib.request.urlopen(request, timeout=_START_LIMIT_S) as answer:
            answer.read()


@contextlib.contextmanager
def running_emulator() -> Iterator[Emulator]:
    """Run an empty emulator in memory, on its own port on 127.0.0.1."""
    address = f"127.0.0.1:{free_port()}"
    host, port = address.split(":")
    command = [
        *(str(tool("fake-gcs-server")), "-scheme", "http", "-host", host, "-port", port, "-backend", "memory"),
        *("-public-host", address, "-external-url", f"http://{address}", "-log-level", "error"),
    ]
    environment = {name: value for name, value in os.environ.items() if name != "STORAGE_EMULATOR_HOST"}
    environment["TZ"] = "UTC"  # it writes the times of objects in its own zone, and Google's client reads those of UTC
    process = subprocess.Popen(command, env=environment)
    try:
        _wait_until_ready(process, f"http://{address}")
        yield Emulator(f"http://{address}")
    finally:
        process.terminate()
        process.wait(timeout=_START_LIMIT_S)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    while True:
        if process.poll() is not None:
            raise RuntimeError(f"fake-gcs-server ended with {process.returncode} before it served {url}")
        try:
            with urllib.request.urlopen(f"{url}/_internal/healthcheck", timeout=1):
                return
        except OSError as error:
            if time.monotonic() > deadline:
                raise RuntimeError(f"fake-gcs-server did not serve {url} within {_START_LIMIT_S:.0f} s") from error
            time.sleep(0.05)
