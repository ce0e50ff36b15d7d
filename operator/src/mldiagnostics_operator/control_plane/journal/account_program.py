"""The process that computes accounts of goodput, with a memory limit of its own.

`python -m mldiagnostics_operator.control_plane.journal.account_program VOLUME_ROOT JOURNAL_BYTES`

Each line of its input is a JSON object, and each with `place` is answered by one:

* `{"run": [namespace, run id], "place": directory, "until": seconds, "endsWithEvents": bool, "finished": bool}` is
  answered by `{"goodput": fields or null, "seconds": time it took}` or `{"error": text}`;
* `{"run": [namespace, run id]}` frees the memory of a run.

What a tenant reports decides how much memory and time an account takes, so the leader survives it only elsewhere.
"""

from __future__ import annotations

import json
import resource
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mldiagnostics.errors import LogMissing, MLDiagnosticsError
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.load_reports import recorded_by_cluster
from mldiagnostics.goodput.log import open_log
from mldiagnostics.goodput.report.build import bucket_name
from mldiagnostics.goodput.report.figures import reliability_of
from mldiagnostics.store.shared import shared_directory
from mldiagnostics_api.reports.reported_goodput import ReportedGoodput
from mldiagnostics_api.reports.run_key import RunKey

from mldiagnostics_operator.control_plane.journal.open_journals import OpenJournal, OpenJournals
from mldiagnostics_operator.control_plane.memory.budget import FairBudget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.goodput.account import Account, Bucket
    from mldiagnostics.goodput.report.figures import Reliability

OWN_BYTES: Final = 128 * 2**20
"""Memory beside the open journals: the program, and the journal that is being read."""
STACK_BYTES: Final = 512 * 1024
OUT_OF_MEMORY: Final = 77
"""Exit status."""
MAX_BUCKETS: Final = 64
"""The status of a run has no more."""
MAX_BUCKET_NAME: Final = 200


def main(volume_root: str, journal_bytes: int) -> int:
    """Answer requests until the input ends; return the exit status."""
    threading.stack_size(STACK_BYTES)
    limit, (_, most) = OWN_BYTES + journal_bytes, resource.getrlimit(resource.RLIMIT_DATA)
    limit = limit if most == resource.RLIM_INFINITY else min(limit, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    journals = OpenJournals(FairBudget(journal_bytes))
    with shared_directory(Path(volume_root)):
        for line in sys.stdin.buffer:
            try:
                answer = _answer(journals, json.loads(line))
            except MemoryError:
                return OUT_OF_MEMORY
            if answer is not None:
                sys.stdout.buffer.write(json.dumps(answer).encode() + b"\n")
                sys.stdout.buffer.flush()
    return 0


def _answer(journals: OpenJournals, request: dict[str, Any]) -> dict[str, Any] | None:
    key, start_s = RunKey(*request["run"]), time.monotonic()
    journal, directory = journals.take(key), request.get("place")
    if directory is None:
        return None
    try:
        journal = journal or OpenJournal(open_log(directory), History())
        goodput = _account(journal, directory, request["until"], ends_with_events=request["endsWithEvents"])
    except LogMissing:
        return {"goodput": None, "seconds": time.monotonic() - start_s}
    except (MLDiagnosticsError, OSError) as error:
        return {"error": str(error)}
    if not request["finished"]:
        journals.keep(key, journal, time.monotonic())
    return {"goodput": goodput and asdict(goodput), "seconds": time.monotonic() - start_s}


def _account(journal: OpenJournal, directory: str, until: float, *, ends_with_events: bool) -> ReportedGoodput | None:
    """Read the new lines of a journal, and return its account.

    Args:
        journal: The journal.
        directory: Its directory, which also has the record of the cluster.
        until: End of the account, in Unix seconds by the clock of the process that leads, which may be ahead.
        ends_with_events: No later events are kept, so the account ends with the last one.
    """
    journal.log.read_new(journal.history, datetime.fromtimestamp(until, UTC))
    moment = round(until * 1e6)
    cluster = recorded_by_cluster(directory)
    run = journal.history.of(moment)
    if ends_with_events and (last := run.last_event(moment)) is not None:
        moment = last
    if run.first_event is None or run.first_event > moment:
        return None
    losses = reliability_of(run, moment, cluster)
    return _goodput(run.account(moment), losses, attempts=len(run.attempts(moment)), as_of=moment / 1e6)


def _goodput(account: Account, losses: Reliability, *, attempts: int, as_of: float) -> ReportedGoodput:
    return ReportedGoodput(
        as_of=as_of,
        started=account.start / 1e6,
        elapsed=account.elapsed / 1e6,
        productive=account.productive / 1e6,
        unproductive=_seconds_by_bucket(account.unproductive),
        disruptions=account.disruptions,
        attempts=attempts,
        ettr=losses.ettr_with_queueing,
        mttr_seconds=losses.failures.recovery.total_s if losses.failures.recovery else None,
        mttf_seconds=losses.failures.mttf_s,
        last_step=account.last_step,
    )


def _seconds_by_bucket(unproductive: Mapping[Bucket, int]) -> dict[str, float]:
    """Return seconds by name.

    Custom types beyond the largest ones, or with a long name, are one.
    """
    lengths = Counter[str]()
    largest_first = sorted(unproductive.items(), key=lambda item: (item[0].custom != "", -item[1]))
    for place, (spent, length) in enumerate(largest_first, start=1):
        name = bucket_name(spent)
        is_kept = place < MAX_BUCKETS and len(name) <= MAX_BUCKET_NAME
        lengths[name if is_kept else spent.bucket.name] += length
    return {name: length / 1e6 for name, length in lengths.items()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
