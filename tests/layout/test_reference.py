"""The reference pages have every public name, and every parameter of the functions that users call."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import griffe
import pytest

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/reference"
PAGES = {"mldiagnostics": "sdk.md", "mldiagnostics.goodput": "goodput-api.md", "mldiagnostics.runs": "sdk.md"}
# Names that the peers' packages have, documented with the name that they stand for.
CALLED = (
    "machinelearning_run", "metrics.record", "metrics.record_metrics", "profiling.xprof.Xprof", "capture.capture",
    "open_store", "run.mlrun.MLRun.step", "run.mlrun.MLRun.on_step", "run.mlrun.MLRun.on_close",
    "run.mlrun.MLRun.publish", "run.mlrun.MLRun.close",
    "runs.list_runs", "runs.find_run", "goodput.GoodputRecorder", "goodput.GoodputCalculator",
    "compat.monitoring.GoodputMonitor",
)  # fmt: skip


@pytest.mark.parametrize("module", PAGES)
def test_every_public_name_is_on_its_page(module: str) -> None:
    page = (REFERENCE / PAGES[module]).read_text()
    public = [name for name in import_module(module).__all__ if not _is_module(module, name)]
    missing = [name for name in public if f"{name}`" not in page]
    assert not missing


@pytest.fixture(scope="module")
def package() -> griffe.Module:
    loaded = griffe.load("mldiagnostics", search_paths=[ROOT / "sdk/src"], docstring_parser="google")
    assert isinstance(loaded, griffe.Module)
    return loaded


@pytest.mark.parametrize("path", CALLED)
def test_every_parameter_of_a_function_that_users_call_is_described(package: griffe.Module, path: str) -> None:
    called = package[path].final_target if package[path].is_alias else package[path]
    variadic = {griffe.ParameterKind.var_positional, griffe.ParameterKind.var_keyword}
    parameters = {each.name for each in called.parameters if each.kind not in variadic and each.name != "self"}
    sections = called.docstring.parsed if called.docstring else []
    described = {
        each.name
        for section in sections
        if section.kind is griffe.DocstringSectionKind.parameters
        for each in section.value
    }
    assert parameters - described == set()


def _is_module(module: str, name: str) -> bool:
    return type(getattr(import_module(module), name)).__name__ == "module"
