"""Real traces of JAX 0.11 on an H100, cut to ten steps, have the verdict that the program was made for.

Each step multiplies matrices for 6 ms, after 64 MB of pageable memory were copied to the device for 12 ms.
"""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest
from mldiagnostics.store import open_store
from mldiagnostics_diagnosis.sessions import diagnose_session

TRACES = Path(__file__).parent / "h100"


@pytest.mark.parametrize(
    ("trace", "code", "operation"),
    [
        ("transfer", "TransferBound", "H2D Dispatch"),
        ("transfer-async", "TransferBound", "H2D Dispatch"),
        ("input", "InputBound", "load_batch"),
        ("callback", "DebugCallback", "pure_callback.1"),
    ],
)
def test_the_verdict_on_a_gpu(tmp_path: Path, trace: str, code: str, operation: str) -> None:
    folder = tmp_path / "plugins/profile/s1"
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(lzma.decompress((TRACES / f"{trace}.xplane.pb.xz").read_bytes()))
    result = diagnose_session(open_store(str(tmp_path)), "s1")
    (summary,) = result.summaries
    assert (summary.platform, summary.steps is not None) == ("gpu", True)
    assert summary.coverage > 0.95
    verdict = result.diagnosis.verdict
    assert (verdict.code, verdict.operation) == (code, operation)


def test_the_memory_of_a_gpu_is_not_pinned_memory_of_its_host(tmp_path: Path) -> None:
    folder = tmp_path / "plugins/profile/s1"
    folder.mkdir(parents=True)
    (folder / "host.xplane.pb").write_bytes(lzma.decompress((TRACES / "callback.xplane.pb.xz").read_bytes()))
    [summary] = diagnose_session(open_store(str(tmp_path)), "s1").summaries
    assert summary.memory
    assert (summary.memory.peak_bytes, summary.memory.limit_bytes) == (1_477_193_472, 63_763_906_560)
