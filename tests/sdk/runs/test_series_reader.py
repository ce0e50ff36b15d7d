"""Curves of real runs; and a reader that follows growing files sees what a reader sees that starts afterwards."""

from __future__ import annotations

import itertools
import json
import math
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.pipeline.records import Record, encode
from mldiagnostics.runs import MetricSeries, SeriesReader, series
from mldiagnostics.store import open_store
from support.programs.processes import Programs

if TYPE_CHECKING:
    from collections.abc import Callable

TRAIN = """
import sys, time
from mldiagnostics import machinelearning_run, metrics
with machinelearning_run("job", run_workload_id="w", log_system_metrics=False) as run:
    for step in range(int(sys.argv[1]), int(sys.argv[2])):
        run.step(step)
        metrics.record("loss", 1 / (step + 1), step=step)
        metrics.record("loss", 2.0, step=step, labels={"split": "eval"})
        metrics.record("per_device", [step, float("nan")], step=step)
    metrics.record("loss", float("inf"))
"""


@pytest.fixture(params=["local", "gs"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path / "storage")
    return f"gs://{request.getfixturevalue('gcs_bucket')}/some/runs"


def columns(curve: MetricSeries) -> list[tuple[float, int | None, str, int]]:
    return list(zip(curve.t, curve.step, map(repr, curve.value), curve.attempt, strict=True))


def content(curves: list[MetricSeries]) -> list[object]:
    return [(c.metric, c.unit, c.rank, c.labels, c.device, c.count, columns(c)) for c in curves]


def line(value: float, step: int | None = None, name: str = "loss", t: float = 1.0) -> str:
    return encode(Record("metric", t, name, value, step, unit="1"))


def test_the_curves_of_a_real_run(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    for attempt, steps in enumerate([("0", "4"), ("2", "6")]):
        for rank in range(2):
            env = {"MLDIAG_ATTEMPT": str(attempt), "NODE_RANK": str(rank), "NNODES": "2"}
            assert programs.run(TRAIN, *steps, env=env).code == 0
    run = programs.the_run()
    curves = series(run, "loss")
    assert [(c.rank, c.labels, c.unit) for c in curves] == [
        (0, {}, "1"), (1, {}, "1"), (0, {"split": "eval"}, "1"), (1, {"split": "eval"}, "1")
    ]  # fmt: skip
    for curve in curves[:2]:
        assert list(curve.step) == [0, 1, 2, 3, None, 2, 3, 4, 5, None]
        assert list(curve.value) == [1, 1 / 2, 1 / 3, 1 / 4, math.inf, 1 / 3, 1 / 4, 1 / 5, 1 / 6, math.inf]
        assert list(curve.attempt) == [0] * 5 + [1] * 5
        assert list(curve.t) == sorted(curve.t)
    [[last], [first]] = [
        [c for c in series(run.directory, "loss", rank=1, attempt=attempt) if not c.labels] for attempt in (1, 0)
    ]
    assert (list(last.step), list(first.step)) == ([2, 3, 4, 5, None], [0, 1, 2, 3, None])
    devices = series(run, "per_device", rank=0, attempt=0)
    assert [(c.device, [repr(value) for value in c.value]) for c in devices] == [
        (0, ["0.0", "1.0", "2.0", "3.0"]),
        (1, ["nan"] * 4),
    ]
    few = series(run, ["loss", "per_device"], points=5)
    assert {c.metric for c in few} == {"loss", "per_device"}
    assert all(len(c.value) <= 5 for c in few)
    assert content(series(run, None)) == content(series(run, ["per_device", "loss"]))
    assert series(run, "another") == []
    assert json.dumps([c.to_json() for c in few], allow_nan=False)


FOLLOWED = """
import pathlib, sys, time
from mldiagnostics import machinelearning_run, metrics
run = machinelearning_run("job", run_workload_id="w", log_system_metrics=False)
for number in range(3):
    metrics.record("loss", float(number))
    run.recording.flush(30)
    print("written", flush=True)
    while not pathlib.Path(sys.argv[1], f"go{number}").exists():
        time.sleep(0.01)
"""


def test_a_running_job_is_followed(tmp_path: Path) -> None:
    programs = Programs(tmp_path)
    with programs.started(FOLLOWED, str(tmp_path)) as child:
        reader = SeriesReader(f"{programs.storage}/w", "loss")
        for number in range(3):
            child.says("written")
            [curve] = reader.read()
            assert list(curve.value) == [float(each) for each in range(number + 1)]
            (tmp_path / f"go{number}").touch()
        child.end()
    assert content(reader.read()) == content(series(f"{programs.storage}/w", "loss"))


def test_growth_is_read_and_nothing_twice(tmp_path: Path) -> None:
    file = tmp_path / "run/records/a0-r0-aaaaaaaa-00001.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(line(value, step) for step, value in enumerate([3.0, 1.0])))
    reader = SeriesReader(str(tmp_path / "run"), "loss", points=100)
    [before] = reader.read()
    read = reader.bytes_read
    grown, torn = line(2.0, 2), line(7.0, 3)
    with file.open("a") as opened:
        opened.write(grown + torn[:20])
    [after] = reader.read()
    assert (list(before.value), list(after.value)) == ([3.0, 1.0], [3.0, 1.0, 2.0])
    assert reader.bytes_read - read == len(grown)
    with file.open("a") as opened:
        opened.write(torn[20:])
    [whole] = reader.read()
    assert (list(whole.value), reader.bad_lines) == ([3.0, 1.0, 2.0, 7.0], 0)


def test_new_objects_are_read_once(storage: str) -> None:
    store = open_store(storage, timeout_s=30)
    reader = SeriesReader(f"{storage}/run", "loss")
    assert reader.read() == []
    for number in range(1, 12):
        store.put(f"run/records/a0-r0-aaaaaaaa-{number:05}.jsonl", line(float(number), number).encode())
        [curve] = reader.read()
        assert list(curve.step) == list(range(1, number + 1))
    assert reader.bytes_read == sum(len(line(float(number), number)) for number in range(1, 12))
    assert content(series(f"{storage}/run", "loss")) == content([curve])


class ChangingRun:
    """The files of four processes, changed in ways that the SDK and people change them."""

    def __init__(self, folder: str) -> None:
        self.records = Path(folder) / "records"
        self.records.mkdir()
        self.numbers = [5, 5, 5, 5]
        self.times = itertools.count(1)

    def path(self, process: int, number: int | None = None) -> Path:
        number = self.numbers[process] if number is None else number
        return self.records / f"a{process // 2}-r{process % 2}-{process:08}-{number:05}.jsonl"

    def lines(self, number: int) -> str:
        times = itertools.islice(self.times, number)
        return "".join(line(math.sin(t), t, "loss" if t % 3 else "other", float(t)) for t in times)

    def append(self, process: int, number: int) -> None:
        self._append(self.path(process), self.lines(number))

    def tear(self, process: int, number: int) -> None:
        self._append(self.path(process), self.lines(1)[:-number])

    def garbage(self, process: int, _: int) -> None:
        self._append(self.path(process), "{nonsense\n\n")

    def next(self, process: int, number: int) -> None:
        self.numbers[process] += 1
        self.append(process, number)

    def late(self, process: int, number: int) -> None:
        self._append(self.path(process, number % 5 + 1), self.lines(2))

    def truncate(self, process: int, number: int) -> None:
        if self.path(process).exists():
            self.path(process).write_bytes(self.path(process).read_bytes()[: -number * 40])

    def replace(self, process: int, number: int) -> None:
        self.delete(process, number)
        self.append(process, number)

    def delete(self, process: int, _: int) -> None:
        self.path(process).unlink(missing_ok=True)

    def _append(self, file: Path, text: str) -> None:
        with file.open("a") as opened:
            opened.write(text)


CHANGES = st.sampled_from(["append", "append", "tear", "next", "truncate", "replace", "delete", "garbage", "late"])
STEPS = st.lists(st.tuples(CHANGES, st.integers(0, 3), st.integers(1, 30), st.booleans()), max_size=14)


@given(STEPS, st.none() | st.integers(5, 40))
def test_a_following_reader_sees_what_a_new_one_sees(
    steps: list[tuple[str, int, int, bool]], points: int | None
) -> None:
    with TemporaryDirectory() as folder:
        run = ChangingRun(folder)
        metrics = ("loss", None)
        followers = [SeriesReader(folder, metric, points=points) for metric in metrics]
        for change, process, number, is_read in steps:
            getattr(run, change)(process, number)
            if is_read:
                [follower.read() for follower in followers]
        for follower, metric in zip(followers, metrics, strict=True):
            fresh = SeriesReader(folder, metric, points=points)
            assert content(follower.read()) == content(fresh.read())
            assert follower.bad_lines == fresh.bad_lines


@pytest.mark.parametrize("size", [50_000])
def test_memory_does_not_grow_with_the_run(tmp_path: Path, size: int) -> None:
    (tmp_path / "records").mkdir()
    for number in range(1, 5):
        text = "".join(line(math.sin(step), step) for step in range(size))
        (tmp_path / f"records/a0-r0-aaaaaaaa-{number:05}.jsonl").write_text(text)
        del text
    series(str(tmp_path), "loss", points=500)
    tracemalloc.start()
    [curve] = series(str(tmp_path), "loss", points=500)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (curve.count, len(curve.value) <= 500) == (4 * size, True)
    assert peak < 8 * 1024 * 1024


def test_wrong_arguments_are_named() -> None:
    for call, message in (
        (lambda: SeriesReader("/nowhere", "loss", points=2), "points=2"),
        (lambda: SeriesReader("ftp://x", "loss"), "ftp://x"),
    ):
        refused(call, message)


def refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        call()
