"""The public names of `mldiagnostics`, each loaded on demand."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import inspect
import operator
import subprocess
import sys
from pathlib import Path

import mldiagnostics
import pytest
from mldiagnostics import errors

SDK = Path(__file__).parents[2] / "sdk/src"

LOADED_BY = """
import sys
sys.path.insert(0, sys.argv[1])
before = set(sys.modules)
exec(sys.argv[2])
print(*sorted({name.partition(".")[0] for name in set(sys.modules) - before}))
print(*sorted(name for name in set(sys.modules) - before if name.startswith("mldiagnostics")))
"""


def loaded_by(statement: str) -> tuple[set[str], set[str]]:
    """Run a statement in a bare Python: no site packages, no environment, only the SDK's sources."""
    command = [sys.executable, "-I", "-S", "-c", LOADED_BY, str(SDK), statement]
    lines = subprocess.run(command, check=True, capture_output=True, text=True, timeout=120).stdout.split("\n")
    return set(lines[0].split()), set(lines[1].split())


def test_each_name_is_there() -> None:
    for name in mldiagnostics.__all__:
        assert getattr(mldiagnostics, name)
        assert name in dir(mldiagnostics)


def test_all_errors_are_public() -> None:
    kinds = {name for name, value in vars(errors).items() if isinstance(value, type)}
    assert kinds <= set(mldiagnostics.__all__)


def test_the_version_is_that_of_the_package() -> None:
    assert mldiagnostics.__version__ == importlib.metadata.version("mldiagnostics")


def test_other_names_are_refused_as_python_does() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = mldiagnostics.nonsense


def test_the_package_is_typed() -> None:
    assert (SDK / "mldiagnostics/py.typed").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "import mldiagnostics",
        "from mldiagnostics import *",
        "from mldiagnostics.store import open_store; open_store('/tmp/x')",
        "import mldiagnostics.identity, mldiagnostics.layout",
        "from mldiagnostics import machinelearning_run, metrics, xprof, metric_types",
        "import mldiagnostics.runs",
        "from mldiagnostics.goodput import *; from mldiagnostics.goodput_elastic import *",
        "from mldiagnostics import monitoring; monitoring.GoodputMonitor('j', 'l', '', 30)",
    ],
)
def test_the_package_imports_without_any_third_party_module(statement: str) -> None:
    packages, _ = loaded_by(statement)
    assert packages - {"mldiagnostics"} <= sys.stdlib_module_names


PEER_PARAMETERS = {
    "machinelearning_run": [
        *("name", "run_group", "configs", "gcs_path", "base_url", "cluster_id", "project", "region"),
        *("metrics_record_interval_sec", "on_demand_xprof", "log_system_metrics", "environment", "framework"),
        *("serving_engine", "run_workload_id", "metric_only_run", "metrics_exporter_config"),
        *("accelerator_orchestrator", "application_framework", "rl_orchestrator"),
    ],
    "metrics.record": ["metric_name", "value", "step", "labels", "record_on_all_hosts"],
    "metrics.record_metrics": ["metrics_data", "record_on_all_hosts", "step"],
    "xprof": ["run", "process_index_list"],
}
"""The positional parameters of google-cloud-mldiagnostics 1.0.10, in order."""

PEER_FIELDS = [
    *("name", "run_group", "configs", "gcs_path", "location", "project", "run_phase", "created_at", "workload_details"),
    *("workload_targets", "orchestrator", "display_name", "on_demand_xprof", "log_system_metrics", "metric_only_run"),
    *("environment", "framework", "serving_engine", "metrics_exporter_config", "accelerator_orchestrator"),
    *("application_framework", "rl_orchestrator", "control_plane_url", "ml_run_id", "cluster_id", "workload_id"),
    "namespace",
]


@pytest.mark.parametrize("path", PEER_PARAMETERS)
def test_parameters_of_googles_sdk_come_first_and_in_its_order(path: str) -> None:
    function = operator.attrgetter(path)(mldiagnostics)
    parameters = [
        parameter.name
        for parameter in inspect.signature(function).parameters.values()
        if parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    ]
    assert parameters == PEER_PARAMETERS[path]


def test_a_run_has_the_fields_of_googles_sdk() -> None:
    known = {field.name for field in dataclasses.fields(mldiagnostics.MLRun)} | set(dir(mldiagnostics.MLRun))
    assert [name for name in PEER_FIELDS if name not in known] == []


def test_unused_modules_are_not_loaded() -> None:
    _, modules = loaded_by("import mldiagnostics")
    assert modules == {"mldiagnostics", "mldiagnostics.errors"}
    _, modules = loaded_by("from mldiagnostics import goodput")
    assert modules == {"mldiagnostics", "mldiagnostics.errors", "mldiagnostics.goodput"}


def test_the_names_of_googles_sdk_bring_nothing_heavy() -> None:
    packages, _ = loaded_by("from mldiagnostics import machinelearning_run, metrics, xprof, metric_types")
    heavy = {"asyncio", "concurrent", "email", "hashlib", "http", "importlib_metadata", "random", "ssl", "subprocess"}
    assert packages & heavy == set()
