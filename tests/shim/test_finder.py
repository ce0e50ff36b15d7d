"""Programs for Google's SDK and the goodput library, unchanged: their imports lead to one set of modules."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest
from mldiagnostics.compat.aliases import ALIASES, GOODPUT, GOOGLE_SDK

# The imports of MaxText, MaxDiffusion and AXLearn, unchanged.
INTEGRATION = """
import google_cloud_mldiagnostics
from google_cloud_mldiagnostics import machinelearning_run, metric_types, metrics, xprof
from google_cloud_mldiagnostics.core import global_manager
from google_cloud_mldiagnostics.core.xprof import start_on_demand_xprof
from google_cloud_mldiagnostics.custom_types import exceptions, mlrun_types
import google_cloud_mldiagnostics.custom_types.metric_types as types

with machinelearning_run(name="unchanged", framework=mlrun_types.Framework.JAX) as run:
    assert google_cloud_mldiagnostics.core.global_manager.get_current_run() is run
    metrics.record(types.MetricType.LOSS, 0.5, step=1)
    assert issubclass(exceptions.NoActiveRunError, exceptions.MLDiagnosticError)
import mldiagnostics.runs
[row] = mldiagnostics.runs.list_runs(run.storage)
[loss] = mldiagnostics.runs.read_records(run.storage, row.run_id, kinds={"metric"})
print(row.name, row.phase, loss.name, loss.value)
"""


def test_an_integration_runs_unchanged(tmp_path: object) -> None:
    command = [sys.executable, "-W", "error", "-c", INTEGRATION]
    result = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=str(tmp_path),
        env={"MLDIAG_STORAGE": str(tmp_path)},
    )
    assert result.stdout == "unchanged Completed loss 0.5\n", result.stderr


@pytest.mark.parametrize(
    ("peer", "path"), [(peer, path) for peer, aliases in ALIASES.items() for path in aliases if path]
)
def test_a_module_is_the_same_under_both_names(peer: str, path: str) -> None:
    ours = import_module(ALIASES[peer][path])
    spec = ours.__spec__
    assert import_module(f"{peer}.{path}") is ours
    assert ours.__spec__ is spec
    assert ours.__name__ == ALIASES[peer][path]


@pytest.mark.parametrize(
    "name", ["clients.control_plane_client", "core.anything", "core.xprof.session", "api.mlrun.start"]
)
def test_a_name_without_an_alias_is_rejected(name: str) -> None:
    import_module(GOOGLE_SDK)
    import_module(f"{GOOGLE_SDK}.core.xprof")
    import_module(f"{GOOGLE_SDK}.api.mlrun")
    with pytest.raises(ModuleNotFoundError, match=rf"{GOOGLE_SDK}\.{name}: mldiagnostics-shim has no such module"):
        find_spec(f"{GOOGLE_SDK}.{name}")


def test_the_goodput_library_offers_its_modules() -> None:
    library = import_module(GOODPUT)
    for name in library.__all__:
        assert getattr(library, name) is import_module(f"{GOODPUT}.src.{name}")
    with pytest.raises(ModuleNotFoundError, match=rf"{GOODPUT}\.core: mldiagnostics-shim has no such module"):
        find_spec(f"{GOODPUT}.core")
    with pytest.raises(AttributeError, match="no attribute 'machinelearning_run'"):
        _ = library.machinelearning_run


def test_other_modules_are_found_as_before() -> None:
    import_module(GOOGLE_SDK)
    assert find_spec("json.decoder") is not None
    assert find_spec("no_such_module") is None


@pytest.mark.parametrize(
    ("name", "option"), [("run_vllm", "--mlrun_gcs_path"), ("collect_profile", "--override_hostnames")]
)
def test_commands_run_under_their_old_name(name: str, option: str) -> None:
    command = [sys.executable, "-m", f"{GOOGLE_SDK}.commands.{name}", "--help"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert option in result.stdout
