"""`mldiag capture RUN` of processes outside a cluster, by the run's files."""

from __future__ import annotations

import socket
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import file_stem
from mldiagnostics.lifecycle.outcome import FINAL
from mldiagnostics.locations import DEFAULT_STORAGE
from mldiagnostics.runs.row_values import FieldReader

from mldiagnostics_cli.captures.by_address import conclude, prepare, record, show_targets
from mldiagnostics_cli.cluster.port_forward import LOCALHOST
from mldiagnostics_cli.output import note
from mldiagnostics_cli.sources import find, is_directory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.runs import RankRow
    from mldiagnostics.runs.run_record import RecordedRun
    from mldiagnostics_api.captures.targets import TargetFilter

    from mldiagnostics_cli.captures.cluster_target import TargetNarrowing
    from mldiagnostics_cli.captures.ending import CaptureEnd, CaptureWork
    from mldiagnostics_cli.captures.settings import CaptureSettings
    from mldiagnostics_cli.commands.options import OutputFormat
    from mldiagnostics_cli.interruption import Interruption


_NO_PORT: Final = "listens on no port; pass `on_demand_xprof=True` to `machinelearning_run`, or pass --port"


@dataclass(frozen=True, slots=True)
class ProfiledProcess:
    """One process of a run.

    Args:
        name: Rank and host, for messages.
        stem: Name of its trace, as in profiles that the program records.
        address: Host and port of its profiler; empty if it cannot be captured.
        problem: Why it cannot be captured.
    """

    name: str
    stem: str
    address: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class FilesOfRun:
    """A run as the user names it, and the root of its files.

    Args:
        run: Id of the run, the beginning of it, its name, or its directory.
        storage: Root of the runs; by default ./mldiagnostics, if it exists.
        are_typed: Whether the user says that the run is there, so that no cluster is contacted.
    """

    run: str
    storage: str | None
    are_typed: bool


def capture_here_or(
    in_cluster: CaptureWork,
    files: FilesOfRun,
    narrowing: TargetNarrowing,
    settings: CaptureSettings,
    output: OutputFormat,
    *,
    needs_cluster: Sequence[str],
) -> CaptureWork:
    """Return a capture of a run by its files, or in a cluster if they are not here.

    Args:
        in_cluster: Captures the run in a cluster: if its files are not here, or its processes are pods.
        files: The run.
        narrowing: Chosen processes.
        settings: Options of the capture.
        output: Requested format.
        needs_cluster: Given options that only captures in a cluster have.
    """

    async def work(interruption: Interruption) -> CaptureEnd:
        try:
            found = _find(files.run, files.storage)
        except ConfigurationError as missing:
            if files.are_typed or is_directory(files.run):
                raise
            try:
                return await in_cluster(interruption)
            except ConfigurationError as error:
                raise ConfigurationError(f"{missing} (in a cluster: {error})") from error
        if found is None:
            return await in_cluster(interruption)
        if needs_cluster:
            raise ConfigurationError(f"{needs_cluster[0]}: {files.run} does not run in pods; leave the option out")
        return await _capture(found, narrowing.filter(), settings, output, interruption=interruption)

    return work


def _find(run: str, storage: str | None) -> RecordedRun | None:
    """Return a run by its files; None if there is no root, or its processes are pods.

    Raises:
        ConfigurationError: The root has no such run, or several.
        StoreError: The root cannot be read.
    """
    if storage is None and not is_directory(run) and not Path(DEFAULT_STORAGE).is_dir():
        return None
    found = find(storage or DEFAULT_STORAGE, run)
    return None if any(each.pod_uid for each in found.ranks) else found


def processes_of(run: RecordedRun, chosen: TargetFilter, port: int | None, *, this_host: str) -> list[ProfiledProcess]:
    """Return the chosen processes of a run, by rank.

    Args:
        run: The run with its processes.
        chosen: Ranks, slices, nodes and their number.
        port: Port of processes that publish none.
        this_host: Name of this machine, whose processes are contacted at the loopback address.
    """
    return [_process(run, rank, port, this_host=this_host) for rank in run.ranks if _is_chosen(rank, chosen)][
        : chosen.limit
    ]


def _is_chosen(rank: RankRow, chosen: TargetFilter) -> bool:
    return (
        (chosen.ranks is None or rank.rank in chosen.ranks)
        and (chosen.slices is None or (rank.slice is not None and rank.slice in chosen.slices))
        and (chosen.nodes is None or rank.node in chosen.nodes)
    )


def _process(run: RecordedRun, rank: RankRow, port: int | None, *, this_host: str) -> ProfiledProcess:
    name, stem = f"rank {rank.rank} on {rank.host}", file_stem(rank.host, rank.rank if len(run.ranks) > 1 else None)
    if rank.phase in FINAL:
        return ProfiledProcess(name, stem, problem=f"has ended: {rank.reason or rank.phase}")
    published = rank.port
    if published is None and rank.incarnation == run.row.document.get("incarnation"):
        published = FieldReader(run.row.document).part("profiler").integer("port")  # of a server that others started
    port = port if published is None else published
    if port is None:
        return ProfiledProcess(name, stem, problem=_NO_PORT)
    return ProfiledProcess(name, stem, f"{LOCALHOST if rank.host == this_host else rank.host}:{port}")


async def _capture(
    run: RecordedRun,
    chosen: TargetFilter,
    settings: CaptureSettings,
    output: OutputFormat,
    *,
    interruption: Interruption,
) -> CaptureEnd:
    """Capture the processes of a run into its directory, and print their outcomes.

    Raises:
        ConfigurationError: No process can be captured, or the session exists.
        StoreError: The directory cannot be written. No process is contacted.
    """
    processes = processes_of(run, chosen, settings.port, this_host=socket.gethostname())
    reachable = [each for each in processes if each.address]
    if not reachable:
        raise ConfigurationError(f"{run.row.name}: {_why_none(run, processes)}")
    for each in processes:
        if each.problem:
            note(f"{each.name}  Skipped  {each.problem}")
    settings = replace(settings.into(run.row.directory), duration=settings.duration_ms(run.row.step_time_s))
    prepared = prepare([each.address for each in reachable], settings, [each.stem for each in reachable])
    if settings.dry_run:
        return show_targets(prepared, output)
    report = await record(prepared, interruption)
    return conclude(report, output, interruption, missing=len(processes) - len(reachable))


def _why_none(run: RecordedRun, processes: Sequence[ProfiledProcess]) -> str:
    if run.row.phase in FINAL:
        return f"the run has ended ({run.row.phase}); only processes that run can be captured"
    if not processes:
        return "no process of the run matches; `mldiag runs get` shows its hosts"
    return f"{processes[0].name} {processes[0].problem}"
