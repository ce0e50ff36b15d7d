"""Run and record vLLM: `python -m mldiagnostics.run_vllm [OPTIONS] serve MODEL …`.

Other arguments are passed to the command `vllm` unchanged, and its exit status is returned. The options are those of
`google_cloud_mldiagnostics.commands.run_vllm`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from mldiagnostics.diagnostics import warn_once
from mldiagnostics.run import Framework, RunPhase, ServingEngine, machinelearning_run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mldiagnostics.run import MLRun

GRACE_S = 15.0
"""Seconds from SIGTERM to SIGKILL of vLLM."""

CLOSE_TIMEOUT_S = 5.0
"""Seconds to close the run after vLLM; Kubernetes gives 30 s for both."""

NOT_FOUND = 127
"""Exit status of a shell for a missing command."""

_DIRECTORY_VARIABLES = ("PHASED_PROFILING_DIR", "VLLM_TORCH_PROFILER_DIR")
_DIRECTORY_OPTION = "--profiler-config.torch_profiler_dir"
_CONFIG_OPTION = "--profiler-config"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run vLLM to its end and return its exit status."""
    options, vllm_arguments = _parser().parse_known_args(arguments)
    os.environ["MLRUN_SKIP_LIBTPU"] = "True"  # the chips are vLLM's: a second process must not open them
    run = machinelearning_run(
        name=options.mlrun_name,
        run_group=options.run_group,
        configs=_configs(options.configs),
        gcs_path=options.mlrun_gcs_path,
        project=options.project,
        region=options.region,
        framework=options.framework,
        serving_engine=ServingEngine.VLLM,
    )
    if run.framework is Framework.JAX:
        run.publish("profiler", {"port": options.jax_profiler_port, "server": "jax", "version": _version_of("jaxlib")})
    environment = dict(
        os.environ, USE_JAX_PROFILER_SERVER="True", JAX_PROFILER_SERVER_PORT=str(options.jax_profiler_port)
    )
    if options.phased_profiling_dir:
        environment["PHASED_PROFILING_DIR"] = options.phased_profiling_dir
    environment.update(directories(environment, run.run_id))
    if vllm_arguments[:1] == ["--"]:
        vllm_arguments = vllm_arguments[1:]
    return serve([*_command(), *rewritten(vllm_arguments, run.run_id)], environment, run)


def serve(command: Sequence[str], environment: Mapping[str, str], run: MLRun) -> int:
    """Run a command to its end, close the run, and return the exit status.

    The run is Failed if the command failed without a signal to this process.
    """
    child = _Child()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: child.stop())
    try:
        status = child.run(command, environment)
    except OSError as error:
        warn_once("vllm-start", f"{command[0]} cannot be started: {error.strerror}; install vllm in this environment")
        status = NOT_FOUND
    failed = status != 0 and not child.stopped
    run.close(RunPhase.PHASE_FAILED if failed else RunPhase.PHASE_COMPLETED, timeout_s=CLOSE_TIMEOUT_S)
    return status


class _Child:
    """The process of vLLM; it may be stopped before it has started."""

    def __init__(self) -> None:
        self.stopped = False
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Start the process, wait for its end, and return its status like a shell."""
        self._process = subprocess.Popen(command, env=environment)
        if self.stopped:
            self._terminate()
        status = self._process.wait()
        return status if status >= 0 else 128 - status

    def stop(self) -> None:
        """Stop the process; may be called several times in signal handlers."""
        if not self.stopped:
            self.stopped = True
            self._terminate()

    def _terminate(self) -> None:
        if self._process is not None:
            self._process.terminate()
            killer = threading.Timer(GRACE_S, self._process.kill)
            killer.daemon = True
            killer.start()


def rewritten(arguments: Sequence[str], run_id: str) -> list[str]:
    """Return vLLM's arguments with profile directories below the run's, for XProf."""
    result: list[str] = []
    option = ""
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if option:
            result.append(_moved(option, argument, run_id))
        elif equals and name in {_DIRECTORY_OPTION, _CONFIG_OPTION}:
            result.append(f"{name}={_moved(name, value, run_id)}")
        else:
            result.append(argument)
        option = argument if not option and argument in {_DIRECTORY_OPTION, _CONFIG_OPTION} else ""
    return result


def directories(environment: Mapping[str, str], run_id: str) -> dict[str, str]:
    """Return the variables with profile directories, moved below the run's."""
    return {name: _profiles(environment[name], run_id) for name in _DIRECTORY_VARIABLES if environment.get(name)}


def _moved(option: str, value: str, run_id: str) -> str:
    if option == _DIRECTORY_OPTION:
        return _profiles(value, run_id)
    try:
        config = json.loads(value)
    except ValueError:
        return value  # vLLM reports the error
    if not isinstance(config, dict) or not isinstance(config.get("torch_profiler_dir"), str):
        return value
    return json.dumps({**config, "torch_profiler_dir": _profiles(config["torch_profiler_dir"], run_id)})


def _profiles(directory: str, run_id: str) -> str:
    return f"{directory.rstrip('/')}/{run_id}/plugins/profile/"


def _configs(text: str | None) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        configs = json.loads(text)
    except ValueError as error:
        warn_once("vllm-configs", f"--configs is not valid JSON and is recorded as a string: {error}")
        return {"configs": text}
    return configs if isinstance(configs, dict) else {"configs": configs}


def _command() -> list[str]:
    """Return the command of vLLM, preferring the one next to this Python."""
    beside = shutil.which("vllm", path=os.path.dirname(sys.executable))  # noqa: PTH120 - a string is needed
    return [beside or shutil.which("vllm") or "vllm"]


def _version_of(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m mldiagnostics.run_vllm",
        description="Run vLLM with the arguments that are not listed here, and record it as a run.",
        allow_abbrev=False,
    )
    parser.add_argument("--mlrun_name", default="vllm", help="name of the run (vllm)")
    parser.add_argument("--mlrun_gcs_path", help="root for its files: s3://… or a directory (MLDIAG_STORAGE)")
    parser.add_argument("--project", help="Google Cloud project")
    parser.add_argument("--region", help="Google Cloud region")
    parser.add_argument("--run_group", default="", help="group of the run")
    parser.add_argument("--configs", help="configuration of the run: a JSON object")
    parser.add_argument("--jax_profiler_port", type=int, default=9999, help="port of vLLM's JAX profiler (9999)")
    parser.add_argument("--phased_profiling_dir", help="directory for profiles of vLLM's phases")
    parser.add_argument(
        "--framework",
        type=str.lower,
        choices=("pytorch", "jax"),
        default=os.environ.get("MLRUN_FRAMEWORK", "pytorch").lower(),
        help="framework of vLLM (MLRUN_FRAMEWORK, else pytorch)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
