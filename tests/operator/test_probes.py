import aiohttp
import pytest
from mldiagnostics_operator.probes import WATCH_LAG_LIMIT_S, Health, Stage, serving
from mldiagnostics_operator.telemetry import Telemetry
from prometheus_client.parser import text_string_to_metric_families

READY = {Stage.STANDBY, Stage.WAITING, Stage.ASIDE, Stage.LEADING}


async def ask(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


@pytest.mark.parametrize("stage", Stage)
async def test_readiness_follows_the_stage_and_liveness_does_not(stage: Stage) -> None:
    health = Health()
    async with serving(0, health, Telemetry()) as port:
        health.stage = stage
        assert await ask(port, "/readyz") == (200 if stage in READY else 503, f"{stage}\n")
        assert (await ask(port, "/healthz"))[0] == 200


async def test_liveness_fails_while_the_watch_lags() -> None:
    health = Health(stage=Stage.LEADING)
    async with serving(0, health, Telemetry()) as port:
        health.watch_lag_s = WATCH_LAG_LIMIT_S + 1
        assert await ask(port, "/healthz") == (503, "leading; the watch is 121 s behind the API server\n")
        health.watch_lag_s = 0.0
        assert (await ask(port, "/healthz"))[0] == 200


async def test_metrics_are_what_prometheus_reads() -> None:
    telemetry = Telemetry()
    telemetry.leading(leader=True)
    async with serving(0, Health(), telemetry) as port:
        _, text = await ask(port, "/metrics")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["mldiagnostics_operator_leader"].samples[0].value == 1


async def test_a_taken_port_is_an_error_and_a_left_one_is_free() -> None:
    async with serving(0, Health(), Telemetry()) as port:
        with pytest.raises(OSError, match=str(port)):
            async with serving(port, Health(), Telemetry()):
                pass
    async with serving(port, Health(), Telemetry()) as again:
        assert again == port
