"""`mldiag mcp`: runs, goodput and profiles for agents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from mldiagnostics_cli.commands.options import examples
from mldiagnostics_cli.commands.source_options import source_options

if TYPE_CHECKING:
    from mldiagnostics_cli.commands.source_options import SourceChoice


@click.command(
    epilog=examples(
        "mldiag mcp",
        "mldiag mcp --storage gs://bucket/runs",
        "mldiag mcp -n ml --allow-capture",
        "mldiag mcp --port 8426",
    )
)
@source_options
@click.option(
    "-p",
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Serve HTTP on 127.0.0.1, 0 for any port; default: standard input and output.",
)
@click.option("--allow-capture", is_flag=True, help="Add the tool that profiles running processes.")
def mcp(*, source: SourceChoice, port: int | None, allow_capture: bool) -> None:
    """Serve runs, goodput and profiles to an agent, by the Model Context Protocol.

    Each tool is a command of mldiag and has your rights. Answers are bounded. Without --allow-capture all tools only
    read. HTTP has no login: every user of this machine can call it, with your rights.

    It needs the extra mcp. Runs are found as by `mldiag runs`.
    """
    from mldiagnostics.extras import require

    require("mcp.server.mcpserver", extra="mcp", needed_for="mldiag mcp")
    from mldiagnostics_cli.mcp.server import serve

    serve(source, port=port, allows_capture=allow_capture)
