"""Python environments for peers with conflicting dependencies: made on demand, kept outside the repository.

PYTHONPATH=e2e:tests python -m support.programs.environments [NAME…]    make them now and print their interpreters
"""

import fcntl
import shutil
import subprocess
import sys
from pathlib import Path

from cluster import ambient
from cluster.paths import E2E, cache

REQUIREMENTS = {
    # First, as the unit tests need it while the others are made.
    "moto": tuple((E2E / "tools/moto/requirements.txt").read_text().split()),
    "jax-0.8": ("jax==0.8.2", "jaxlib==0.8.2", "grpcio==1.85.1"),
    "dashboards": ("google-cloud-monitoring-dashboards==3.2.0",),
    "loggers": ("tensorboardX==2.6.5", "trackio==0.43.0"),
    "flax": ("flax==0.12.8", "jax==0.10.2", "optax==0.2.8"),
    "notebook": ("ipykernel==7.4.0", "jupyter-client==8.10.0"),
    "peer-goodput": ("ml-goodput-measurement==0.2.3",),
    "orbax": ("orbax-checkpoint==0.12.8", "jax==0.10.2"),
    "peer-sdk": ("google-cloud-mldiagnostics==1.0.10",),
    "site": ("zensical==0.0.73",),
    "tensorflow": ("tensorflow-cpu==2.21.0",),
    # The index has no build for CPUs only: this is 3.5 GB to load and 7 GB on the disk. torch_xla wants this torch.
    "torch": ("torch==2.9.0", "torch_xla==2.9.0", "numpy==2.4.6", "grpcio==1.85.1"),
    "trackers": ("mlflow-skinny==3.17.2", "wandb==0.31.0"),
    # The same torch as above: from the installer's cache, that costs neither time nor room.
    "trainers": (
        *("torch==2.9.0", "numpy==2.4.6"),
        *("accelerate==1.15.0", "pytorch-lightning==2.6.6", "transformers==5.23.0"),
    ),
}
OF_BENCHMARKS = {"aim": ("aim==3.29.1",), "azure-blobs": ("azure-storage-blob==12.31.1",)}
"""Made when a benchmark needs them, not before the tests."""
_PYTHON = "3.11"
_REPOSITORY = Path(__file__).parents[3]


class Unavailable(Exception):
    """An environment could not be made; the message quotes the installer."""


def interpreter(name: str) -> Path:
    """Return the Python of an environment, making it first where needed (minutes). Raises `Unavailable`."""
    folder = _cache() / name
    folder.parent.mkdir(parents=True, exist_ok=True)
    python, complete = folder / "bin/python", folder / "complete"
    requirements = (REQUIREMENTS | OF_BENCHMARKS)[name]
    wanted = "\n".join((_PYTHON, *requirements))
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.is_file() or complete.read_text() != wanted:
            shutil.rmtree(folder, ignore_errors=True)
            _uv("venv", "--python", _PYTHON, str(folder))
            # The first import of torch compiles 9000 files otherwise, within the deadline of some test.
            _uv("pip", "install", "--compile-bytecode", "--python", str(python), *requirements)
            complete.write_text(wanted)
    return python


def _cache() -> Path:
    return cache() / "envs"


def _uv(*arguments: str) -> None:
    own = _REPOSITORY / ".tools/uv/bin/uv"
    uv = str(own) if own.exists() else shutil.which("uv")
    if uv is None:
        raise Unavailable("uv is not installed: run make setup")
    done = subprocess.run(
        [uv, "--quiet", *arguments], env=ambient.environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Unavailable(f"uv {' '.join(arguments)}: {done.stderr.strip()}")


if __name__ == "__main__":
    for each in sys.argv[1:] or REQUIREMENTS:
        print(interpreter(each))
