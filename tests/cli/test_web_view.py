"""`mldiag view` as a user starts, opens and ends it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_view.limits import MAX_THREADS
from mldiagnostics_view.settings import VIEW_PORT
from support.programs.processes import eventually
from support.programs.terminals import in_terminal
from support.run_files import put_run
from support.servers.emulator import running_emulator
from support.servers.emulator_faults import faulty_proxy

if TYPE_CHECKING:
    from mldiagnostics.store import Store
    from support.programs.command_line import CommandLine

SHOWN = re.compile(r"mldiag view: (http://127\.0\.0\.1:\d+/) \(Ctrl-C ends it\)")
PARALLEL = MAX_THREADS + 8
TRY_OF_STORE_S = 20.0
"""Google's client waits so long for a response, and so did the end of the program."""
TRIES = 3
NOT_YET = "has not responded yet"
"""A list of runs says so if the bucket does not respond within 10 s."""


def body_of(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as response:
        return str(response.read().decode())


def listed_runs(page: str) -> list[str]:
    """Return the keys of the listed runs; none until the sources have responded."""
    return [run["key"] for run in json.loads(body_of(f"{page}api/runs"))["runs"]]


def test_the_page_is_opened_in_a_browser_until_ctrl_c(mldiag: CommandLine, store: Store, opener: str) -> None:
    put_run(store, "4f6c", created=1.0)
    os.mkfifo(mldiag.folder / "opened")  # a reader waits for the browser
    env = mldiag.environment({"BROWSER": opener})
    with in_terminal([mldiag.script, "view", "--port", "0"], cwd=mldiag.folder, env=env) as program:
        program.wait_for("Ctrl-C ends it")
        opened = (mldiag.folder / "opened").read_text().strip()
        assert SHOWN.search(program.shown)[1] == opened
        eventually(lambda: listed_runs(opened))
        assert listed_runs(opened) == ["4f6c"]
        program.press_ctrl_c()
        code, _ = program.end()
    assert code == 130
    assert "Traceback" not in program.shown


def test_the_view_serves_on_if_nobody_reads_its_output(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "4f6c", created=1.0)
    reader, writer = os.pipe()
    os.close(reader)
    command = [mldiag.script, "view", "--no-open", "--port", "0"]
    env = mldiag.environment()
    with subprocess.Popen(
        command, cwd=mldiag.folder, env=env, stdout=writer, stderr=subprocess.PIPE, text=True
    ) as view:
        try:
            os.close(writer)
            assert view.stderr
            shown = SHOWN.search(view.stderr.readline())
            with urllib.request.urlopen(f"{shown[1]}api/runs", timeout=60) as response:
                assert response.status == 200
            view.terminate()
            assert (view.wait(60), view.stderr.read()) == (0, "")
        finally:
            view.kill()


@pytest.mark.parametrize("path", ["api/runs", "api/runs/runs/4f6c"])
def test_ctrl_c_does_not_wait_for_a_bucket_that_hangs(mldiag: CommandLine, path: str) -> None:
    assert any(ends_before_its_bucket_responds(mldiag, path) for _ in range(TRIES))


def ends_before_its_bucket_responds(mldiag: CommandLine, path: str) -> bool:
    """Return whether Ctrl-C ends the view before a try of the store ends."""
    with ThreadPoolExecutor(PARALLEL) as threads, running_emulator() as emulator, faulty_proxy(emulator) as bucket:
        bucket.otherwise = "hang"
        variables = {"STORAGE_EMULATOR_HOST": bucket.url, "DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA": "true"}
        env = mldiag.environment(variables)
        command = [mldiag.script, "view", "gs://bucket/runs", "--port", "0", "--no-open"]
        with in_terminal(command, cwd=mldiag.folder, env=env) as program:
            program.wait_for("Ctrl-C ends it")
            url = SHOWN.search(program.shown)[1] + path
            readers = [threads.submit(body_of, url) for _ in range(PARALLEL)]
            eventually(lambda: bucket.requests)
            program.press_ctrl_c()
            try:
                code, _ = program.end(limit_s=TRY_OF_STORE_S / 2)
            except subprocess.TimeoutExpired:
                return False
        assert (code, "Traceback" in program.shown) == (130, False), program.shown
        assert all(reader.exception(60) or NOT_YET in reader.result() for reader in readers), "it has not responded"
    return True


@pytest.mark.peers
def test_xprof_of_a_page_ends_with_it(mldiag: CommandLine, store: Store) -> None:
    put_run(store, "4f6c", created=1.0)
    store.put("4f6c/plugins/profile/slow/host-0.xplane.pb", b"")
    state = {"XDG_STATE_HOME": str(mldiag.folder / "state")}
    command = [mldiag.script, "view", "--port", "0", "--no-open"]
    with in_terminal(command, cwd=mldiag.folder, env=mldiag.environment(state)) as program:
        program.wait_for("Ctrl-C ends it")
        page = SHOWN.search(program.shown)[1]
        order = urllib.request.Request(
            f"{page}api/runs/mldiagnostics/4f6c/sessions/slow/xprof",
            data=b"{}",
            headers={"Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"},
        )
        url = None
        while url is None:  # XProf starts
            with urllib.request.urlopen(order, timeout=60) as response:
                url = json.load(response)["url"]
        [server] = json.loads(mldiag.run("xprof", "list", "--on", "local", "-o", "json", env=state).out)
        assert url.startswith(server["url"])
        program.press_ctrl_c()
        code, _ = program.end()
    assert code == 130, program.shown
    assert json.loads(mldiag.run("xprof", "list", "--on", "local", "-o", "json", env=state).out) == []


def test_mistakes_have_a_remedy(mldiag: CommandLine) -> None:
    message = mldiag.failure("view")
    assert message.startswith("mldiagnostics: no such directory, and no cluster (")
    assert "pass the root of the runs, or a cluster with --context" in message
    assert "--port" in mldiag.failure("view", "--port", "99999", code=64)
    message = mldiag.failure("view", ".", "--host", "0.0.0.0", "--no-open")
    assert message.startswith("--host: '0.0.0.0' is reachable from the network")
    assert f"Default: {VIEW_PORT}, or the next free one;" in mldiag.run("view", "--help").out
