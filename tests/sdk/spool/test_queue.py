"""The queue of the spool has one bound for all that waits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.pipeline.records import Record
from mldiagnostics.pipeline.sink import SinkMaker, SinkUnavailable, SpoolFull
from mldiagnostics.sinks.spool import spooled
from mldiagnostics.spool import creation
from mldiagnostics.spool.queue import SpoolQueue
from support.records import ListSink, origin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_STORE = "gs://bucket/runs"
_USER_BYTES = 1000
"""Limit of the whole spool of a user in these tests."""


@pytest.fixture(autouse=True)
def _spool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr(creation, "MAX_SPOOL_BYTES", _USER_BYTES)


class _Unreachable(ListSink):
    """A sink whose receiver is down."""

    def write(self, batch: Sequence[Record]) -> None:
        raise SinkUnavailable(f"the receiver is down, {len(batch)} records were not sent")


def test_a_file_that_would_exceed_the_limit_is_rejected_and_the_others_stay() -> None:
    queue = SpoolQueue(_STORE, origin(), max_bytes=10)
    queue.put("run/one", b"12345678")
    with pytest.raises(SpoolFull, match="no more may wait for gs://bucket/runs; upload them with"):
        queue.put("run/two", b"123")
    queue.put("run/two", b"12")
    queue.require_room()


def test_the_limit_of_the_whole_spool_holds_for_records_too() -> None:
    SpoolQueue(_STORE, origin()).put("run/trace", bytes(_USER_BYTES))
    sink = spooled(SinkMaker("receiver", lambda _: _Unreachable()), "receiver://1", max_bytes=_USER_BYTES).make(
        origin()
    )
    sink.open()
    with pytest.raises(SpoolFull, match="no more may wait for receiver://1; check that it can be reached"):
        sink.write([Record("metric", 1.0, "loss", 1.0)])


def test_a_closed_queue_opens_another_directory_beside_the_one_that_waits() -> None:
    queue = SpoolQueue(_STORE, origin(), part="files")
    queue.put("run/one", b"1")
    first = queue.place
    queue.close()
    assert not queue.is_open
    queue.put("run/two", b"2")
    assert queue.place != first
    assert (first / "files/run/one").read_bytes() == b"1"
    queue.close()


def test_a_delivered_queue_leaves_no_directory() -> None:
    queue = SpoolQueue(_STORE, origin())
    queue.put("run/one", b"1")
    place = queue.place
    queue.remove()
    assert not place.exists()
    assert not queue.is_open


def test_a_discarded_file_waits_no_longer() -> None:
    queue = SpoolQueue(_STORE, origin())
    queue.put("run/one", b"1")
    queue.discard("run/one")
    queue.discard("run/one")
    assert list(queue.files.rglob("one")) == []
