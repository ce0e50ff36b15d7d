import pytest
from mldiagnostics_operator.probes import WATCH_LAG_LIMIT_S, OperatorHealth, ReplicaStage

READY = {ReplicaStage.STANDBY, ReplicaStage.WAITING, ReplicaStage.ASIDE, ReplicaStage.LEADING}


@pytest.mark.parametrize("stage", ReplicaStage)
def test_readiness_follows_the_stage_and_liveness_does_not(stage: ReplicaStage) -> None:
    health = OperatorHealth(stage=stage)
    assert health.ready() == (stage in READY, stage)
    assert health.live()[0]


def test_liveness_fails_while_the_watch_lags() -> None:
    health = OperatorHealth(stage=ReplicaStage.LEADING, watch_lag_s=WATCH_LAG_LIMIT_S + 1)
    assert health.live() == (False, "leading; the watch is 121 s behind the API server")
    health.watch_lag_s = 0.0
    assert health.live()[0]
