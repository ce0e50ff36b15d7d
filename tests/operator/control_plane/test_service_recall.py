"""Journals of former leaders: one that cannot be read delays no other one."""

from __future__ import annotations

import pytest
from mldiagnostics.errors import StoreError, StoreForbidden, StoreUnreachable
from mldiagnostics_api.reports.run_key import RunKey
from mldiagnostics_operator.control_plane import service
from mldiagnostics_operator.control_plane.http.server import ControlPlane
from mldiagnostics_operator.control_plane.journal.journal import JournalUnavailable

KEYS = [RunKey("ml", str(number)) for number in range(5)]


class FailingPlane(ControlPlane):
    """A control plane with one journal that cannot be read."""

    def __init__(self, error: Exception) -> None:
        self.error = error
        self.calls: list[RunKey] = []

    async def recall(self, key: RunKey) -> None:
        self.calls.append(key)
        if key == KEYS[2]:
            if isinstance(self.error, StoreError):
                raise JournalUnavailable("the journal cannot be read") from self.error
            raise self.error


@pytest.mark.parametrize("error", [StoreForbidden("a link"), ValueError("x"), OSError("x")], ids=repr)
async def test_a_journal_that_cannot_be_read_is_read_again_after_a_pause(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    plane, recalled, failed = FailingPlane(error), set[RunKey](), dict[RunKey, float]()
    for _ in range(3):
        await service._recall(plane, [key for key in KEYS if key not in recalled], recalled, failed)
    assert (plane.calls, recalled) == (KEYS, {*KEYS} - {KEYS[2]})
    monkeypatch.setattr(service, "RECALL_PAUSE_S", 0.0)
    await service._recall(plane, [KEYS[2]], recalled, failed)
    assert plane.calls == [*KEYS, KEYS[2]]


async def test_storage_that_does_not_respond_is_left_alone_for_this_round() -> None:
    plane, recalled, failed = FailingPlane(StoreUnreachable("x")), set[RunKey](), dict[RunKey, float]()
    await service._recall(plane, KEYS, recalled, failed)
    assert plane.calls == KEYS[:3]
    await service._recall(plane, KEYS[2:], recalled, failed)
    assert plane.calls == KEYS
