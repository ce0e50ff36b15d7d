"""The view of a run from the reports of its processes; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics_api.reports.reported_run import ReportedRun, ReportedSession

from mldiagnostics_operator.control_plane.limits import MAX_SESSIONS_OF_RUN, SUPERSEDED_S
from mldiagnostics_operator.control_plane.memory.process_memory import LeaderFacts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mldiagnostics_api.reports.reported_goodput import ReportedGoodput
    from mldiagnostics_api.reports.reported_run import ReportedHost
    from mldiagnostics_api.reports.run_key import RunKey
    from mldiagnostics_api.reports.shown_configs import ShownConfigs

    from mldiagnostics_operator.control_plane.memory.process_memory import PeerFacts, ProcessMemory


def reported_run(
    key: RunKey,
    processes: Iterable[ProcessMemory],
    peer: PeerFacts,
    *,
    revision: int,
    first_received: float,
    configs: ShownConfigs,
    left_out: Sequence[str],
    goodput: ReportedGoodput | None,
    events_until: float,
) -> ReportedRun:
    """Return what is known about a run; the newest process that leads reports for it.

    Args:
        key: The run.
        processes: Its processes, in any order.
        peer: Facts from the peer's client, where no process reports them.
        revision: Number of the view.
        first_received: When the first report arrived, in Unix seconds.
        configs: The newest configurations.
        left_out: Parts of the newest reports that were not kept.
        goodput: The newest account.
        events_until: Moment up to which the journal has all goodput events.
    """
    ordered = sorted(processes, key=lambda each: each.order)
    leaders = [each for each in ordered if each.leader]
    process = leaders[-1] if leaders else None
    leader = process.leader if process and process.leader else LeaderFacts()
    host = process.host if process else None
    return ReportedRun(
        key=key,
        revision=revision,
        name=leader.name or peer.name,
        group=leader.group,
        tags=leader.tags,
        notes=leader.notes,
        storage=leader.storage or peer.storage,
        aliases=peer.aliases,
        attempt=max((each.host.attempt for each in ordered), default=0),
        world_size=process.world_size if process else None,
        phase=host.phase if host else peer.phase,
        reason=host.reason if host else "",
        message=host.message if host else "",
        step=host.step if host else None,
        step_time_seconds=host.step_time_seconds if host else None,
        progress_changed=host.changed if host else None,
        metrics=leader.metrics,
        configs=configs,
        sessions=_sessions(ordered),
        started=leader.started,
        ended=leader.ended if host else peer.ended,
        first_received=first_received,
        last_received=max((peer.received, *(each.host.received for each in ordered)), default=first_received),
        hosts=_hosts(ordered),
        goodput=goodput,
        left_out=left_out,
        events_until=events_until,
    )


def _hosts(processes: Sequence[ProcessMemory]) -> tuple[ReportedHost, ...]:
    """Return the newest process of each rank, and others that report the same rank.

    A process without a rank is compared with those of its container alone. Each takes the same time, however many
    there are.
    """
    kept: list[ReportedHost] = []
    latest: dict[int | tuple[str, str], ReportedHost] = {}
    """Of the newer hosts, the one with the latest report, by rank or container."""
    attempts: dict[int, int] = {}
    containers = set[tuple[int, str, str]]()
    for process in reversed(processes):  # in order of attempts and arrival
        host = process.host
        place = (host.pod_uid, host.name) if host.rank is None else host.rank
        newer = latest.get(place)
        is_replaced = newer is not None and _is_silent(host, newer)
        if host.rank is not None:
            container = host.rank, host.pod_uid, host.name
            is_older_attempt = host.attempt < attempts.setdefault(host.rank, host.attempt)
            is_replaced = is_replaced or is_older_attempt or container in containers
            containers.add(container)
        if not is_replaced:
            kept.append(host)
        if newer is None or host.received > newer.received:
            latest[place] = host
    kept.reverse()
    return tuple(sorted(kept, key=lambda host: (host.rank is not None, host.rank or 0)))


def _is_silent(older: ReportedHost, newer: ReportedHost) -> bool:
    return newer.received - older.received > max(SUPERSEDED_S, older.silent_s) or older.phase != "Active"


def _sessions(processes: Iterable[ProcessMemory]) -> tuple[ReportedSession, ...]:
    """Return the newest programmatic profiles, one of each id; the leader's facts win."""
    by_id: dict[str, ReportedSession] = {}
    for process in sorted(processes, key=lambda each: each.leader is not None):
        by_id |= {session.id: session for session in process.sessions}
    newest = sorted(by_id.values(), key=lambda session: (session.start or 0.0, session.id))
    return tuple(newest[-MAX_SESSIONS_OF_RUN:])
