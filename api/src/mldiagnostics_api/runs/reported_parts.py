"""The parts of a run's status that come from the reports of its processes."""

import math
from collections.abc import Container, Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from mldiagnostics.control_plane.report import MAX_METRICS, MAX_SESSIONS
from mldiagnostics.lifecycle.description import MAX_NOTES, MAX_TAG
from mldiagnostics.text.redaction import redact

from mldiagnostics_api.formats import moment
from mldiagnostics_api.reports.reported_goodput import ReportedGoodput
from mldiagnostics_api.reports.reported_run import ReportedHost, ReportedRun, ReportedSession
from mldiagnostics_api.reports.shown_configs import ShownConfigs
from mldiagnostics_api.runs.facts import RunFacts
from mldiagnostics_api.runs.sessions import NO_TIME
from mldiagnostics_api.v1alpha1 import (
    HostException,
    MLRunStatus,
    RunConfigs,
    RunGoodput,
    RunHosts,
    RunProgress,
    RunSession,
)
from mldiagnostics_api.v1alpha1.mlrun_status import MAX_ALIASES, MAX_EXCEPTIONS

_KEY: Final = 200
_TEXT: Final = 1024
_OF_PROGRAM: Final = "Program"


def reported_parts(previous: MLRunStatus, reported: ReportedRun) -> dict[str, Any]:
    """Return the fields of the status that the reports decide alone."""
    metrics = ((name[:_KEY], value) for name, value in reported.metrics.items() if value is not None)
    goodput = reported.goodput
    return {
        "progress": _progress(reported),
        "metrics": dict(sorted((name, value) for name, value in metrics if math.isfinite(value))[:MAX_METRICS]) or None,
        "goodput": _goodput(goodput, previous.goodput) if goodput else previous.goodput,
        "configs": _configs(reported.configs) if reported.configs != ShownConfigs() else previous.configs,
        "profile_sessions": _sessions(previous.profile_sessions or (), reported.sessions),
        "last_heartbeat_time": moment(reported.last_received),
        "aliases": list(reported.aliases[:MAX_ALIASES]) or None,
        "reported_name": reported.name or previous.reported_name,
        "reported_tags": [redact(tag)[:MAX_TAG] for tag in reported.tags] or previous.reported_tags,
        "reported_notes": redact(reported.notes)[:MAX_NOTES] or previous.reported_notes,
        "reported_storage": redact(reported.storage)[:_TEXT] or previous.reported_storage,
    }


def late_parts(previous: MLRunStatus, reported: ReportedRun | None) -> dict[str, object]:
    """Return the parts of a run that has ended which its last reports complete.

    A leader that has no newer report than the status changes nothing.
    """
    last = moment(reported.last_received) if reported else None
    if reported is None or last is None or last < (previous.last_heartbeat_time or last):
        return {}
    return {name: part for name, part in reported_parts(previous, reported).items() if part is not None}


def without_pods(reported: ReportedRun, gone: Container[str]) -> ReportedRun:
    """Return reports without the hosts whose pods have ended, given by uid."""
    kept = [host for host in reported.hosts if host.phase != "Active" or host.pod_uid not in gone]
    return reported if len(kept) == len(reported.hosts) else replace(reported, hosts=kept)


def reported_hosts(reported: ReportedRun | None, now: datetime) -> RunHosts:
    """Return the number of hosts that report, and the hosts that need attention."""
    if reported is None or (not reported.hosts and reported.aliases):
        return RunHosts()
    lost = [host for host in reported.hosts if now > host.lost_time]
    failed = [host for host in reported.hosts if host.phase == "Failed"]
    exceptions = [_exception(host, host.reason or "Failed", host.message) for host in failed]
    exceptions += [_exception(host, "Lost", "the process stopped reporting") for host in lost]
    return RunHosts(
        reporting=len(reported.hosts) - len(lost) - len(failed), exceptions=exceptions[:MAX_EXCEPTIONS] or None
    )


def run_hosts(previous: MLRunStatus, facts: RunFacts, now: datetime, *, ended: bool) -> RunHosts | None:
    """Return the hosts of a run; of an ended run those of its last moments."""
    before = previous.hosts or RunHosts()
    counted = before if ended and previous.hosts else reported_hosts(facts.reported, now)
    expected = facts.lifecycle.hosts if facts.lifecycle else None
    if expected is None:
        expected = (facts.reported.world_size if facts.reported else None) or before.expected
    if expected is None and counted.reporting is None:
        return None
    total = "?" if expected is None else str(expected)
    is_unknown = counted.reporting is None and facts.reported is not None
    restarts = before.restarts if ended or facts.restarts is None else facts.restarts
    summary = f"{'?' if is_unknown else counted.reporting or 0}/{total}"
    return counted.model_copy(update={"expected": expected, "summary": summary, "restarts": restarts or None})


def step_time_text(seconds: float) -> str:
    """Return a step time for people: `210 ms`, `2.35 s`, `90 s`."""
    if seconds < 1:
        return f"{seconds * 1000:.3g} ms"
    return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"


def _exception(host: ReportedHost, reason: str, message: str) -> HostException:
    return HostException(
        host=(host.pod or host.name or host.incarnation)[:253],
        rank=host.rank,
        slice=host.slice,
        node=host.node[:253] or None,
        reason=reason[:128],
        message=redact(message)[:1024] or None,
        last_report_time=moment(host.received),
    )


def _progress(reported: ReportedRun) -> RunProgress | None:
    seconds = reported.step_time_seconds
    if reported.step is None and seconds is None:
        return None
    known = seconds is not None and math.isfinite(seconds) and seconds >= 0
    return RunProgress(
        step=reported.step,
        step_time_seconds=float(f"{seconds:.4g}") if known and seconds is not None else None,
        step_time=step_time_text(seconds)[:32] if known and seconds is not None else None,
        last_step_time=moment(reported.progress_changed),
    )


def _goodput(account: ReportedGoodput, previous: RunGoodput | None) -> RunGoodput:
    ratio = None if account.goodput is None else round(min(max(account.goodput, 0.0), 1.0), 4)
    causes = sorted(account.unproductive.items(), key=lambda item: -item[1])[:64]
    return RunGoodput(
        ratio=ratio,
        summary=None if ratio is None else f"{100 * ratio:.1f}%",  # of the ratio that others read
        elapsed_seconds=round(max(account.elapsed, 0.0), 3),
        productive_seconds=round(max(account.productive, 0.0), 3),
        unproductive_seconds={name[:_KEY]: round(max(seconds, 0.0), 3) for name, seconds in causes} or None,
        disruptions=account.disruptions,
        as_of_time=moment(account.as_of, exact=True),
        start_up_seconds=previous.start_up_seconds if previous else None,
        ettr=None if account.ettr is None else round(min(max(account.ettr, 0.0), 1.0), 4),
        mttr_seconds=_rounded(account.mttr_seconds),
        mttf_seconds=_rounded(account.mttf_seconds),
    )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(max(seconds, 0.0), 3)


def _configs(configs: ShownConfigs) -> RunConfigs:
    return RunConfigs(**configs.sections, omitted=configs.omitted or None)


def _sessions(known: Iterable[RunSession], reported: Iterable[ReportedSession]) -> list[RunSession] | None:
    """Return the newest profiles; a report replaces an earlier one of a session."""
    sessions = {session.id: session for session in known}
    for each in reported:
        session = RunSession(
            id=each.id[:253],
            state=each.state[:64] or None,
            source=_OF_PROGRAM,
            directory=redact(each.directory)[:1024] or None,
            start_time=moment(each.start),
            stop_time=moment(each.stop),
        )
        before = sessions.get(session.id)
        if before is None or before.source == _OF_PROGRAM:
            sessions[session.id] = session
    newest = sorted(sessions.values(), key=lambda session: session.start_time or NO_TIME)
    return newest[-MAX_SESSIONS:] or None
