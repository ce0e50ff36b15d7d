"""All sinks of one run get the same, and one that is dead takes nothing from the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from support.records import DEADLINE_S, eventually, program, records_in
from support.servers.receivers import collector, http_receiver, mute_listener
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

BEGIN = """
from mldiagnostics import machinelearning_run
def run(**more):
    return machinelearning_run("all", storage=sys.argv[1], log_system_metrics=False, region="us-central1-a", **more)
"""


def scalars(storage: Path) -> list[tuple[int, float]]:
    """Steps and values of the loss, as TensorBoard reads them."""
    seen: list[tuple[int, float]] = []
    for folder in (storage / "tb").glob("all-*/rank0"):
        accumulator: Any = EventAccumulator(str(folder), size_guidance={"scalars": 0})
        accumulator.Reload()
        if "loss" in accumulator.Tags()["scalars"]:
            seen.extend((each.step, each.value) for each in accumulator.Scalars("loss"))
    return seen


def test_every_sink_of_a_run_gets_every_step(tmp_path: Path) -> None:
    with collector() as otlp, http_receiver() as logging, mute_listener() as mute:
        otlp.start()
        urls = [
            "jsonl:",
            f"tensorboard:{tmp_path / 'tb'}",
            f"otlp://127.0.0.1:{otlp.grpc_port}",
            f"otlp+http://127.0.0.1:{mute}",
            f"cloud-logging:{logging.url}",
            "prometheus:127.0.0.1:0",
        ]
        running = program(
            f"{BEGIN}\nmine = run(sinks={urls}, project='p')\n"
            "for step in range(300): metrics.record('loss', step / 8, step=step)\n"
            f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.05)\n"
            "mine.close()",
            tmp_path,
        )

        def losses() -> list[dict[str, Any]]:
            entries = [entry for request in logging.taken for entry in request.json["entries"]]
            of_loss = [entry for entry in entries if entry["resource"]["labels"]["namespace"] == "loss"]
            return list({entry["insertId"]: entry for entry in of_loss}.values())

        def points() -> list[tuple[float, int]]:
            return [(value, t) for name, value, t, *_ in otlp.points() if name == "loss"]

        eventually(
            lambda: len(losses()) == 300 and len(points()) == 300 and len(scalars(tmp_path)) == 300, "all have all"
        )
        (tmp_path / "go").touch()
        out, err = running.communicate(timeout=DEADLINE_S)
        assert running.returncode == 0, out + err
    kept = [(record.step, record.value, round(record.t * 1e6) * 1000) for record in records_in(tmp_path)]
    assert [step for step, *_ in kept] == list(range(300))
    assert points() == [(value, t) for _, value, t in kept]
    payloads = [entry["jsonPayload"] for entry in losses()]
    assert [(each["step_index"], each["values"]) for each in payloads] == [(step, [value]) for step, value, _ in kept]
    assert {entry["resource"]["labels"]["location"] for entry in losses()} == {"us-central1"}
    assert scalars(tmp_path) == [(step, value) for step, value, _ in kept]


def test_googles_exporter_configuration_means_our_sinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as otlp:
        otlp.start()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{otlp.grpc_port}")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nothing.json"))
        running = program(
            f"{BEGIN}\nmine = run(project='p', metrics_exporter_config={{'mode': ['otel', 'cloud_logging']}})\n"
            "metrics.record('loss', 0.5, step=3)\n"
            f"while not os.path.exists({str(tmp_path / 'go')!r}): time.sleep(0.05)\n"
            "mine.close()",
            tmp_path,
        )
        assert running.stderr is not None
        assert any("nothing.json" in line for line in running.stderr), "it is not said why records wait"
        (tmp_path / "go").touch()
        _, err = running.communicate(timeout=DEADLINE_S)
        assert running.returncode == 0, err
        assert [point[:2] for point in otlp.points()] == [("loss", 0.5), ("training_step", 3.0)]
    [waiting] = (tmp_path / "spool").rglob("records.jsonl")
    assert b'"name":"loss"' in waiting.read_bytes()
