"""Take one profile of several hosts: `python -m mldiagnostics.collect_profile`.

The options are those of Google's SDK. Exit status: 0 if every host was captured, 1 if one was not, 2 for an invalid
argument.
"""

from __future__ import annotations

import argparse
import socket
import sys
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError
from mldiagnostics.standard_output import write_text
from mldiagnostics.text.counts import counted_of
from mldiagnostics.text.terminal import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.capture import Outcome

__all__ = ["main"]

_PROGRAM = "python -m mldiagnostics.collect_profile"


def main(arguments: Sequence[str] | None = None) -> int:
    """Capture, print an outcome for each host, and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    try:
        return _captured(options)
    except ConfigurationError as error:  # others are printed
        parser.exit(2, f"{_PROGRAM}: {printable(str(error))}\n")


def _captured(options: argparse.Namespace) -> int:
    """Capture, print an outcome for each host, and return the exit status.

    Raises:
        ConfigurationError: standard output cannot be written.
    """
    try:
        from mldiagnostics.capture import TargetState, Tracers, capture  # noqa: PLC0415 - a missing extra is reported below

        hosts = _listed(options.hosts)
        report = capture(
            [_address(host, options.port) for host in hosts],
            storage=options.log_dir,
            duration_ms=options.duration_in_ms,
            session=options.session_name or None,
            tracers=Tracers(options.host_tracer_level, options.device_tracer_level, options.python_tracer_level),
            stems=_stems(options, hosts),
        )
    except MLDiagnosticsError as error:
        _print(f"{_PROGRAM}: {error}")
        return 2 if isinstance(error, ConfigurationError) else 1
    for outcome in report.outcomes:
        _print(_line(outcome))
    captured = sum(outcome.state is TargetState.CAPTURED for outcome in report.outcomes)
    number = counted_of(captured, len(report.outcomes), "host")
    _print(f"session {report.session} in {report.directory}: captured {number}")
    return 0 if captured == len(report.outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_PROGRAM, description="Take one profile of several hosts at the same time.")
    parser.add_argument("--hosts", required=True, help="comma-separated names or addresses of hosts, without port")
    parser.add_argument("--port", required=True, type=int, help="port of the profiler server on all of them")
    parser.add_argument("--duration_in_ms", required=True, type=int, help="length of the capture in milliseconds")
    parser.add_argument("--log_dir", required=True, help="directory, or gs://… that XProf shows")
    parser.add_argument("--session_name", default="", help="name of the session (default: the time)")
    parser.add_argument("--host_tracer_level", type=int, default=2, help="0 to 3 (default: 2)")
    parser.add_argument("--device_tracer_level", type=int, default=1, help="0 or 1 (default: 1)")
    parser.add_argument("--python_tracer_level", type=int, default=1, help="0 or 1 (default: 1)")
    names = parser.add_mutually_exclusive_group()
    names.add_argument("--override_hostnames", default="", help="comma-separated names for the files, one per host")
    names.add_argument("--use_system_hostname", action="store_true", help="name the file after this machine")
    return parser


def _listed(text: str) -> list[str]:
    return [item.strip() for item in text.split(",")]


def _address(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host and not host.startswith("[") else f"{host}:{port}"


def _stems(options: argparse.Namespace, hosts: Sequence[str]) -> list[str] | None:
    if options.override_hostnames:
        return _listed(options.override_hostnames)
    if not options.use_system_hostname:
        return None
    if len(hosts) > 1:
        raise ConfigurationError(
            f"--use_system_hostname: names one file, and --hosts has {len(hosts)}; use --override_hostnames"
        )
    return [socket.gethostname()]


def _line(outcome: Outcome) -> str:
    detail = outcome.file if outcome.file and not outcome.message else outcome.message
    return f"{outcome.target.address}: {outcome.state.value} {outcome.reason.value}  {detail or ''}".rstrip()


def _print(line: str) -> None:
    write_text(f"{printable(line)}\n")


if __name__ == "__main__":
    sys.exit(main())
