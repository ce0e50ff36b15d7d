"""TensorBoard reads all recorded metrics, from the local disk and from a bucket."""

from __future__ import annotations

import errno
import os
import shutil
from typing import TYPE_CHECKING, Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.pipeline.buffer import Buffer
from mldiagnostics.pipeline.recorder import RecordPipeline
from mldiagnostics.pipeline.records import Record
from mldiagnostics.sinks import SinkUnavailable, sink_maker
from mldiagnostics.sinks.tensorboard import EventFile, tagged
from mldiagnostics.store import open_store
from support.records import DEADLINE_S, RUN, eventually, origin, records
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

if TYPE_CHECKING:
    from pathlib import Path

    from mldiagnostics.sinks import Sink
    from support.servers.emulator_faults import FaultyProxy

FOLDER = f"test-{RUN[:10]}/rank0"


@pytest.fixture(autouse=True)
def _environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))


def read(folder: Path) -> dict[str, list[tuple[float, int, float]]]:
    """Return wall time, step and value of every scalar by tag, as TensorBoard reads them."""
    accumulator: Any = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    accumulator.Reload()
    return {
        tag: [(each.wall_time, each.step, each.value) for each in accumulator.Scalars(tag)]
        for tag in accumulator.Tags()["scalars"]
    }


def create_sink(url: str, incarnation: str = "00000001") -> Sink:
    sink = sink_maker(url).make(origin(incarnation=incarnation))
    sink.open()
    return sink


def test_tensorboard_reads_names_times_steps_and_values(tmp_path: Path) -> None:
    recording = RecordPipeline(origin(), [sink_maker(f"tensorboard:{tmp_path}")], buffer=Buffer())
    for step in range(500):
        recording.append("metric", "loss", value=step / 8, step=step, t=1000.0 + step)
    recording.append("metric", "loss", value=9.0, step=3, labels={"split": "eval"}, t=1000.0)
    recording.append("metric", "hbm_utilization", value=[1.0, 2.0], labels={"b": "2", "a": "1"}, step=3, t=1000.0)
    recording.append("metric", "mxu", value=[1.0, 2.0], step=3, t=1000.0)
    recording.append("event", "note", payload={"message": "saved"})
    assert recording.close(DEADLINE_S).complete
    assert read(tmp_path / FOLDER) == {
        "loss": [(1000.0 + step, step, step / 8) for step in range(500)],
        "loss/split=eval": [(1000.0, 3, 9.0)],
        "hbm_utilization/a=1,b=2,device=0": [(1000.0, 3, 1.0)],
        "hbm_utilization/a=1,b=2,device=1": [(1000.0, 3, 2.0)],
        "mxu/device=0": [(1000.0, 3, 1.0)],
        "mxu/device=1": [(1000.0, 3, 2.0)],
    }


def test_values_without_a_step_are_counted(tmp_path: Path) -> None:
    sink = create_sink(f"tensorboard:{tmp_path}")
    sink.write([Record("metric", 5.0, name, 1.0) for name in ("loss", "mfu", "loss")])
    sink.write([Record("metric", 5.0, "loss", 1.0)])
    sink.close()
    assert [step for _, step, _ in read(tmp_path / FOLDER)["loss"]] == [0, 1, 2]


def test_each_batch_is_readable_while_the_run_goes_on(tmp_path: Path) -> None:
    sink = create_sink(f"tensorboard:{tmp_path}")
    sink.write([Record("metric", 5.0, "loss", 1.0, step=1)])
    assert read(tmp_path / FOLDER) == {"loss": [(5.0, 1, 1.0)]}
    sink.close()


def test_a_run_of_two_processes_is_one_curve(tmp_path: Path) -> None:
    for number in range(3):
        sink = create_sink(f"tensorboard:{tmp_path}", incarnation=f"0000000{number}")
        sink.write([Record("metric", 5.0, "loss", float(number), step=number)])
        sink.close()
    assert [value for *_, value in read(tmp_path / FOLDER)["loss"]] == [0.0, 1.0, 2.0]


def test_an_unwritable_directory_gets_its_events_once_it_is_writable(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("in the way")
    sink = create_sink(f"tensorboard:{tmp_path / 'logs'}")
    for step in range(3):
        sink.write([Record("metric", 5.0, "loss", step / 8, step=step)])
    with pytest.raises(SinkUnavailable):
        sink.flush()
    (tmp_path / "logs").unlink()
    sink.flush()
    sink.close()
    assert len(list((tmp_path / "logs").rglob("events.out.tfevents.*"))) == 1


def test_a_deleted_directory_gets_the_later_events(tmp_path: Path) -> None:
    sink = create_sink(f"tensorboard:{tmp_path / 'logs'}")
    sink.write([Record("metric", 5.0, "loss", 1.0, step=1)])
    shutil.rmtree(tmp_path / "logs")
    sink.write([Record("metric", 5.0, "loss", 2.0, step=2)])
    sink.close()
    assert read(tmp_path / "logs" / FOLDER) == {"loss": [(5.0, 2, 2.0)]}


def read_only(*_: object) -> NoReturn:
    raise OSError(errno.EROFS, "Read-only file system")


def test_events_of_a_disk_that_became_read_only_are_spooled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = create_sink(f"tensorboard:{tmp_path / 'logs'}")
    sink.write([Record("metric", 5.0, "loss", 1.0, step=1)])
    with monkeypatch.context() as disk:
        for name in ("write", "ftruncate"):
            disk.setattr(os, name, read_only)
        with pytest.raises(SinkUnavailable, match="Read-only file system"):
            EventFile(tmp_path / "logs", origin()).append([Record("metric", 5.0, "loss", 2.0, step=2)])
    sink.write([Record("metric", 5.0, "loss", 3.0, step=3)])
    sink.close()
    assert [value for *_, value in read(tmp_path / "logs" / FOLDER)["loss"]] == [1.0, 3.0]


def test_tensorboard_reads_events_from_a_bucket(gcs_bucket: str, tmp_path: Path) -> None:
    sink = create_sink(f"tensorboard:gs://{gcs_bucket}/logs")
    for step in range(3):
        sink.write([Record("metric", 5.0, "loss", step / 8, step=step)])
        sink.flush()
    sink.close()
    downloaded = download(f"gs://{gcs_bucket}/logs", tmp_path / "copy")
    assert read(downloaded / FOLDER) == {"loss": [(5.0, step, step / 8) for step in range(3)]}


def test_event_files_and_json_lines_of_one_process_share_a_bucket(bucket_url: str) -> None:
    root = bucket_url
    both = [create_sink(f"tensorboard:{root}"), create_sink(f"jsonl:{root}")]
    for sink in both:
        sink.write([Record("metric", 5.0, "loss", 1.0, step=1)])
        sink.flush()
        sink.close()
    kept = [entry.key.rpartition("/")[2] for entry in open_store(root).list()]
    assert sorted("tfevents" in name for name in kept) == [False, True]


def test_another_process_uploads_the_events_after_an_outage(
    gcs_bucket: str, gcs_faults: FaultyProxy, tmp_path: Path
) -> None:
    url = f"gs://{gcs_bucket}/logs"
    gcs_faults.otherwise = 403
    died = create_sink(f"tensorboard:{url}")
    died.write([Record("metric", 5.0, "loss", 1.0, step=1)])
    with pytest.raises(SinkUnavailable):
        died.flush()
    died.close()
    gcs_faults.otherwise = "pass"
    living = create_sink(f"tensorboard:{url}", incarnation="00000002")
    living.write([Record("metric", 5.0, "loss", 2.0, step=2)])
    living.flush()
    living.close()
    eventually(lambda: len(list(open_store(url).list())) == 2, "the upload in the background")
    points = read(download(url, tmp_path / "copy") / FOLDER)["loss"]
    assert sorted(points) == [(5.0, 1, 1.0), (5.0, 2, 2.0)]


@given(st.lists(records(), max_size=3))
def test_any_record_can_be_written_and_each_number_has_one_tag(tmp_path_factory: Any, batch: list[Record]) -> None:
    place = tmp_path_factory.mktemp("any")
    sink = create_sink(f"tensorboard:{place}")
    sink.write(batch)
    sink.close()
    expected = {tag for record in batch if record.kind == "metric" for tag, _ in tagged(record)}
    assert set(read(place / FOLDER)) == expected


@pytest.mark.parametrize("url", ["tensorboard:", "tensorboard:ftp://bucket", "tensorboard:gs://", "tensorboard:s3://"])
def test_a_url_without_a_directory_is_rejected(url: str) -> None:
    with pytest.raises(ConfigurationError):
        sink_maker(url)


def download(url: str, place: Path) -> Path:
    """Copy all files of a URL to the local disk."""
    store = open_store(url)
    for entry in store.list():
        path = place / entry.key
        path.parent.mkdir(parents=True, exist_ok=True)
        with store.open(entry.key) as file:
            path.write_bytes(file.read())
    return place
