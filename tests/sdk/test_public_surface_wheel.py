"""The wheels alone, in clean environments of the oldest and the newest Python that this machine has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cluster import ambient
from support.programs.documents import blocks
from support.programs.interpreters import python_of

pytestmark = pytest.mark.peers

ROOT = Path(__file__).parents[2]
UV = ROOT / ".tools/uv/bin/uv"

RECORD_AND_READ = """
import importlib.metadata, sys
from mldiagnostics import machinelearning_run, metric_types, metrics, runs, xprof

@xprof()
def step(number):
    metrics.record(metric_types.MetricType.LOSS, 1 / (1 + number), step=number)

with machinelearning_run("clean", configs={"lr": 0.1}, storage=sys.argv[1], log_system_metrics=False) as run:
    for number in range(100):
        run.step(number)
        step(number)
row = runs.find_run(sys.argv[1], run.run_id)
values = [record.value for record in runs.read_records(sys.argv[1], run.run_id, kinds={"metric"})]
assert values == [1 / (1 + number) for number in range(100)], values
print(row.name, row.phase, row.step, row.configs["user"], *{each.name for each in importlib.metadata.distributions()})
"""

# A module with a missing optional package names the extra or the package.
IMPORT_EVERYTHING = """
import importlib, pkgutil, mldiagnostics
absent = set()
for module in pkgutil.walk_packages(mldiagnostics.__path__, "mldiagnostics."):
    try:
        importlib.import_module(module.name)
    except mldiagnostics.MissingExtraError:
        pass
    except ModuleNotFoundError as error:
        absent.add(error.name.partition(".")[0])
print(*sorted(absent))
"""
OF_OTHERS = {"google", "grpc", "obstore", "opentelemetry", "prometheus_client", "tensorboard"}
OF_OTHERS |= {"jax", "jaxlib", "orbax", "pytorch_lightning", "tensorflow", "torch", "torch_xla", "transformers"}


def run(*command: str | Path, folder: Path | str = "/") -> str:
    variables = ambient.environment() if command[0] == UV else None  # uv finds its cache
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=200, check=False, cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    for member in ("sdk", "shim"):
        run(UV, "build", "-q", "--wheel", "--python", sys.executable, "--out-dir", folder, ROOT / member)
    return {wheel.name.partition("-")[0]: wheel for wheel in folder.glob("*.whl")}


@pytest.fixture(scope="module", params=["oldest", "newest"])
def clean(request: pytest.FixtureRequest, wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with the SDK's wheel and nothing else."""
    folder = tmp_path_factory.mktemp("clean")
    run(UV, "venv", "-q", "--python", python_of(request.param), folder / "venv")
    python = folder / "venv/bin/python"
    run(UV, "pip", "install", "-q", "--no-index", "--python", python, wheels["mldiagnostics"])
    return python


def test_the_wheel_records_and_reads_back_without_any_other_distribution(clean: Path, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(RECORD_AND_READ)
    output = run(clean, "-W", "error", program, tmp_path / "runs")
    assert output == "clean Completed 99 {'lr': 0.1} mldiagnostics\n"


def file_of_page(title: str) -> str:
    """Return a file that the page about images shows."""
    [block] = [each for each in blocks((ROOT / "docs/how-to/images.md").read_text()) if each.title == title]
    return block.text


def test_the_check_of_an_image_passes(clean: Path, tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text(file_of_page("check.py"))
    assert run(clean, "-W", "error", "check.py", folder=tmp_path) == "check Completed mldiagnostics\n"


def test_the_lines_of_the_dockerfile_install_the_wheel(wheels: dict[str, Path], plain_path: Path) -> None:
    lines = [line.removeprefix("RUN ") for line in file_of_page("Dockerfile").splitlines() if line.startswith("RUN ")]
    assert len(lines) == 3
    (plain_path / "requirements.txt").touch()
    shutil.copy(wheels["mldiagnostics"], plain_path)
    script = "\n".join(["export PIP_NO_INDEX=1 PIP_DISABLE_PIP_VERSION_CHECK=1", *lines])
    places = {"/tmp/": f"{plain_path}/", "/opt/": f"{plain_path}/opt/", "python -m": f"{sys.executable} -m"}
    for place, here in places.items():
        script = script.replace(place, here)
    run("bash", "-euc", script, folder=plain_path)
    program = "import importlib.metadata; print(importlib.metadata.version('mldiagnostics'))"
    installed = run(plain_path / "opt/training/bin/python", "-c", program, folder=plain_path)
    assert f"mldiagnostics-{installed.strip()}-" in wheels["mldiagnostics"].name


def test_every_module_is_there_and_of_this_pythons_language(clean: Path) -> None:
    assert set(run(clean, "-W", "error", "-c", IMPORT_EVERYTHING).split()) <= OF_OTHERS


def test_the_package_is_marked_as_typed(clean: Path) -> None:
    [marker] = clean.parents[1].glob("lib/*/site-packages/mldiagnostics/py.typed")
    assert marker.is_file()


def test_the_shim_serves_the_names_of_googles_sdk(clean: Path, wheels: dict[str, Path]) -> None:
    run(UV, "pip", "install", "-q", "--no-index", "--python", clean, wheels["mldiagnostics_shim"])
    program = "from google_cloud_mldiagnostics.core import global_manager as g; print(g.__name__, g.get_current_run())"
    assert run(clean, "-W", "error", "-c", program) == "mldiagnostics.compat.global_manager None\n"
    program = "from ml_goodput_measurement import goodput; print(goodput.BadputType.OTHER.value)"
    assert run(clean, "-c", program) == "11\n"
    assert run(clean, "-m", "mldiagnostics_shim").splitlines() == [
        f"{name}: served by mldiagnostics" for name in ("google_cloud_mldiagnostics", "ml_goodput_measurement")
    ]
    run(UV, "pip", "uninstall", "-q", "--python", clean, "mldiagnostics-shim")
