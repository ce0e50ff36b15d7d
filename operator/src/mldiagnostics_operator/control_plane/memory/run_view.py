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


def _hosts(processes: Iterable[ProcessMemory]) -> tuple[ReportedHost, ...]:
    """Return the newest process of each rank, and others that report the same rank."""
    kept: list[ReportedHost] = []
    newest: dict[int, list[ReportedHost]] = {}
    for process in processes:  # in order of attempts and arrival
        host = process.host
        if host.rank is None:
            kept = [each for each in kept if not _is_same_container(each, host)]
            kept.append(host)
            continue
        others = newest.get(host.rank, [])
        newest[host.rank] = [each for each in others if not _is_replaced(each, host)]
        newest[host.rank].append(host)
    for rank in sorted(newest):
        kept.extend(newest[rank])
    return tuple(kept)


def _is_same_container(older: ReportedHost, newer: ReportedHost) -> bool:
    """Return whether two processes without a rank ran in one container."""
    return (older.pod_uid, older.name) == (newer.pod_uid, newer.name) and _is_silent(older, newer)


def _is_replaced(older: ReportedHost, newer: ReportedHost) -> bool:
    same_pod = older.pod_uid == newer.pod_uid and older.name == newer.name
    return older.attempt < newer.attempt or same_pod or _is_silent(older, newer)


def _is_silent(older: ReportedHost, newer: ReportedHost) -> bool:
    return newer.received - older.received > max(SUPERSEDED_S, older.silent_s) or older.phase != "Active"


def _sessions(processes: Iterable[ProcessMemory]) -> tuple[ReportedSession, ...]:
    """Return the newest programmatic profiles, one of each id; the leader's facts win."""
    by_id: dict[str, ReportedSession] = {}
    for process in sorted(processes, key=lambda each: each.leader is not None):
        by_id |= {session.id: session for session in process.sessions}
    newest = sorted(by_id.values(), key=lambda session: (session.start or 0.0, session.id))
    return tuple(newest[-MAX_SESSIONS_OF_RUN:])
