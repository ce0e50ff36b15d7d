"""Logs in a bucket, through Google's client and a real emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.errors import LogUnreadable
from mldiagnostics.goodput.log import open_log
from mldiagnostics.goodput.recording.recorder import GoodputRecorder
from mldiagnostics.store import open_store
from support.goodput.logs import NOW, EventCollector, events_in

if TYPE_CHECKING:
    from pathlib import Path

    from support.servers.emulator_faults import FaultyProxy


def record(log: str, *steps: int, job: str = "job") -> None:
    recorder = GoodputRecorder(job, "goodput_job", logging_enabled=True, log=log)
    for step in steps:
        recorder.record_step_start_time(step)
    recorder.close()


def test_objects_are_read_as_they_come(bucket_url: str) -> None:
    url = f"{bucket_url}/job/"
    log, listener = open_log(url), EventCollector()
    for number in range(3):
        record(url, number)
        log.read_new(listener, NOW)
        log.read_new(listener, NOW)
        assert listener.steps() == list(range(number + 1))
    # S3 and Azure know the second of an object, so those of several processes in one second have no order.
    assert sorted(entry.payload["step_count"] for entry in log.payloads(NOW)) == [0, 1, 2]


@pytest.mark.parametrize("medium", ["bucket", "disk"])
def test_a_file_that_a_longer_one_replaces_while_the_log_is_read_costs_no_event(
    gcs_bucket: str, tmp_path: Path, medium: str
) -> None:
    url = f"gs://{gcs_bucket}/job" if medium == "bucket" else str(tmp_path)
    store = open_store(url)
    lines = [b'{"step_count": %d, "step_start_time": 2e9}\n' % number for number in range(3)]
    store.put("records/a-00001.jsonl", lines[0])
    store.put("records/b-00001.jsonl", lines[1])
    reading = open_log(url).payloads(NOW)
    first = next(reading).payload["step_count"]
    other = "b" if first == 0 else "a"
    store.put(f"records/{other}-00002.jsonl", lines[1 - first] + lines[2])
    store.delete(f"records/{other}-00001.jsonl")
    assert sorted([first, *(entry.payload["step_count"] for entry in reading)]) == [0, 1, 2]


def test_a_position_is_which_objects_were_read(gcs_bucket: str) -> None:
    url = f"gs://{gcs_bucket}/logs/job"
    record(url, 0)
    first, second, listener = open_log(url), open_log(url), EventCollector()
    first.read_new(EventCollector(), NOW)
    record(url, 1)
    second.resume(first.position())
    second.read_new(listener, NOW)
    assert listener.steps() == [1]
    with pytest.raises(ValueError, match="not a list of objects"):
        second.resume({"objects": [1]})


def test_an_object_whose_end_was_cut_off_is_read_as_far_as_it_goes(gcs_bucket: str) -> None:
    url = f"gs://{gcs_bucket}/logs/job"
    record(url, *range(3000))
    store = open_store(url)
    [entry] = store.list()
    with store.open(entry.key) as file:
        whole = file.read()
    store.put("records/cut.jsonl", whole[:-10])
    listener = events_in(url)
    assert sorted(listener.steps()) == sorted([*range(3000), *range(2999)])
    assert listener.ignored == {"unreadable line": 1}


def test_other_jobs_are_passed_over_but_in_a_runs_directory(gcs_bucket: str) -> None:
    url = f"gs://{gcs_bucket}/run"
    record(url, 1)
    record(url, 2, job="other")
    assert events_in(open_log(url, job_name="other")).steps() == [2]
    open_store(url).put("run.json", b"{}")
    assert sorted(events_in(open_log(url, job_name="other")).steps()) == [1, 2]


def test_one_object_may_be_named(gcs_bucket: str) -> None:
    open_store(f"gs://{gcs_bucket}/a").put("job_timeline.jsonl", b'{"step_count": 3, "step_start_time": 2e9}\n')
    assert (
        events_in(f"gs://{gcs_bucket}/a/job_timeline.jsonl").steps() == events_in(f"gs://{gcs_bucket}/a").steps() == [3]
    )


def test_a_recorder_may_be_given_a_name_like_that_of_an_object(gcs_bucket: str) -> None:
    record(f"gs://{gcs_bucket}/a/log.jsonl", 3)
    assert events_in(f"gs://{gcs_bucket}/a/log.jsonl").steps() == [3]


def test_a_missing_log_says_where_it_was_looked_for(gcs_bucket: str) -> None:
    with pytest.raises(LogUnreadable, match=f"gs://{gcs_bucket}/nothing: no goodput log; it has no records"):
        events_in(f"gs://{gcs_bucket}/nothing")
    with pytest.raises(LogUnreadable, match="gs://no-such-bucket/log: cannot read the goodput log: "):
        events_in("gs://no-such-bucket/log")
    with pytest.raises(LogUnreadable, match=r"a/b\.jsonl: cannot read the goodput log: "):
        events_in(f"gs://{gcs_bucket}/a/b.jsonl")


def test_a_forbidden_log_is_named(gcs_faults: FaultyProxy, gcs_bucket: str) -> None:
    gcs_faults.otherwise = 403
    with pytest.raises(LogUnreadable, match=f"gs://{gcs_bucket}/log: cannot read the goodput log: "):
        events_in(f"gs://{gcs_bucket}/log")
