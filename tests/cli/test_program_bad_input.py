"""Every command with bad input: one message with a remedy, the right exit code, and no traceback."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
import yaml
from mldiagnostics_cli.exit_codes import CLOSED_PIPE, INTERRUPTED
from support.run_files import put_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mldiagnostics.store import Store
    from support.programs.command_line import CommandLine

RUN = "38ecfc8a2d25"

CAPTURE = ("-l", "logs", "-z", "z", "-n", "trainer-0", "-f", "jax")

READS_CLUSTER = {
    "explain": ("explain", "trainer-0"),
    "doctor": ("doctor", "trainer-0"),
    "runs list": ("runs", "list", "-n", "ml"),
    "runs get": ("runs", "get", RUN, "-n", "ml"),
    "runs watch": ("runs", "watch", "-n", "ml"),
    "runs delete": ("runs", "delete", RUN, "-n", "ml", "--yes"),
    "capture": ("capture", "jobset/trainer"),
    "capture of a run": ("capture", RUN),
    "capture directly": ("capture", "pod/trainer-0", "--direct"),
    "xprof list": ("xprof", "list", "--on", "kubernetes"),
    "xprofiler capture": ("xprofiler", "capture", *CAPTURE, "-o", "gke"),
    "xprofiler list": ("xprofiler", "list", "--gke"),
    "xprofiler create": ("xprofiler", "create", "-l", "gs://b/r", "-z", "z", "--gke", "--image", "xprof"),
    "xprof connect": ("xprof", "connect", "gs://b/r", "--on", "kubernetes"),
    "xprofiler delete": ("xprofiler", "delete", "-n", "trainer", "-z", "z", "--gke", "-q"),
}
"""Commands that need a cluster, by name."""

READS_STORAGE = {
    "runs list": ("runs", "list"),
    "runs get": ("runs", "get", RUN),
    "runs watch": ("runs", "watch", RUN),
    "runs compare": ("runs", "compare", RUN, "other"),
    "runs delete": ("runs", "delete", RUN, "--yes"),
    "goodput": ("goodput", RUN),
    "trace": ("trace", RUN),
    "profiles list": ("profiles", "list"),
    "profiles get": ("profiles", "get", RUN),
    "profiles download": ("profiles", "download", f"{RUN}/slow"),
}
"""Commands that read a storage, by name."""


@pytest.fixture(scope="module")
def api_servers() -> Iterator[dict[str, str]]:
    """Addresses of API servers that reject every request, by the reason of their Status."""
    with ExitStack() as stack:
        addresses = {}
        for code, reason in ((401, "Unauthorized"), (403, "Forbidden"), (404, "NotFound")):
            status = {
                "kind": "Status",
                "status": "Failure",
                "code": code,
                "reason": reason,
                "message": MESSAGES[reason],
            }
            addresses[reason] = stack.enter_context(answering(code, json.dumps(status).encode()))
        addresses["a login page"] = stack.enter_context(answering(200, b"<html>Log in</html>"))
        yield {**addresses, "nothing listens": "http://127.0.0.1:1"}


MESSAGES = {
    "Unauthorized": "Unauthorized",
    "Forbidden": 'User "jane" cannot do this in the namespace "ml"',
    "NotFound": "the server could not find the requested resource",
}

WITHOUT_CLUSTER = [
    ("no file", "no such file; set KUBECONFIG to an existing one", ["runs list", "xprof connect"]),
    ("damaged", "not YAML: ", ["doctor", "xprofiler list"]),
    ("wrong context", "has no context 'prod'; choose one of the contexts: lab", ["capture of a run", "xprof list"]),
    ("nothing listens", "does not respond: ", ["runs watch", "xprofiler create"]),
    ("a login page", "does not respond as an API server: its response is not JSON; log in", ["xprof list"]),
    ("Unauthorized", "rejects the credentials: Unauthorized; log in again", ["runs delete", "xprofiler delete"]),
    ("Forbidden", "jane", ["explain", "capture directly", "xprofiler capture"]),
    ("NotFound", "does not have the resources of mldiagnostics; install", ["runs get", "capture"]),
]


@pytest.mark.parametrize(
    ("situation", "message", "command"),
    [(situation, message, command) for situation, message, commands in WITHOUT_CLUSTER for command in commands],
)
def test_without_a_usable_cluster(
    mldiag: CommandLine, api_servers: dict[str, str], situation: str, message: str, command: str
) -> None:
    file = mldiag.folder / "kubeconfig"
    if situation == "damaged":
        file.write_text("{")
    elif situation != "no file":
        file.write_text(kubeconfig(api_servers.get(situation, ""), "prod" if situation == "wrong context" else "lab"))
    shown = mldiag.failure(*READS_CLUSTER[command], env={"HOME": str(mldiag.folder), "KUBECONFIG": str(file)})
    assert message in shown
    assert "; " in shown, "a message has a remedy"


def kubeconfig(server: str, context: str) -> str:
    config = {
        "clusters": [{"name": "lab", "cluster": {"server": server}}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": "me", "namespace": "ml"}}],
        "users": [{"name": "me", "user": {"token": "t"}}],
        "current-context": context,
    }
    return yaml.safe_dump(config)


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [
        (
            ("capture", "--tpu-vm", "slice", "--zone", "z"),
            "gcloud: not installed here; install the Google Cloud CLI",
            1,
        ),
        (("capture", "--gce-vm", "host", "--zone", "z"), "gcloud: not installed here; install the Google Cloud CLI", 1),
        (("xprofiler", "capture", *CAPTURE), "gcloud: not installed here; install the Google Cloud CLI", 1),
        (("capture", "--slurm-job", "7"), "--slurm-job: squeue is not installed here; run this where Slurm is", 1),
        (("capture", "--gce-vm", "host"), "--gce-vm or --tpu-vm: pass only one of them, with --zone", 64),
        (("capture", "jobset/a", "host:1"), "addresses and targets of a cluster cannot be mixed; run two captures", 1),
        (
            ("capture", "-l", "a=b", "--every", "1s", "--session", "s"),
            "--every and --session: both are given; pass",
            64,
        ),
        (("capture", "host:1", "--log-directory", "/proc/none"), "/proc/none", 1),
    ],
)
def test_a_capture_that_cannot_start(mldiag: CommandLine, arguments: tuple[str, ...], message: str, code: int) -> None:
    (mldiag.folder / "bin").mkdir()
    shown = mldiag.failure(*arguments, code=code, env={"PATH": str(mldiag.folder / "bin")})
    assert message in shown
    assert "; " in shown


@contextmanager
def answering(code: int, body: bytes) -> Iterator[str]:
    """Run a server that answers every request alike; yield its address."""

    class Answering(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            self.send_response(code)
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_DELETE = _answer  # noqa: N815 - the names of the base class

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture(scope="module")
def forbidden() -> Iterator[str]:
    """A bucket that refuses every request."""
    with answering(
        403, b'{"error": {"code": 403, "message": "jane does not have storage.objects.list access"}}'
    ) as url:
        yield url


@pytest.mark.parametrize("command", READS_STORAGE)
def test_a_bucket_that_refuses(mldiag: CommandLine, forbidden: str, command: str) -> None:
    env = {"STORAGE_EMULATOR_HOST": forbidden, "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA": "true"}
    shown = mldiag.failure(*READS_STORAGE[command], "--storage", "gs://team/runs", env=env)
    assert shown.startswith("gs://team/runs")
    assert "jane does not have storage.objects.list access" in shown or "403" in shown


def test_a_capture_into_a_bucket_that_refuses(mldiag: CommandLine, forbidden: str) -> None:
    env = {"STORAGE_EMULATOR_HOST": forbidden, "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA": "true"}
    ended = mldiag.run("capture", "127.0.0.1:1", "--log-directory", "gs://team/profiles", env=env)
    assert (ended.code, ended.out) == (1, "")
    assert "gs://team/profiles" in ended.err
    assert "; " in ended.err


@pytest.mark.parametrize("command", READS_STORAGE)
def test_a_storage_that_does_not_exist(mldiag: CommandLine, command: str) -> None:
    shown = mldiag.failure(*READS_STORAGE[command], "--storage", "nowhere")
    assert "nowhere: no such directory; pass the root of the runs" in shown


@pytest.mark.parametrize("command", ["runs list", "runs get", "profiles list", "doctor", "capture"])
def test_a_terminal_of_40_columns(mldiag: CommandLine, store: Store, command: str) -> None:
    put_run(store, RUN, name="a name that is longer than the terminal")
    store.put(f"{RUN}/plugins/profile/a-session-with-a-name-longer-than-the-terminal/host.xplane.pb", b"")
    without_storage = {"doctor": ("doctor",), "capture": ("capture", f"{'host' * 12}:9999", "--dry-run")}
    arguments = {**READS_STORAGE, **without_storage}[command]
    terminal, end = pty.openpty()
    env = mldiag.environment({"COLUMNS": "40", "LINES": "20", "NO_COLOR": "1", "HOME": str(mldiag.folder)})
    process = subprocess.Popen([mldiag.script, *arguments], stdout=end, stderr=end, cwd=mldiag.folder, env=env)
    os.close(end)
    printed = b""
    try:
        while part := os.read(terminal, 65536):
            printed += part
    except OSError:  # the other end is closed
        pass
    os.close(terminal)
    assert process.wait(60) == 0, printed
    assert "Traceback" not in printed.decode()
    if command in {"runs list", "profiles list", "capture"}:
        table = [line for line in printed.decode().splitlines() if not line.startswith("Nothing was captured")]
        assert max(map(len, table)) <= 40


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--help",), CLOSED_PIPE),
        (("runs", "list", "-h"), CLOSED_PIPE),
        (("runs", "list"), CLOSED_PIPE),
        (("runs", "get", RUN, "-o", "json"), CLOSED_PIPE),
        (("profiles", "list", "."), CLOSED_PIPE),
        (("trace", "app.log", "--out", "-"), CLOSED_PIPE),
        (("completion", "bash"), CLOSED_PIPE),
        (("doctor",), CLOSED_PIPE),
        (("capture", "host-0:9999", "--dry-run"), CLOSED_PIPE),
    ],
)
def test_a_closed_pipe(mldiag: CommandLine, store: Store, arguments: tuple[str, ...], code: int) -> None:
    put_run(store, RUN)
    (mldiag.folder / "app.log").write_text("2026-11-22T10:00:00Z step 1\n")
    (mldiag.folder / "plugins/profile/slow").mkdir(parents=True)
    (mldiag.folder / "plugins/profile/slow/host.xplane.pb").touch()
    reader, writer = os.pipe()
    os.close(reader)
    ended = run_into(writer, mldiag, arguments)
    assert (ended.returncode, ended.stderr) == (code, b"")


def run_into(output: int, mldiag: CommandLine, arguments: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
    """Run a command with this file as standard output, and close the file."""
    with os.fdopen(output, "wb") as file:
        return subprocess.run(
            [mldiag.script, *arguments],
            stdout=file,
            stderr=subprocess.PIPE,
            env=mldiag.environment({"HOME": str(mldiag.folder)}),
            cwd=mldiag.folder,
            check=False,
            timeout=60,
        )


@pytest.mark.parametrize("arguments", [("--help",), ("--version",), ("runs", "list"), ("completion", "bash")])
def test_a_full_disk(mldiag: CommandLine, store: Store, arguments: tuple[str, ...]) -> None:
    put_run(store, RUN)
    ended = run_into(os.open("/dev/full", os.O_WRONLY), mldiag, arguments)
    problem = b"No space left on device; free some space or write to another file"
    assert (ended.returncode, ended.stderr) == (1, b"mldiag: standard output: cannot be written: " + problem + b"\n")


@pytest.mark.parametrize("arguments", [("runs", "list"), ("trace", "app.log", "--out", "-")])
def test_a_closed_output(mldiag: CommandLine, store: Store, arguments: tuple[str, ...]) -> None:
    put_run(store, RUN)
    (mldiag.folder / "app.log").write_text("2026-11-22T10:00:00Z step 1\n")
    ended = subprocess.run(
        ["sh", "-c", '"$@" >&-', "sh", mldiag.script, *arguments],
        stderr=subprocess.PIPE,
        env=mldiag.environment({"HOME": str(mldiag.folder)}),
        cwd=mldiag.folder,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stderr) == (1, b"mldiag: standard output: is closed; redirect it to a file\n")


def test_ctrl_c_ends_a_command_that_waits(mldiag: CommandLine, store: Store) -> None:
    put_run(store, RUN, phase="Active", heartbeat=1.0)
    process = subprocess.Popen(
        [mldiag.script, "runs", "watch", "--interval", "3600"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=mldiag.folder,
        env=mldiag.environment(),
    )
    assert process.stdout is not None
    process.stdout.readline()  # it has printed its first rows and waits
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors.strip()) == (INTERRUPTED, b"")


INTERRUPTED_IMPORT = """
import os, sys
module = sys.argv[1]
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == module:
            os.kill(os.getpid(), 2)
sys.meta_path.insert(0, Interrupting())
from mldiagnostics_cli.__main__ import main
sys.argv[1:] = ["runs", "list"]
main()
"""


@pytest.mark.parametrize("module", ["click", "mldiagnostics_cli.exit_codes", "mldiagnostics_cli.runs.listing"])
def test_ctrl_c_during_the_start_ends_quietly(mldiag: CommandLine, store: Store, module: str) -> None:
    put_run(store, RUN)
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_IMPORT, module],
        cwd=mldiag.folder,
        env=mldiag.environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (ended.returncode, ended.stdout, ended.stderr.strip()) == (INTERRUPTED, "", "")
