"""`mldiag capture` that goes on by itself, on the processes of a real run."""

from __future__ import annotations

import json
import signal
import subprocess
from typing import TYPE_CHECKING, Any

from mldiagnostics_cli.captures.by_run import FilesOfRun, capture_here_or
from mldiagnostics_cli.captures.cluster_target import TargetNarrowing
from mldiagnostics_cli.captures.recurrence import recurrence_of
from mldiagnostics_cli.captures.recurrence_arguments import RecurrenceArguments
from mldiagnostics_cli.captures.recurrence_record import RecurrenceRecord
from mldiagnostics_cli.captures.repetition import repeat
from mldiagnostics_cli.captures.run_samples import RunSamples
from mldiagnostics_cli.captures.settings import CaptureSettings
from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.exit_codes import INTERRUPTED
from mldiagnostics_cli.interruption import run_interruptibly
from support.programs.processes import eventually
from support.programs.profiled_runs import RUN, end, profiled_run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from mldiagnostics_cli.captures.ending import CaptureEnd
    from mldiagnostics_cli.interruption import Interruption
    from support.programs.command_line import CommandLine
    from support.servers.profiler_process import ProfilerProcess

SHORT = ("--storage", "runs", "--duration", "10ms", "--no-diagnosis")
LIMIT_S = 60


def records(folder: Path) -> list[dict[str, Any]]:
    """Return the records of the sessions that have a reason."""
    files = sorted((folder / "runs" / RUN / "plugins/profile").glob("*/capture.json"))
    return [document for document in (json.loads(file.read_text()) for file in files) if "reason" in document]


def started(mldiag: CommandLine, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [mldiag.script, "capture", "trainer", *SHORT, *arguments],
        cwd=mldiag.folder,
        env=mldiag.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_slot_is_captured_once_over_restarts_until_the_run_ends(mldiag: CommandLine, server: ProfilerProcess) -> None:
    with profiled_run(mldiag.folder, server.port) as processes:
        with started(mldiag, "--every", "6h") as first:
            eventually(lambda: records(mldiag.folder))
            first.send_signal(signal.SIGTERM)
            first.communicate(timeout=LIMIT_S)
        with started(mldiag, "--every", "6h") as second:
            assert second.stderr
            assert second.stderr.readline().startswith("Slots: ")  # it has the record
            refused = mldiag.failure("capture", "trainer", *SHORT, "--every", "6h")
            end(processes)
            _, remarks = second.communicate(timeout=LIMIT_S)
    assert first.returncode == INTERRUPTED
    assert (second.returncode, "The run has ended (Completed)" in remarks) == (0, True), remarks
    assert refused.startswith("another `mldiag capture` with this target and these times runs")
    [record] = records(mldiag.folder)
    assert record["reason"].startswith("the slot of 20")


def test_a_dry_run_shows_what_it_would_do_and_ends(mldiag: CommandLine, server: ProfilerProcess) -> None:
    with profiled_run(mldiag.folder, server.port):
        ended = mldiag.run("capture", "trainer", *SHORT, "--every", "6h", "--max-per-day", "2", "--dry-run")
    assert ended.code == 0, ended.err
    assert "Slots: " in ended.err
    assert "Budget: at most 2 in 24 hours" in ended.err
    assert "127.0.0.1" in ended.out
    assert records(mldiag.folder) == []


def test_triggers_need_the_files_of_a_run(mldiag: CommandLine) -> None:
    message = mldiag.failure("capture", "10.0.0.7:9999", "--trigger", "Hanging", code=64)
    assert message.startswith("--trigger: follows the files of one run")
    message = mldiag.failure("capture", "10.0.0.7:9999", "--max-per-day", "3", code=64)
    assert message.startswith("--max-per-day: no --every, --cron or --trigger is given")


def test_a_host_that_is_slower_than_the_others_is_captured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ProfilerProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = CaptureSettings(duration=10)
    files = FilesOfRun("trainer", "runs", are_typed=True)
    now = [1_790_000_000.0]

    def clock() -> float:
        now[0] += 10  # the settling time passes in a few looks
        return now[0]

    with profiled_run(tmp_path, server.port, 0, 0, step_s=(0.05, 0.05, 0.15)) as processes:
        once = capture_here_or(_in_no_cluster, files, TargetNarrowing(), settings, OutputFormat.TABLE, needs_cluster=())

        async def work(interruption: Interruption) -> CaptureEnd:
            captured = await once(interruption)
            end(processes)  # the run ends, and with it the repetition
            return captured

        def repeated(record: RecurrenceRecord) -> CaptureEnd:
            rules = recurrence_of(RecurrenceArguments(triggers=("StepTimeSpread",)))
            samples = RunSamples("trainer", "runs")
            return run_interruptibly(
                lambda interruption: repeat(work, rules, record, samples, interruption, clock=clock, look_s=0.01)
            )

        with RecurrenceRecord.opened(["t"], now[0], directory=tmp_path / "state") as record:
            repeated(record)
    [session] = records(tmp_path)
    assert session["reason"].startswith("StepTimeSpread: the steps of rank 2 take ")
    assert session["reason"] in capsys.readouterr().err


async def _in_no_cluster(_: Interruption) -> CaptureEnd:
    raise AssertionError("the files of the run are here")
