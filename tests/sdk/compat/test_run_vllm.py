"""vLLM as a run: the wrapper as a real process, around a command that stands where `vllm` does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.run_vllm import directories, rewritten
from mldiagnostics.runs import list_runs
from support.programs.processes import Child

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VLLM = f"""#!{sys.executable}
import json, os, signal, sys, time
from pathlib import Path
if sys.argv[-1] == "stop-slowly":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))
while not list(Path(__file__).parent.glob("storage/*/run.json")):  # a close that writes it first may reach its limit
    time.sleep(0.01)
print(json.dumps(dict(pid=os.getpid(), arguments=sys.argv[1:], environment=dict(os.environ))), flush=True)
if sys.argv[-1].startswith("stop"):
    print("serving", flush=True)
    signal.pause()
sys.exit(int(sys.argv[-1]))
"""


class Serving:
    """A folder with a command `vllm`, and the wrapper that runs it."""

    def __init__(self, folder: Path) -> None:
        self.storage = folder / "storage"
        self.environment = {"PATH": f"{folder}:{os.environ['PATH']}", "HOME": str(folder)}
        command = folder / "vllm"
        command.write_text(VLLM)
        command.chmod(0o755)

    @contextmanager
    def started(self, *arguments: str, **environment: str) -> Iterator[Child]:
        command = [sys.executable, "-m", "mldiagnostics.run_vllm", f"--mlrun_gcs_path={self.storage}", *arguments]
        process = subprocess.Popen(
            command,
            env={**self.environment, **environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        with process:
            try:
                yield Child(process)
            finally:
                process.kill()


@pytest.fixture
def serving(tmp_path: Path) -> Serving:
    return Serving(tmp_path)


def test_vllm_gets_its_arguments_and_the_run_its_own(serving: Serving) -> None:
    ours = ["--mlrun_name=chat", "--run_group", "prod", '--configs={"model": "m"}', "--jax_profiler_port=9012"]
    vllm_arguments = ["serve", "model", "--port", "8000", "--configs-of-vllm", "x", "0"]
    with serving.started(*ours, *vllm_arguments, "0", VLLM_TORCH_PROFILER_DIR="gs://b/p") as child:
        ended = child.end()
    assert ended.code == 0, ended.err
    result = json.loads(ended.out)
    [row] = list_runs(str(serving.storage))
    assert result["arguments"] == [*vllm_arguments, "0"]
    assert result["environment"]["USE_JAX_PROFILER_SERVER"] == "True"
    assert result["environment"]["JAX_PROFILER_SERVER_PORT"] == "9012"
    assert result["environment"]["VLLM_TORCH_PROFILER_DIR"] == f"gs://b/p/{row.run_id}/plugins/profile/"
    assert (row.name, row.run_group, row.phase) == ("chat", "prod", "Completed")
    assert row.configs["user"] == {"model": "m"}
    assert row.document["kinds"]["servingEngine"] == "VLLM"
    assert "profiler" not in row.document


def test_vllm_on_jax_publishes_its_profiler(serving: Serving) -> None:
    with serving.started("--framework=JAX", "--", "serve", "0") as child:
        assert child.end().code == 0
    [row] = list_runs(str(serving.storage))
    assert row.document["profiler"]["port"] == 9999
    assert row.phase == "Completed"


def test_the_status_of_vllm_is_the_wrappers(serving: Serving) -> None:
    with serving.started("serve", "7") as child:
        assert child.end().code == 7
    [row] = list_runs(str(serving.storage))
    assert row.phase == "Failed"


@pytest.mark.parametrize(("argument", "status"), [("stop", 128 + signal.SIGTERM), ("stop-slowly", 3)])
def test_a_rolling_update_is_not_a_failure(serving: Serving, argument: str, status: int) -> None:
    with serving.started("serve", argument) as child:
        child.says("serving")
        child.process.send_signal(signal.SIGTERM)
        assert child.end().code == status
    [row] = list_runs(str(serving.storage))
    assert row.phase == "Completed"


def test_a_killed_vllm_is_a_failure(serving: Serving) -> None:
    with serving.started("serve", "stop") as child:
        assert child.process.stdout is not None
        result = json.loads(child.process.stdout.readline())
        os.kill(result["pid"], signal.SIGKILL)
        assert child.end().code == 128 + signal.SIGKILL
    [row] = list_runs(str(serving.storage))
    assert row.phase == "Failed"


def test_a_missing_vllm_is_named(serving: Serving) -> None:
    with serving.started("serve", PATH="/nowhere") as child:
        ended = child.end()
    assert ended.code == 127
    assert "vllm cannot be started" in ended.err
    [row] = list_runs(str(serving.storage))
    assert row.phase == "Failed"


def test_invalid_configs_do_not_stop_serving(serving: Serving) -> None:
    with serving.started("--configs={oops", "serve", "0") as child:
        ended = child.end()
    assert ended.code == 0
    assert "--configs is not valid JSON" in ended.err


CONFIG = '{"profiler": "torch", "torch_profiler_dir": "/p/"}'
MOVED = '{"profiler": "torch", "torch_profiler_dir": "/p/ID/plugins/profile/"}'


@pytest.mark.parametrize(
    ("given_arguments", "expected"),
    [
        (["--profiler-config", CONFIG, "x"], ["--profiler-config", MOVED, "x"]),
        ([f"--profiler-config={CONFIG}"], [f"--profiler-config={MOVED}"]),
        (
            ["--profiler-config.torch_profiler_dir", "gs://b"],
            ["--profiler-config.torch_profiler_dir", "gs://b/ID/plugins/profile/"],
        ),
        (
            ["--profiler-config.torch_profiler_dir=gs://b"],
            ["--profiler-config.torch_profiler_dir=gs://b/ID/plugins/profile/"],
        ),
        (["--profiler-config", "{no json"], ["--profiler-config", "{no json"]),
        (["--profiler-config", "[]"], ["--profiler-config", "[]"]),
        (["--profiler-config"], ["--profiler-config"]),
    ],
)
def test_directories_in_arguments_move_into_the_run(given_arguments: list[str], expected: list[str]) -> None:
    assert rewritten(given_arguments, "ID") == expected


@given(st.lists(st.text().filter(lambda text: not text.startswith("--profiler-config"))))
def test_other_arguments_stay_as_they_are(arguments: list[str]) -> None:
    assert rewritten(arguments, "ID") == arguments


def test_only_variables_with_directories_move() -> None:
    environment = {"PHASED_PROFILING_DIR": "/a", "VLLM_TORCH_PROFILER_DIR": "", "PATH": "/bin"}
    assert directories(environment, "ID") == {"PHASED_PROFILING_DIR": "/a/ID/plugins/profile/"}
