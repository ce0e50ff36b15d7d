"""Names of other packages, against the list of imported names."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from importlib import import_module
from typing import TYPE_CHECKING

import mldiagnostics
import pytest
from mldiagnostics.compat._version import get_version
from mldiagnostics.compat.aliases import ALIASES, GOOGLE_SDK
from mldiagnostics.compat.global_manager import GlobalRunManager, get_global_run_manager
from mldiagnostics.metrics import metrics_recorder
from mldiagnostics.run import machinelearning_run, normalize_gcs_path
from mldiagnostics.runs import read_records

if TYPE_CHECKING:
    from pathlib import Path

IMPORTED = {
    "": ["machinelearning_run", "metrics", "xprof", "metric_types"],
    "_version": ["get_version"],
    "api.metrics": ["record", "record_metrics"],
    "api.mlrun": ["machinelearning_run", "normalize_gcs_path"],
    "clients.logging_client": ["LoggingClient", "NoOpLoggingClient"],
    "commands.collect_profile": ["main"],
    "commands.run_vllm": ["main"],
    "core.global_manager": [
        *("get_current_run", "get_current_run_id", "get_logging_client", "get_last_updated_run", "register_run"),
        *("initialize_with_mlrun", "GlobalRunManager", "get_global_run_manager"),
    ],
    "core.metrics": ["record", "metrics_recorder"],
    "core.xprof": ["Xprof", "start_on_demand_xprof", "stop_on_demand_xprof"],
    "custom_types.exceptions": [
        *("MLDiagnosticError", "MLRunConfigurationError", "RecordingError", "NoActiveRunError", "ProfilingError"),
        "ControlPlaneClientNotInitializedError",
    ],
    "custom_types.metric_types": ["MetricType", "METRIC_UNITS", "AcceleratorType"],
    "custom_types.mlrun_types": [
        *("RunPhase", "Framework", "ServingEngine", "AcceleratorOrchestrator", "ApplicationFramework"),
        *("RlOrchestrator", "Orchestrator", "MLRun", "ConfigDict"),
    ],
    "exporters.base_exporter": [
        *("MetricPoint", "LogEntry", "BaseMetricsExporter", "BaseLogsExporter"),
        *("CompositeMetricsExporter", "CompositeLogsExporter"),
    ],
    "utils.host_utils": ["get_hostname", "get_process_index", "get_workload_details", "is_master_host"],
}


def test_every_path_has_its_names_listed() -> None:
    assert set(ALIASES[GOOGLE_SDK]) == set(IMPORTED)


@pytest.mark.parametrize("path", [path for path in IMPORTED if "." in path])
def test_a_path_works_after_the_name_of_the_package_is_replaced(path: str) -> None:
    assert import_module(f"mldiagnostics.{path}") is import_module(ALIASES[GOOGLE_SDK][path])


@pytest.mark.parametrize("path", IMPORTED)
def test_every_name_is_there(path: str) -> None:
    module = import_module(ALIASES[GOOGLE_SDK][path])
    assert [name for name in IMPORTED[path] if not hasattr(module, name)] == []


def test_the_version_is_that_of_the_package() -> None:
    assert get_version() == mldiagnostics.__version__


@pytest.mark.parametrize(
    ("given", "kept"), [("gs://bucket//runs/", "gs://bucket/runs"), ("/a//b/", "/a/b"), ("s3://b//c", "s3://b/c")]
)
def test_a_path_is_normalised_as_there(given: str, kept: str) -> None:
    assert normalize_gcs_path(given) == kept


def test_the_manager_knows_the_run_and_the_recorder_records_for_it(tmp_path: Path) -> None:
    manager = get_global_run_manager()
    assert manager is get_global_run_manager()
    assert isinstance(manager, GlobalRunManager)
    with machinelearning_run("managed", storage=tmp_path, log_system_metrics=False) as run:
        assert manager.get_current_run() is run
        assert manager.get_current_run_id() == run.run_id
        metrics_recorder.record("loss", 0.5)
        metrics_recorder.record_metrics([{"metric_name": "mfu", "value": 1.0}])
    assert manager.get_current_run() is None
    assert manager.get_last_updated_run() is run
    recorded = [(each.name, each.value) for each in read_records(str(tmp_path), run.run_id, kinds={"metric"})]
    assert recorded == [("loss", 0.5), ("mfu", 1.0)]


def test_a_run_has_its_creation_time_as_string(tmp_path: Path) -> None:
    with machinelearning_run("dated", storage=tmp_path, log_system_metrics=False) as run:
        created = run.created_at
    assert created.endswith("Z")
    moment = datetime.fromisoformat(created.replace("Z", "+00:00"))  # Python 3.10 does not know the letter
    assert abs(moment - datetime.now(timezone.utc)) < timedelta(minutes=5)
