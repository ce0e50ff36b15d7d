"""Only new lines of local logs are read, also after changes of their files."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from mldiagnostics.errors import ConfigurationError, LogUnreadable
from mldiagnostics.goodput.events.event import EventCode
from mldiagnostics.goodput.log import find_log, open_log
from mldiagnostics.goodput.log.blocks import MAX_LINE_BYTES
from mldiagnostics.goodput.recording.recorder import GoodputRecorder
from mldiagnostics.pipeline.records import Record, encode
from mldiagnostics.sinks.jsonl import LOCAL_SEGMENT_BYTES
from support.goodput.logs import NOW, EventCollector, events_in

if TYPE_CHECKING:
    from mldiagnostics.goodput.events.event import Event

T = 1_735_689_600.0
NOBODY = 65534


def step(number: int, *, job: str = "job") -> bytes:
    payload = {"job_name": job, "step_count": number, "step_start_time": T + number, "event_id": f"0123abcd-{number}"}
    return encode(Record("event", T + number, "goodput", payload=payload)).encode()


def head(run: str = "", rank: int = 0) -> bytes:
    return encode(Record("event", T, "segment", (1.0,), None, {"run": run}, rank)).encode()


def segment(log: Path, name: str = "a0-r0-0123abcd-00001") -> Path:
    (log / "records").mkdir(parents=True, exist_ok=True)
    return log / f"records/{name}.jsonl"


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    file, log, listener = segment(tmp_path), open_log(tmp_path), EventCollector()
    for number in range(5):
        with file.open("ab") as opened:
            opened.write((b"" if number else head()) + step(number))
        log.read_new(listener, NOW)
        log.read_new(listener, NOW)
        assert listener.steps() == list(range(number + 1))


def test_a_line_counts_when_it_is_whole(tmp_path: Path) -> None:
    file, log, listener = segment(tmp_path), open_log(tmp_path), EventCollector()
    for piece in (step(0) + step(1)[:50], step(1)[50:] + step(2)[:1], step(2)[1:]):
        with file.open("ab") as opened:
            opened.write(piece)
        log.read_new(listener, NOW)
    assert listener.steps() == [0, 1, 2]
    assert not listener.ignored


def test_files_come_later_and_each_has_its_process(tmp_path: Path) -> None:
    log, listener = open_log(tmp_path), EventCollector()
    for rank in range(3):
        segment(tmp_path, f"a0-r{rank}-0123abcd-00001").write_bytes(head("run", rank) + step(rank))
        log.read_new(listener, NOW)
    assert [(event.arg, event.rank, event.run) for event in listener.events] == [(n, n, "run") for n in range(3)]


def test_a_file_that_shrinks_is_read_again(tmp_path: Path) -> None:
    file, log, listener = segment(tmp_path), open_log(tmp_path), EventCollector()
    file.write_bytes(step(0) + step(1))
    log.read_new(listener, NOW)
    file.write_bytes(step(2))
    log.read_new(listener, NOW)
    assert listener.steps() == [0, 1, 2]


def test_a_full_file_is_left_alone_once_its_process_writes_another(tmp_path: Path) -> None:
    full, following = segment(tmp_path), segment(tmp_path, "a0-r0-0123abcd-00002")
    log, listener = open_log(tmp_path), EventCollector()
    metric = b'{"v":1,"kind":"metric"' + b" " * (MAX_LINE_BYTES - 32) + b"}\n"
    full.write_bytes(head() + step(0) + metric * (LOCAL_SEGMENT_BYTES // len(metric) + 1))
    for number, file in enumerate((full, following, full, following), 1):
        with file.open("ab") as opened:
            opened.write(step(number))
        log.read_new(listener, NOW)
    assert listener.steps() == [0, 1, 2, 4]  # nobody writes 3 where it is
    assert [record.payload["step_count"] for record in log.payloads(NOW)] == [0, 1, 3, 2, 4]


def test_a_small_file_may_grow_also_after_its_process_began_another(tmp_path: Path) -> None:
    files = segment(tmp_path), segment(tmp_path, "a0-r0-0123abcd-00002")
    log, listener = open_log(tmp_path), EventCollector()
    for number in range(6):
        with files[number % 2].open("ab") as opened:
            opened.write(step(number))
        log.read_new(listener, NOW)
    assert listener.steps() == list(range(6))


def test_a_line_without_end_is_no_line(tmp_path: Path) -> None:
    segment(tmp_path).write_bytes(step(0) + b"\xff" * (3 * MAX_LINE_BYTES) + b"\n" + step(1) + b"\x00" * 10)
    listener = events_in(tmp_path)
    assert listener.steps() == [0, 1]
    assert listener.ignored == {"unreadable line": 1}


def test_blocks_end_anywhere(tmp_path: Path) -> None:
    segment(tmp_path).write_bytes(head() + b"".join(map(step, range(5000))))
    assert events_in(tmp_path).steps() == list(range(5000))


def test_a_position_is_where_another_reader_goes_on(tmp_path: Path) -> None:
    file, first, second = segment(tmp_path), open_log(tmp_path), open_log(tmp_path)
    file.write_bytes(head("run", 3) + step(0))
    first.read_new(EventCollector(), NOW)
    with file.open("ab") as opened:
        opened.write(step(1))
    second.resume(first.position())
    events = events_in(second).events
    assert [(event.arg, event.rank, event.run) for event in events] == [(1, 3, "run")]


@pytest.mark.parametrize(
    "position",
    [
        [1, 0],
        [-1, "", 0, ""],
        [10**9, "", 0, ""],
        [3, "0a0a0a", 0, ""],
        [0, "0a", 0, ""],
        [3, "z", 0, ""],
        "x",
        None,
        [0, "", "0", ""],
    ],
)
def test_a_position_elsewhere_is_refused(tmp_path: Path, position: object) -> None:
    segment(tmp_path).write_bytes(step(0))
    with pytest.raises(ValueError, match="is not a position"):
        open_log(tmp_path).resume({str(segment(tmp_path)): position})
    with pytest.raises(ValueError, match="is not a position"):
        open_log(tmp_path).resume({str(tmp_path / "gone"): [5, "0a", 0, ""]})


def test_a_single_file_is_a_log(tmp_path: Path) -> None:
    file = tmp_path / "job_timeline.jsonl"
    file.write_bytes(b'{"job_name": "job", "job_start_time": 1735689600}\n')
    assert (
        events_in(file).pairs
        == events_in(f"file://{file}").pairs
        == events_in(tmp_path).pairs
        == [(EventCode.JOB_START, 0)]
    )


def test_jobs_in_one_directory_are_distinguished(tmp_path: Path) -> None:
    segment(tmp_path).write_bytes(step(0) + step(1, job="other"))
    assert events_in(open_log(tmp_path, job_name="other")).steps() == [1]
    assert events_in(open_log(tmp_path)).steps() == [0, 1]


def test_all_in_a_runs_directory_is_the_runs(tmp_path: Path) -> None:
    segment(tmp_path).write_bytes(step(0, job="run"))
    (tmp_path / "run.json").write_text("{}")
    assert events_in(open_log(tmp_path, job_name="job")).steps() == [0]


def test_what_was_logged_can_be_had_as_it_is(tmp_path: Path) -> None:
    segment(tmp_path).write_bytes(head() + step(0) + b"garbage\n" + step(1))
    log = open_log(tmp_path)
    events_in(log)
    assert [(record.payload["step_count"], record.logged) for record in log.payloads(NOW)] == [(0, T), (1, T + 1)]


@pytest.mark.parametrize(
    "make", [lambda _: None, lambda path: path.mkdir(), lambda path: (path / "records").mkdir(parents=True)]
)
def test_a_missing_log_says_where_it_was_looked_for(tmp_path: Path, make: object) -> None:
    make(tmp_path / "log")  # type: ignore[operator]
    with pytest.raises(LogUnreadable, match=rf"{tmp_path}/log: no goodput log.*MLDIAG_GOODPUT_LOG"):
        events_in(tmp_path / "log")


def test_a_forbidden_log_is_named(tmp_path: Path) -> None:
    segment(tmp_path).write_bytes(step(0))
    tmp_path.chmod(0)
    log, user = open_log(tmp_path), os.geteuid()
    os.seteuid(user or NOBODY)  # root may read everything
    try:
        with pytest.raises(LogUnreadable, match="Permission denied"):
            log.read_new(EventCollector(), NOW)
    finally:
        os.seteuid(user)
        tmp_path.chmod(0o700)


def test_a_root_is_no_log_but_there_are_some_below(tmp_path: Path) -> None:
    segment(tmp_path / "goodput/logger/job").write_bytes(step(0))
    segment(tmp_path / "run").write_bytes(step(0))
    with pytest.raises(LogUnreadable, match=rf"{tmp_path}/run has one; {tmp_path}/goodput/logger/job has one$"):
        events_in(tmp_path)


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    segment(tmp_path, "a").write_bytes(step(0))
    segment(tmp_path, "b").mkdir()
    segment(tmp_path, "c").symlink_to("gone")
    segment(tmp_path, "d").symlink_to("/dev/zero")
    os.mkfifo(segment(tmp_path, "e"))
    assert events_in(tmp_path).steps() == [0]


@pytest.mark.parametrize("place", ["/dev/null", "file/below"])
def test_what_can_hold_no_lines_is_no_log(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_bytes(step(0))
    with pytest.raises(LogUnreadable, match="no goodput log"):
        events_in(tmp_path / place)


def test_a_file_that_goes_while_others_are_read_is_passed_over(tmp_path: Path) -> None:
    for number in range(3):
        segment(tmp_path, str(number)).write_bytes(step(number))

    class Deleting(EventCollector):
        def add(self, event: Event) -> None:
            super().add(event)
            segment(tmp_path, "1").unlink(missing_ok=True)

        def extend(self, *columns: Any, **whose: Any) -> None:
            super().extend(*columns, **whose)
            segment(tmp_path, "1").unlink(missing_ok=True)

    log, listener = open_log(tmp_path), Deleting()
    log.read_new(listener, NOW)
    log.read_new(listener, NOW)
    assert listener.steps() == [0, 2]


def test_what_could_not_be_read_is_read_the_next_time() -> None:
    with tempfile.TemporaryDirectory() as folder:  # another user may list this directory
        path, user, listener = Path(folder), os.geteuid(), EventCollector()
        path.chmod(0o755)
        segment(path).write_bytes(step(0))
        segment(path).chmod(0)
        log = open_log(path)
        os.seteuid(user or NOBODY)  # root may read everything
        try:
            with pytest.raises(LogUnreadable, match=r"Permission denied: .*\.jsonl"):
                log.read_new(listener, NOW)
        finally:
            os.seteuid(user)
        segment(path).chmod(0o600)
        log.read_new(listener, NOW)
        assert listener.steps() == [0]


def test_recorder_and_reader_find_one_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_STORAGE", str(tmp_path))
    recorder = GoodputRecorder("my/job", "goodput_job", logging_enabled=True)
    recorder.record_job_start_time()
    recorder.close()
    assert events_in(find_log("my/job", "goodput_job")).pairs == [(EventCode.JOB_START, 0)]
    assert find_log("my/job", "goodput_job").startswith(f"{tmp_path}/goodput/goodput_job/my-job-")


def test_a_relative_log_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_log("job", "logger") == f"{tmp_path}/mldiagnostics/goodput/logger/job"
    assert find_log("job", "logger", "gs://bucket/log") == "gs://bucket/log"


@pytest.mark.parametrize("url", ["ftp://host/log", "file://host/log", "file://"])
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"is not a goodput log; pass a path"):
        open_log(url)
