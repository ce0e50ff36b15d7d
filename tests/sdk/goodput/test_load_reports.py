"""The plain summary: a log in, table or JSON out, and one line for each error."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import IO

import pytest
from mldiagnostics.goodput.__main__ import main
from mldiagnostics.goodput.load_reports import ReportQuery, read
from mldiagnostics.goodput.recording.recorder import GoodputRecorder
from mldiagnostics.goodput.report import GoodputReport, from_json
from mldiagnostics.goodput.snapshots import stored_history
from support.goodput.logs import spoil
from support.goodput.story import BEGIN, S, Story, eventful, finished, write_log

HOUR = 3600 * S


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_log(tmp_path_factory.mktemp("log") / "trainer.jsonl", eventful().events)


@pytest.fixture(scope="module")
def now() -> str:
    return str(eventful().clock / 1e6)


def reports(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[GoodputReport]:
    main([*arguments, "-o", "json"])
    return [from_json(json.loads(line)) for line in capsys.readouterr().out.splitlines()]


def error_of(capsys: pytest.CaptureFixture[str], *arguments: str, status: int) -> str:
    """Return the single line on standard error of a call that exits with `status`."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == status
    streams = capsys.readouterr()
    assert streams.out == ""
    assert streams.err.count("\n") == 1
    return streams.err


def test_a_table_of_a_log(capsys: pytest.CaptureFixture[str], log: Path, now: str) -> None:
    main([str(log), "--now", now])
    text = capsys.readouterr().out
    assert str(log) in text
    assert "\033" not in text
    assert all(len(line) <= 80 for line in text.splitlines())


def test_the_past_is_answered_as_it_was(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    (report,) = reports(capsys, str(log), "--now", str((BEGIN + 300 * S) / 1e6))
    assert report.cumulative.elapsed_s == 300
    assert report.disruptions == ()


def test_runs_of_one_log_are_distinguished(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    later = Story(BEGIN + HOUR)
    later.start()
    later.train(0, 30)
    log = write_log(tmp_path / "log.jsonl", finished().events, "first")
    write_log(log, later.events, "second")
    now = ("--now", str(later.clock / 1e6))
    (newest,) = reports(capsys, str(log), *now)
    assert (newest.run, newest.runs, newest.cumulative.last_step) == ("second", ("first", "second"), 30)
    (first,) = reports(capsys, str(log), *now, "--run", "first")
    assert (first.run, first.cumulative.last_step) == ("first", 120)
    every = read([str(log)], ReportQuery(now=later.clock, all_runs=True))
    assert [report.run for report, _ in every] == ["first", "second"]
    assert reports(capsys, str(log), *now, "--run", "fi") == [first]  # the beginning of an id is enough
    assert "its runs are: first, second" in error_of(capsys, str(log), *now, "--run", "third", status=2)


def test_what_is_ignored_is_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    garbage = '{"job_name": "trainer", "job_start_time": "soon"}\nnoise\n'
    log = write_log(tmp_path / "log.jsonl", finished().events, garbage=garbage)
    (report,) = reports(capsys, str(log))
    assert sum(report.ignored.values()) == 2
    main([str(log)])
    assert "ignored in the log" in capsys.readouterr().out


def test_the_log_of_a_recorder_is_found_by_its_names(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLDIAG_GOODPUT_LOG", str(tmp_path))
    recorder = GoodputRecorder("trainer", "goodput_trainer", logging_enabled=True)
    recorder.record_job_start_time(BEGIN / S)
    for step in range(3):
        recorder.record_step_start_time(step, BEGIN / S + 10 + step)
    recorder.close()
    now = ("--now", str(BEGIN / S + 60))
    (report,) = reports(capsys, "--job", "trainer", *now)
    assert report.cumulative.productive_s == 2
    (same,) = reports(capsys, "--job", "trainer", "--logger", "goodput_trainer", *now)
    assert replace(same, name="") == replace(report, name="")
    assert "elsewhere" in error_of(capsys, "--job", "trainer", "--logger", "elsewhere", *now, status=1)


def test_of_a_log_with_several_jobs_one_is_read(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.jsonl", finished().events)
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"job_name": "other", "job_start_time": BEGIN / S + 4e6}) + "\n")
    (trainer,) = reports(capsys, str(log), "--job", "trainer")
    (other,) = reports(capsys, str(log), "--job", "other")
    assert (trainer.steps.count, other.steps.count) == (120, 0)
    assert "several jobs; pass --job with one of other, trainer" in error_of(capsys, str(log), status=2)


def test_jobs_that_share_a_log_are_not_taken_for_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for job in ("a", "b"):
        recorder = GoodputRecorder(job, "any", logging_enabled=True, log=tmp_path)
        with recorder.job():
            pass
        recorder.close()
    assert "several jobs; pass --job with one of a, b" in error_of(capsys, str(tmp_path), status=2)
    (tmp_path / "run.json").write_text("{}")  # a run's directory has one job, under any name
    (report,) = reports(capsys, str(tmp_path))
    assert report.ended is not None


def test_invalid_arguments_are_reported(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    assert "'soon': not a moment" in error_of(capsys, str(log), "--now", "soon", status=2)
    assert "no log is given; pass the path or URL of a log, or --job" in error_of(capsys, status=2)


def test_the_help_of_load_reports_names_the_command_line_for_more(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "mldiag goodput" in capsys.readouterr().out


def test_unreadable_logs_are_reported(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "nowhere" in error_of(capsys, str(tmp_path / "nowhere"), status=1)
    empty = tmp_path / "empty.jsonl"
    empty.write_bytes(b"\0\xff\n")
    assert f"{empty}: no goodput events, and 1 invalid lines" in error_of(capsys, str(empty), status=1)


def test_of_a_log_of_other_jobs_the_jobs_are_listed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = write_log(tmp_path / "log.jsonl", finished().events)
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"job_name": "other\x1b[2J", "job_start_time": BEGIN / S}) + "\n")
    error = error_of(capsys, str(log), "--job", "nobody", status=1)
    assert f"--job nobody: {log} has no event of this job; its jobs are: other\\x1b[2J, trainer" in error


def test_the_logs_of_other_names_are_listed_where_a_job_has_none(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    recorder = GoodputRecorder("trainer", "goodput_trainer", logging_enabled=True)
    recorder.record_job_start_time()
    recorder.close()
    error = error_of(capsys, "--job", "nobody", status=1)
    root = f"{tmp_path}/mldiagnostics/goodput"
    assert f"no goodput log at {root}/goodput_nobody/nobody (the default)" in error
    assert f"other logs there: {root}/goodput_trainer/trainer" in error


def test_the_runs_and_logs_below_a_root_are_listed_with_their_commands(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for number, name in enumerate(("old", "new\x1b[2J")):
        (tmp_path / f"run {number}/records").mkdir(parents=True)
        document = {"v": 1, "run_id": f"run {number}", "name": name, "created": BEGIN / S + number}
        (tmp_path / f"run {number}/run.json").write_text(json.dumps(document))
    recorder = GoodputRecorder("trainer", "logger", logging_enabled=True, log=tmp_path / "goodput/logger/trainer")
    recorder.record_job_start_time()
    recorder.close()
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path)])
    assert ended.value.code == 1
    first, *listed = capsys.readouterr().err.splitlines()
    assert first.endswith(f"{tmp_path}: not a goodput log; 3 logs are below it:")
    command = "  python -m mldiagnostics.goodput "
    places = [shlex.quote(str(tmp_path / place)) for place in ("run 1", "run 0", "goodput/logger/trainer")]
    assert [line.partition("   # ")[0] for line in listed] == [command + place for place in places]
    assert [line.rpartition("  ")[2] for line in listed[:2]] == ["new\\x1b[2J", "old"]


def test_what_was_read_is_kept_for_the_next_call(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_history, "_SLOW_READ_S", -1.0)
    monkeypatch.setenv("ML_GOODPUT_CACHE_DIR", str(tmp_path / "cache"))
    log = write_log(tmp_path / "log.jsonl", finished().events)
    now = ("--now", str(finished().clock / 1e6))
    (first,) = reports(capsys, str(log), *now)
    spoil(log)
    assert reports(capsys, str(log), *now) == [first]
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"job_name": "other", "job_start_time": BEGIN / S}) + "\n")
    assert "several jobs; pass --job with one of other, trainer" in error_of(capsys, str(log), *now, status=2)


def test_before_the_first_event_there_is_nothing_to_tell(capsys: pytest.CaptureFixture[str], log: Path) -> None:
    error = error_of(capsys, str(log), "--now", str(BEGIN / S - 1), status=1)
    assert "starts at 2026-09-21 14:13:20 UTC, after 2026-09-21 14:13:19 UTC; pass a later --now" in error


def test_the_storage_of_runs_lists_them(tmp_path: Path) -> None:
    for number in range(25):
        document = {"v": 1, "runId": f"run-{number}", "name": "a\x1bb", "phase": "Completed", "created": float(number)}
        place = tmp_path / f"run-{number}" / "run.json"
        place.parent.mkdir()
        place.write_text(json.dumps(document))
    process = program(str(tmp_path))
    out, err = process.communicate(timeout=60)
    lines = err.decode().splitlines()
    assert (process.returncode, out, len(lines)) == (1, b"", 22)
    assert lines[0].endswith(f"{tmp_path}: not a goodput log; 25 logs are below it:")
    assert lines[1].startswith(f"  python -m mldiagnostics.goodput {shlex.quote(f'{tmp_path}/run-24')}   # ")
    assert lines[1].endswith(r"a\x1bb")
    assert lines[-1] == "  … and 5 more"


def program(
    *arguments: str, encoding: str = "utf-8", stdout: int | IO[bytes] = subprocess.PIPE
) -> subprocess.Popen[bytes]:
    source = str(Path(__file__).parents[3] / "sdk/src")
    return subprocess.Popen(
        [sys.executable, "-m", "mldiagnostics.goodput", *arguments],
        env={**os.environ, "PYTHONPATH": source, "PYTHONIOENCODING": encoding},
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def test_load_reports_runs_as_a_program(log: Path, now: str) -> None:
    out, err = program(str(log), "--now", now).communicate(timeout=60)
    assert b"goodput" in out
    assert err == b""


def test_a_reader_may_leave(log: Path, now: str) -> None:
    with program(str(log), "--now", now) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


def test_load_reports_writes_only_characters_of_the_terminal(log: Path, now: str, tmp_path: Path) -> None:
    named = tmp_path / "größe.jsonl"
    named.write_bytes(log.read_bytes())
    out, err = program(str(named), "--now", now, encoding="ascii").communicate(timeout=60)
    assert err == b""
    assert b"gr??e.jsonl  run 1" in out


def test_an_output_that_cannot_be_written_is_reported(log: Path, now: str) -> None:
    with Path("/dev/full").open("wb") as full:
        _, err = program(str(log), "--now", now, stdout=full).communicate(timeout=60)
    assert b"standard output: cannot be written" in err
    assert err.count(b"\n") == 1
    source = str(Path(__file__).parents[3] / "sdk/src")
    closed = subprocess.run(
        ["sh", "-c", '"$0" -m mldiagnostics.goodput "$@" >&-', sys.executable, str(log), "--now", now],
        env={**os.environ, "PYTHONPATH": source},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (closed.returncode, closed.stderr.count(b"\n")) == (2, 1)
    assert b"redirect it to a file" in closed.stderr
