"""A gcloud that records its arguments, and keeps and tunnels to machines as the real one does."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
from typing_extensions import override

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.programs.command_line import CommandLine

PAGE = b"<title>XProf</title>"
GCLOUD = """#!{python}
import json, pathlib, socket, sys, threading
arguments, folder = sys.argv[1:], pathlib.Path({folder!r})
with (folder / "calls").open("a") as log:
    log.write(json.dumps(arguments) + "\\n")
machines = folder / "machines.json"
known = json.loads(machines.read_text()) if machines.exists() else []
options = dict(each.removeprefix("--").split("=", 1) for each in arguments if each.startswith("--") and "=" in each)
action = arguments[2]
if options.get("zone") == "nowhere":
    sys.exit("ERROR: (gcloud.compute.instances.create) Could not fetch resource:\\n - Invalid zone 'nowhere'.\\n")
if action == "create":
    delimiter = options["metadata"].split("^")[1]
    metadata = [each.split("=", 1) for each in options["metadata"].split("^", 2)[2].split(delimiter)]
    (folder / "startup.sh").write_text(pathlib.Path(options["metadata-from-file"].split("=")[1]).read_text())
    zone = "https://www.googleapis.com/compute/v1/projects/p/zones/" + options["zone"]
    items = [dict(zip(("key", "value"), each)) for each in metadata]
    made = dict(name=arguments[3], zone=zone, status="RUNNING", creationTimestamp="2026-11-22T02:00:00.000-08:00")
    known.append({{**made, "metadata": {{"items": items}}}})
    print(json.dumps(known[-1:]))
elif action == "list":
    zones = options.get("zones", "").split(",")
    print(json.dumps([each for each in known if zones == [""] or each["zone"].rpartition("/")[2] in zones]))
elif action == "delete":
    known = [each for each in known if each["name"] != arguments[3]]
    print("[]")
else:
    listener = socket.create_server(("127.0.0.1", int(arguments[-1].split(":")[0])))
    while True:
        accepted, _ = listener.accept()
        if request := accepted.recv(65536):
            onward = socket.create_connection(("127.0.0.1", {port}))
            onward.sendall(request)
            while data := onward.recv(65536):
                accepted.sendall(data)
        accepted.close()
machines.write_text(json.dumps(known))
"""


class Page(BaseHTTPRequestHandler):
    """XProf's page on the machine."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(PAGE)

    @override
    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def recorded_gcloud(folder: Path) -> Iterator[dict[str, str]]:
    """Put a gcloud into a folder; yield variables of commands that find it. Its machines serve one page."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = folder / "gcloud"
    path.write_text(GCLOUD.format(python=sys.executable, folder=str(folder), port=server.server_address[1]))
    path.chmod(0o755)
    try:
        yield {"PATH": f"{folder}:/usr/bin:/bin", "XDG_STATE_HOME": "state"}
    finally:
        server.shutdown()
        server.server_close()


def open_page(command: CommandLine, *arguments: str, ended_by: signal.Signals = signal.SIGINT) -> bytes:
    """Return the page of the link that a command prints first.

    The signal ends the command, Ctrl-C by default, and the tunnel with it.
    """
    with subprocess.Popen(
        [command.script, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=command.folder,
        env=command.environment(),
    ) as connection:
        try:
            assert connection.stdout
            link = connection.stdout.readline().strip()
            with urllib.request.urlopen(link, timeout=60) as response:
                page: bytes = response.read()
        finally:
            connection.send_signal(ended_by)
        assert connection.wait(60) == (130 if ended_by is signal.SIGINT else -ended_by)
    with pytest.raises(urllib.error.URLError, match="refused"):
        urllib.request.urlopen(link, timeout=60)
    return page


def calls(folder: Path) -> list[list[str]]:
    """Return the arguments of each call of gcloud."""
    return [json.loads(line) for line in (folder / "calls").read_text().splitlines()]
