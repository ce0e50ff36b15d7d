"""`mldiag doctor`: run all checks and print one line for each.

The exit code is 1 if a part is broken.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.text.terminal import printable
from mldiagnostics_kube.client.cluster import connect
from mldiagnostics_kube.client.failures import ClusterFailure

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.doctor.cluster import check_cluster
from mldiagnostics_cli.doctor.finding import DoctorFinding, State, broken, unknown
from mldiagnostics_cli.doctor.local import check_installation, check_storage
from mldiagnostics_cli.exit_codes import FAILED
from mldiagnostics_cli.output import has_colour, show, show_document
from mldiagnostics_cli.table import painted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mldiagnostics_kube.client.cluster_options import ClusterOptions


def diagnose(
    target: str | None, options: ClusterOptions, *, storage: str, storage_is_given: bool, output: OutputFormat
) -> None:
    """Check this machine and its cluster, and print the findings.

    Raises:
        ConfigurationError: The pod or workload does not exist.
        Exit: A part is broken.
    """
    findings = [*check_installation(), check_storage(storage, is_given=storage_is_given)]
    findings += asyncio.run(_check_cluster(target, options))
    if output in {OutputFormat.JSON, OutputFormat.YAML}:
        show_document([finding.to_json() for finding in findings], output)
    else:
        show("\n".join(_lines(findings)))
    if any(finding.state is State.BROKEN for finding in findings):
        raise click.exceptions.Exit(FAILED)


async def _check_cluster(target: str | None, options: ClusterOptions) -> list[DoctorFinding]:
    is_wanted = options.are_given or target is not None
    try:
        async with connect(options) as cluster:
            return await check_cluster(cluster, target)
    except ClusterFailure as failure:
        problem, _, remedy = str(failure).rpartition("; ")
        return [broken("cluster", problem, remedy)]
    except ConfigurationError as error:
        if is_wanted:
            raise
        return [unknown("cluster", f"not checked: {error}")]


_COLOURS = {"fine": "\x1b[32m", "broken": "\x1b[31m", "unknown": "\x1b[33m"}


def _lines(findings: Sequence[DoctorFinding]) -> Iterator[str]:
    """Yield a line for each finding, its remedy below it, and a summary."""
    width = max(len(finding.part) for finding in findings)
    for finding in findings:
        state = f"{finding.state:<7}"
        shown = painted(state, _COLOURS) if has_colour() else state
        yield f"{shown}  {finding.part:<{width}}  {printable(finding.message)}"
        if finding.remedy and finding.state is not State.FINE:
            yield f"{'':<9}{'':<{width}}  → {printable(finding.remedy)}"
    counts = {state: sum(finding.state is state for finding in findings) for state in State}
    yield ""
    yield ", ".join(f"{count} {state}" for state, count in counts.items() if count)
