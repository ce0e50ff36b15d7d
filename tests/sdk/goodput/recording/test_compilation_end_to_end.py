"""A JAX job with Orbax, killed and begun again three times: its account beside the diary that it kept itself."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime, timezone
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import pytest
from mldiagnostics.goodput.ledger.history import History
from mldiagnostics.goodput.log import open_log
from mldiagnostics.monitoring import GCPOptions, GoodputMonitor
from mldiagnostics.runs import read_records
from support.goodput.jobs import Job
from support.programs.processes import eventually

if TYPE_CHECKING:
    from mldiagnostics.goodput.account import Account, Disruption
    from mldiagnostics.pipeline.records import Record
    from support.goodput.jobs import Diary

pytestmark = pytest.mark.peers

TOLERANCE_S = 0.05
"""A few thousandths are usual; a machine that others use may hold a process up between the diary and the recorder."""

LAG_S, STEP_S = 3.0, 1.0
"""A monitor knows what is in the log, and so what was true up to three seconds before, within a step."""

HUNG, KILLED, TERMINATED, FINISHED = range(4)
HANG_AT, KILL_AT, TERMINATE_AT, STEPS = 14, 19, 22, 27
WASTE = "WASTED_PROGRESS_FROM_DISRUPTION"
LOST = {WASTE, "INFRASTRUCTURE_RECOVERY_FROM_DISRUPTION"}


class Reader:
    """Reads the log of a job again and again, as a monitor does."""

    def __init__(self, job: Job) -> None:
        self._history, self._log = History(), open_log(job.log)

    def view(self) -> Any:
        now = datetime.now(timezone.utc)
        self._log.read_new(self._history, now)
        return self._history.of(self.now)

    @property
    def now(self) -> int:
        return round(time.time() * 1e6)


@dataclass(frozen=True)
class Course:
    """The result of the job: its diary, its account at the end and while it hung, and the records of its monitor."""

    diary: Diary
    view: Any
    now: int
    hanging: Account
    monitored: list[Record]

    def account(self, attempt: int) -> dict[str, float]:
        """Seconds of an attempt by bucket, until the next one or the end; productive time is ""."""
        attempts = self.diary.attempts
        end = micros(self.diary.first("begin", attempt + 1).t) if attempt + 1 < len(attempts) else None
        sums = self.view.account(self.now, start=micros(self.diary.first("begin", attempt).t), end=end)
        assert sums.productive + sum(sums.unproductive.values()) == sums.elapsed
        spent = {custom or bucket.name: us / 1e6 for (bucket, custom), us in sums.unproductive.items()}
        return {"": sums.productive / 1e6, **spent}


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Course:
    job = Job(tmp_path_factory.mktemp("job"), STEPS)
    reader = Reader(job)
    exports = str(tmp_path_factory.mktemp("exports"))
    nowhere = GCPOptions(enable_gcp_goodput_metrics=False, enable_gcp_step_deviation_metrics=False)
    monitor = GoodputMonitor(
        "goodput",
        "goodput",
        tensorboard_dir="",
        upload_interval=1,
        monitoring_enabled=True,
        gcp_options=nowhere,
        log=job.log,
        exports=f"jsonl:{exports}",
    )
    monitor.start_goodput_uploader()
    with job.attempt(hang_at=HANG_AT) as process:
        job.wait_for_step(HANG_AT, process)
        eventually(lambda: (reader.view().open_step(reader.now) or (0,))[0] == HANG_AT)
        hanging = reader.view().account(reader.now)
        process.kill()
    # A program that went on could end before this process kills it.
    with job.attempt(hang_at=KILL_AT) as process:
        job.wait_for_step(KILL_AT, process)
        process.kill()
    with job.attempt(hang_at=TERMINATE_AT) as process:
        job.wait_for_step(TERMINATE_AT, process)
        process.terminate()
        assert process.wait(60) == -15
    with job.attempt() as process:
        code = process.wait(120)
    monitor.stop_goodput_uploader()
    assert code == 0, job.out
    monitored = list(read_records(exports, "goodput", kinds={"metric"}))
    return Course(job.diary, reader.view(), reader.now, hanging, monitored)


def micros(t: float) -> int:
    return round(t * 1e6)


@pytest.mark.parametrize("attempt", [HUNG, TERMINATED, FINISHED])
def test_each_attempt_is_accounted_for_as_its_diary_says(course: Course, attempt: int) -> None:
    reported, true = course.account(attempt), course.diary.spent(attempt)
    for bucket in reported.keys() | true.keys():
        assert reported.get(bucket, 0) == pytest.approx(true.get(bucket, 0), abs=TOLERANCE_S), bucket or "productive"


def test_a_process_that_is_killed_takes_its_last_second_along(course: Course) -> None:
    reported, true = course.account(KILLED), course.diary.spent(KILLED)
    for bucket in (reported.keys() | true.keys()) - LOST:
        assert reported.get(bucket, 0) == pytest.approx(true.get(bucket, 0), abs=TOLERANCE_S), bucket or "productive"
    lost = [sum(spent.get(bucket, 0) for bucket in LOST) for spent in (reported, true)]
    assert lost[0] == pytest.approx(lost[1], abs=TOLERANCE_S)
    steps = [step.t for step in course.diary.steps(KILLED)]
    late = max(following - step for step, following in pairwise(steps))  # a loaded machine flushes as late as it trains
    assert true[WASTE] - 1 - late - TOLERANCE_S < reported.get(WASTE, 0) < true[WASTE] + TOLERANCE_S


def test_all_of_it_is_the_whole_life_of_the_job(course: Course) -> None:
    whole, diary = course.view.account(course.now), course.diary
    assert whole.productive + sum(whole.unproductive.values()) == whole.elapsed == whole.end - whole.start
    assert whole.elapsed / 1e6 == pytest.approx(
        diary.first("end", FINISHED).t - diary.first("begin").t, abs=TOLERANCE_S
    )
    assert (whole.disruptions, whole.max_step, whole.last_step) == (3, STEPS - 1, STEPS - 1)


def test_each_disruption_has_its_phases_and_what_it_cost(course: Course) -> None:
    disruptions: list[Disruption] = course.view.disruptions(course.now)
    assert [each.cause for each in disruptions] == ["unknown", "unknown", "signal"]
    for attempt, each in enumerate(disruptions):
        following = course.diary.spent(attempt + 1)
        restarted, resumed = course.diary.first("begin", attempt + 1), course.diary.steps(attempt + 1)[0]
        assert each.restarted / 1e6 == pytest.approx(restarted.t, abs=TOLERANCE_S)
        assert (each.resumed or 0) / 1e6 == pytest.approx(resumed.t, abs=TOLERANCE_S)
        assert each.restore / 1e6 == pytest.approx(following["UNPRODUCTIVE_CHECKPOINT_RESTORE_TIME"], abs=TOLERANCE_S)
        if attempt != KILLED:
            assert each.steps_lost == course.diary.steps_lost(attempt)
            assert each.lost / 1e6 == pytest.approx(course.diary.steps(attempt)[-1].t, abs=TOLERANCE_S)


def test_a_job_that_hangs_is_seen_while_it_does(course: Course) -> None:
    hanging = course.hanging
    assert hanging.productive + sum(hanging.unproductive.values()) == hanging.elapsed
    assert (hanging.disruptions, hanging.max_step, hanging.last_step) == (0, HANG_AT - 1, HANG_AT)


def test_a_monitor_beside_it_tells_the_same_while_it_runs_and_in_the_end(course: Course) -> None:
    reported = [record for record in course.monitored if record.name == "goodput_productive_seconds"]
    assert reported[-1].value == course.view.account(course.now).productive / 1e6
    assert reported[-1].step == STEPS - 1
    running = [record for record in reported if record.t < course.diary.first("end", FINISHED).t]
    assert len({record.step for record in running}) > 1
    for record in running:
        moments = [micros(record.t - LAG_S * tenth / 10) for tenth in range(11)]
        known = [course.view.account(moment).productive / 1e6 for moment in moments]
        assert min(known) - STEP_S <= cast("float", record.value) <= max(known) + STEP_S
