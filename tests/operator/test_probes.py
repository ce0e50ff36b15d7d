import pytest
from mldiagnostics_operator.probes import WATCH_LAG_LIMIT_S, Health, Stage

READY = {Stage.STANDBY, Stage.WAITING, Stage.ASIDE, Stage.LEADING}


@pytest.mark.parametrize("stage", Stage)
def test_readiness_follows_the_stage_and_liveness_does_not(stage: Stage) -> None:
    health = Health(stage=stage)
    assert health.ready() == (stage in READY, stage)
    assert health.live()[0]


def test_liveness_fails_while_the_watch_lags() -> None:
    health = Health(stage=Stage.LEADING, watch_lag_s=WATCH_LAG_LIMIT_S + 1)
    assert health.live() == (False, "leading; the watch is 121 s behind the API server")
    health.watch_lag_s = 0.0
    assert health.live()[0]
