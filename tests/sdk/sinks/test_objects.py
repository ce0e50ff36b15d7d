"""Records reach a bucket object by object, over outages and killed processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.pipeline.records import Record, decode
from mldiagnostics.sinks import SinkMaker, SinkRefused, SinkUnavailable, sink_maker
from mldiagnostics.sinks.jsonl import OBJECT_BYTES
from mldiagnostics.sinks.objects import ObjectSink
from mldiagnostics.sinks.segments import Segments
from mldiagnostics.spool.directory import abandoned_directories
from mldiagnostics.store import open_store
from support.records import RUN, eventually, origin, run_program

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mldiagnostics.sinks import Sink
    from support.servers.emulator_faults import FaultyProxy


@pytest.fixture(autouse=True)
def spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary spool."""
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))
    return tmp_path / "spool"


def numbers(start: int, count: int = 3) -> list[Record]:
    return [Record("metric", 1.0, "loss", float(number)) for number in range(start, start + count)]


def opened(maker: SinkMaker, storage: str = "/nowhere", *, incarnation: str = "0123abcd") -> Sink:
    sink = maker.make(origin(storage, incarnation=incarnation))
    sink.open()
    return sink


def stored(root: str) -> Iterator[tuple[str, list[float]]]:
    """Yield each object below a root, with its values."""
    store = open_store(root)
    for entry in store.list():
        with store.open(entry.key) as file:
            records = [decode(line) for line in file]
        yield entry.key, [each.value for each in records if isinstance(each.value, float)]


def test_each_flush_uploads_an_object_and_empties_the_spool(bucket_url: str, spool: Path) -> None:
    root = bucket_url
    sink = opened(sink_maker("jsonl:"), root)
    for start in (0, 3):
        sink.write(numbers(start))
        sink.flush()
    sink.flush()
    sink.close()
    prefix = f"{RUN}/records/a0-r0-0123abcd"
    assert list(stored(root)) == [(f"{prefix}-00001.jsonl", [0, 1, 2]), (f"{prefix}-00002.jsonl", [3, 4, 5])]
    assert [path for path in spool.rglob("*") if path.is_file()] == []


def test_an_object_is_closed_at_its_size(gcs_bucket: str) -> None:
    root = f"gs://{gcs_bucket}"
    sink = ObjectSink(root, origin(), lambda top: Segments(top / RUN, origin(), max_bytes=600), records=256)
    for start in range(0, 12, 3):
        sink.write(numbers(start))
    sink.flush()
    assert [values for _, values in stored(root)] == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]


def test_an_outage_of_the_bucket_loses_nothing(gcs_bucket: str, gcs_faults: FaultyProxy) -> None:
    root = f"gs://{gcs_bucket}"
    sink = opened(sink_maker(f"jsonl:{root}"))
    gcs_faults.otherwise = 403
    sink.write(numbers(0))
    with pytest.raises(SinkUnavailable, match=gcs_bucket):
        sink.flush()
    sink.write(numbers(3))
    gcs_faults.otherwise = "pass"
    sink.flush()
    assert [values for _, values in stored(root)] == [[0, 1, 2], [3, 4, 5]]


def test_the_next_process_uploads_a_killed_ones_files(gcs_bucket: str, spool: Path) -> None:
    root = f"gs://{gcs_bucket}"
    died = sink_maker(f"jsonl:{root}").make(origin(incarnation="00000001"))
    died.open()
    died.write(numbers(0))
    died.close()
    (spool / "elsewhere").mkdir()
    living = opened(sink_maker(f"jsonl:{root}"), incarnation="00000002")
    other = opened(sink_maker(f"jsonl:{root}"), incarnation="00000003")
    other.write(numbers(7))
    living.write(numbers(3))
    living.flush()
    eventually(lambda: len(list(stored(root))) == 2, "the upload in the background")
    assert [(key[-22:], values) for key, values in stored(root)] == [
        ("r0-00000001-00001.jsonl"[-22:], [0, 1, 2]),
        ("r0-00000002-00001.jsonl"[-22:], [3, 4, 5]),
    ]
    other.close()


def test_a_process_killed_between_flushes_loses_no_written_records(gcs_bucket: str, tmp_path: Path) -> None:
    body = f"""
from mldiagnostics.pipeline.records import Record
sink = sinks.sink_maker("jsonl:gs://{gcs_bucket}").make(Origin("a" * 64, "test", "", "0123abcd", "host"))
sink.open()
sink.write([Record("metric", 1.0, "loss", 0.0)])
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert run_program(body, tmp_path).returncode == -9
    opened(sink_maker(f"jsonl:gs://{gcs_bucket}"), incarnation="00000002").flush()
    eventually(lambda: bool(list(stored(f"gs://{gcs_bucket}"))), "the upload in the background")
    assert [values for _, values in stored(f"gs://{gcs_bucket}")] == [[0.0]]


def test_waiting_bytes_are_limited() -> None:
    sink = ObjectSink(
        "gs://bucket",
        origin(),
        lambda top: Segments(top, origin(), max_bytes=OBJECT_BYTES),
        records=256,
        max_waiting_bytes=1000,
    )
    with pytest.raises(SinkRefused, match="wait for"):  # noqa: PT012 - one of the first hundred
        for start in range(100):
            sink.write(numbers(start))


def test_an_invalid_storage_is_rejected_without_importing_a_client(tmp_path: Path) -> None:
    body = """
from mldiagnostics.errors import MLDiagnosticsError
for url in ("jsonl:gs://bucket", "jsonl:gs://", "jsonl:s3://bucket", "jsonl:ftp://bucket"):
    try:
        print(sinks.sink_maker(url).name)
    except MLDiagnosticsError as error:
        print(type(error).__name__)
print("google.cloud.storage" in sys.modules, "obstore" in sys.modules)
"""
    result = run_program(body, tmp_path)
    expected = ["jsonl:gs://bucket", "ConfigurationError", "jsonl:s3://bucket", "ConfigurationError", "False", "False"]
    assert result.stdout.split() == expected
    bare = run_program(body, tmp_path, "-S")
    assert bare.stdout.split()[0] == "jsonl:gs://bucket"  # its records wait in the spool


def test_without_a_spool_the_sink_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    for variable in ("MLDIAG_SPOOL", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / "file/spool"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "file"))
    with pytest.raises(SinkUnavailable, match="MLDIAG_SPOOL"):
        opened(sink_maker("jsonl:gs://bucket"))
    assert list(abandoned_directories("gs://bucket")) == []
