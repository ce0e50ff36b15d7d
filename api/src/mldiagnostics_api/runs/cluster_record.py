"""The record of start-up and causes that the operator keeps beside a run.

`mldiagnostics.goodput` joins it to the account of the run.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from mldiagnostics.goodput.report.cluster_record import STAGES, VERSION
from mldiagnostics.text.timestamps import END_OF_TIME_S

from mldiagnostics_api.disruptions import goodput_name
from mldiagnostics_api.runs.observation import start_up_seconds
from mldiagnostics_api.v1alpha1 import MLRunStatus, RunAttempt

MAX_RECORDED: Final = 1024
"""Attempts in a record; the oldest leave first. The status has the last 16."""
_MAX_NUMBER: Final = 2**31 - 1
_MAX_TEXT: Final = 1024


def cluster_record(run_id: str, namespace: str, status: MLRunStatus) -> Mapping[str, Any] | None:
    """Return the record of a run; None if the cluster shows nothing of it yet.

    Args:
        run_id: Id of the run.
        namespace: Its namespace; by both, the files of a run are recognised before they are deleted.
        status: Status of the run.
    """
    attempts = [_attempt(attempt) for attempt in status.attempts or ()]
    if not any("cause" in attempt or "startUpSeconds" in attempt for attempt in attempts):
        return None
    first = (status.attempts or [RunAttempt(attempt=0)])[0]
    created = first.start_up.created_time if first.start_up and first.attempt == 0 else None
    record = {"v": VERSION, "runId": run_id, "namespace": namespace, "attempts": attempts}
    return record | ({"created": created.timestamp()} if created else {})


def merged_record(earlier: Mapping[str, Any], newer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a record with the attempts of both; of one attempt the newer values.

    An attempt that was interrupted has several entries, which differ by their start. A record of another run or of
    another version is left out, and so is all that `cluster_record` does not write: users can write the directory.
    """
    if (earlier.get("v"), earlier.get("runId")) != (newer["v"], newer["runId"]):
        return newer
    numbers = {attempt["attempt"] for attempt in newer["attempts"]}
    attempts = earlier.get("attempts")
    valid = filter(None, map(_valid_attempt, attempts if isinstance(attempts, list) else ()))
    kept = [each for each in valid if "started" in each or each["attempt"] not in numbers]
    known = {(each["attempt"], each.get("started", 0.0)): each for each in (*kept, *newer["attempts"])}
    created = {"created": earlier["created"]} if _is_seconds(earlier.get("created")) else {}
    return {**created, **newer, "attempts": [known[attempt] for attempt in sorted(known)][-MAX_RECORDED:]}


def last_change(status: MLRunStatus) -> datetime | None:
    """Return the latest time of the last attempt; None without one."""
    last = (status.attempts or [RunAttempt(attempt=0)])[-1]
    start_up = [] if last.start_up is None else [time for _, time in last.start_up if time is not None]
    return max((time for time in (last.start_time, last.end_time, *start_up) if time is not None), default=None)


def _valid_attempt(document: Any) -> dict[str, Any] | None:
    """Return the parts of an attempt that `_attempt` writes; None for another value."""
    if not isinstance(document, dict) or not _is_seconds(document.get("started", 0)):
        return None
    number, stages = document.get("attempt"), document.get("startUpSeconds")
    if type(number) is not int or not 0 <= number <= _MAX_NUMBER:
        return None
    times = {key: document[key] for key in ("started", "ended") if _is_seconds(document.get(key))}
    texts = {key: document[key][:_MAX_TEXT] for key in ("cause", "message") if isinstance(document.get(key), str)}
    known = {key: stages[key] for key in STAGES if _is_seconds(stages.get(key))} if isinstance(stages, dict) else {}
    return {"attempt": number, **times, **texts, **({"startUpSeconds": known} if known else {})}


def _is_seconds(value: Any) -> bool:
    return type(value) in {int, float} and 0 <= value <= END_OF_TIME_S


def _attempt(attempt: RunAttempt) -> dict[str, Any]:
    record: dict[str, Any] = {"attempt": attempt.attempt}
    if attempt.start_time is not None:
        record["started"] = attempt.start_time.timestamp()
    if attempt.end_time is not None:
        record["ended"] = attempt.end_time.timestamp()
    if attempt.cause:
        record |= {"cause": goodput_name(attempt.cause), "message": attempt.cause_message or ""}
    if stages := start_up_seconds(attempt):
        record["startUpSeconds"] = stages
    return record
