"""`mldiag capture`: profile hosts by their addresses."""

from __future__ import annotations

from typing import Any

import click

from mldiagnostics_cli.commands.options import OutputFormat, examples, output_option, parsed

__all__ = ["capture"]

DEFAULT_PORT = 9999
"""Port of the profiler server where an address has none: the one of the operator and of the SDK."""

DEFAULT_DIRECTORY = "profiles"


def _parse_duration(text: str) -> int:
    from mldiagnostics_cli.captures.arguments import milliseconds

    return milliseconds(text)


@click.command(
    epilog=examples(
        "mldiag capture localhost:9999",
        "mldiag capture host-0 host-1 --duration 500ms --log-directory gs://bucket/profiles",
        "mldiag capture --file hosts.txt --dry-run",
    )
)
@click.argument("address", nargs=-1)
@click.option(
    "-f",
    "--file",
    "files",
    multiple=True,
    type=click.Path(),
    metavar="FILE",
    help="File with an address in each line, - for standard input; may be repeated.",
)
@click.option(
    "-l",
    "--log-directory",
    metavar="DIR|URL",
    default=DEFAULT_DIRECTORY,
    show_default=True,
    help="Log directory of XProf: a directory or gs://bucket/prefix.",
)
@click.option(
    "-d",
    "--duration",
    metavar="TIME",
    default="2s",
    show_default=True,
    callback=parsed(_parse_duration),
    help="Length of the recording, such as 500ms or 2s.",
)
@click.option(
    "-p",
    "--port",
    type=click.IntRange(1, 65535),
    metavar="PORT",
    default=DEFAULT_PORT,
    show_default=True,
    help="Port of addresses without one.",
)
@click.option("--session", metavar="NAME", help="Name of the session; by default date, time and a random suffix.")
@click.option("--host-tracer", type=click.IntRange(0, 3), metavar="LEVEL", default=2, show_default=True, help="0 to 3.")
@click.option("--device-tracer", type=click.IntRange(0, 1), metavar="LEVEL", default=1, show_default=True, help="0, 1.")
@click.option("--python-tracer", type=click.IntRange(0, 1), metavar="LEVEL", default=0, show_default=True, help="0, 1.")
@click.option(
    "--allow-old-server",
    is_flag=True,
    help="Capture jaxlib < 0.9 too, which may freeze its process without TensorFlow.",
)
@click.option("--dry-run", is_flag=True, help="Only show the hosts; none is contacted.")
@output_option()
def capture(
    *, address: tuple[str, ...], files: tuple[str, ...], port: int, output: OutputFormat, **options: Any
) -> None:
    """Profile running processes on all hosts at the same moment, into one XProf session.

    ADDRESS is HOST or HOST:PORT of a profiler server, such as that of jax.profiler.start_server. Ctrl-C stops the
    recordings and keeps what was recorded; a second one ends at once.

    Exit codes: 0 all hosts were captured, 2 a part of them, 1 none.
    """
    from mldiagnostics_cli.captures.arguments import read_addresses
    from mldiagnostics_cli.captures.by_address import CaptureSettings, capture_addresses

    capture_addresses(read_addresses(address, files, port=port), CaptureSettings(**options), output)
