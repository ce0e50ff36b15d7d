"""Descriptions of hardware, without side effects on the framework."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mldiagnostics.configs.hardware import UNKNOWN, hardware, is_known
from support.programs import environments

SDK = Path(__file__).parents[3] / "sdk/src"
IMPORT_S = 280
"""Deadline of a program that imports torch while its gigabytes are not in memory yet and both cores are busy."""
PEERS_KEYS = {"device_type", "num_slices", "devices_per_slice", "accelerator_type"}


def run_program(program: str, folder: Path, *, python: Path = Path(sys.executable)) -> Any:
    done = subprocess.run(
        [python, "-c", f"import json\nfrom mldiagnostics.configs.hardware import hardware\n{program}"],
        env={
            **os.environ,
            "PYTHONPATH": str(SDK),
            "CUDA_VISIBLE_DEVICES": "",
            "JAX_PLATFORMS": "cpu",
            "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        },
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=IMPORT_S,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])  # other lines are those of a library


def test_a_tpu_host_is_described_by_its_environment(tmp_path: Path) -> None:
    environ = {
        "TPU_ACCELERATOR_TYPE": "v5p-16",
        "TPU_TOPOLOGY": "2x2x2",
        "TPU_WORKER_HOSTNAMES": "a,b",
        "MEGASCALE_NUM_SLICES": "3",
    }
    description = run_program(f"print(json.dumps(hardware({environ})))", tmp_path)
    expected = {"device_type": "v5p-16", "accelerator_type": "tpu", "topology": "2x2x2"}
    assert description.items() >= {**expected, "num_slices": "3", "hosts_per_slice": "2"}.items()
    assert not is_known(description)


@given(st.dictionaries(st.sampled_from(["TPU_TYPE", "TPU_TOPOLOGY", "NUM_SLICES", "TPU_WORKER_HOSTNAMES"]), st.text()))
def test_the_four_keys_of_googles_sdk_are_always_there(environ: dict[str, str]) -> None:
    description = hardware(environ)
    assert description.keys() >= PEERS_KEYS
    assert all(isinstance(value, str) and value for value in description.values() if value not in environ.values())


@pytest.mark.peers
def test_jax_is_read_only_after_it_has_initialised_its_devices(tmp_path: Path) -> None:
    before, initialized, after = run_program(
        """
import jax
from jax._src import xla_bridge
before = hardware()
initialized = xla_bridge.backends_are_initialized()
jax.devices()
print(json.dumps([before, initialized, hardware()]))
""",
        tmp_path,
    )
    assert (before["device_type"], before["devices_per_slice"], initialized) == (UNKNOWN, UNKNOWN, False)
    expected = {"device_type": "cpu", "accelerator_type": "cpu", "num_slices": "1", "devices_per_slice": "4"}
    assert after.items() >= {**expected, "device_count": "4", "devices_per_host": "4", "host_count": "1"}.items()
    assert is_known(after)


@pytest.mark.peers
def test_torch_without_accelerators_has_the_cpu(tmp_path: Path) -> None:
    try:
        python = environments.interpreter("torch")
    except environments.Unavailable as error:
        pytest.skip(f"no environment torch: {error}")
    alone, together = run_program(
        """
import torch
alone = hardware()
torch.distributed.init_process_group("gloo", store=torch.distributed.HashStore(), rank=0, world_size=1)
print(json.dumps([alone, hardware()]))
""",
        tmp_path,
        python=python,
    )
    assert alone.items() >= {"device_type": "cpu", "accelerator_type": "cpu", "devices_per_slice": UNKNOWN}.items()
    assert together.items() >= {"device_type": "cpu", "num_slices": "1", "devices_per_slice": "1"}.items()
    assert is_known(together)


def test_a_module_that_only_has_the_name_of_a_framework_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "torch.py").touch()
    description = run_program("import torch\nprint(json.dumps(hardware()))", tmp_path)
    assert description["device_type"] == UNKNOWN
