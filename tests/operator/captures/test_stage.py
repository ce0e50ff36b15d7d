from __future__ import annotations

import pytest
from mldiagnostics_operator.captures.stage import CaptureStage, CaptureState, StopReason

CANCELS_THE_TASK = {
    (CaptureStage.FOREIGN, StopReason.GONE),
    (CaptureStage.FOREIGN, StopReason.HANDED_OVER),
    (CaptureStage.WAITING, StopReason.GONE),
    (CaptureStage.WAITING, StopReason.HANDED_OVER),
    (CaptureStage.WAITING, StopReason.CANCELLED),
    (CaptureStage.RECORDING, StopReason.GONE),
}


@pytest.mark.parametrize("reason", StopReason)
@pytest.mark.parametrize("stage", CaptureStage)
def test_the_stage_decides_the_effect_of_a_stop(stage: CaptureStage, reason: StopReason) -> None:
    state = CaptureState(stage, cancel_requested=False)
    cancels_the_task = (stage, reason) in CANCELS_THE_TASK
    assert state.stop(reason) == cancels_the_task
    assert state.stop_reason is (reason if cancels_the_task else None)
    assert state.cancel_requested == (reason is StopReason.CANCELLED)
    is_cancelled_recording = stage is CaptureStage.RECORDING and reason is StopReason.CANCELLED
    assert state.control.terminated == is_cancelled_recording


def test_the_first_stop_counts() -> None:
    state = CaptureState(CaptureStage.WAITING, cancel_requested=False)
    assert state.stop(StopReason.HANDED_OVER)
    assert not state.stop(StopReason.GONE)
    assert state.stop_reason is StopReason.HANDED_OVER
