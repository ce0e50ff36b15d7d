"""Demo without a cluster: the example's training program, the real capture engine, the real reader."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cluster.paths import E2E, REPOSITORY
from demo.on_cluster import capture_of

EXAMPLE = REPOSITORY / "examples/jax-training"


@pytest.mark.peers
def test_without_a_cluster_two_local_processes_are_profiled_and_read(tmp_path: Path) -> None:
    environment = os.environ | {"DEMO": "local", "DEMO_OUTPUT": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "demo"],
        cwd=E2E,
        env=environment,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    files = list(tmp_path.glob("plugins/profile/*/*.xplane.pb"))
    assert len(files) == 2
    for file in files:
        read = re.search(rf"{file.name.removesuffix('.xplane.pb')} +(\d+) +[\d.]+ ms", done.stdout)
        assert read, done.stdout
        assert int(read[1]) > 0  # how many steps two seconds have depends on the machine
    for command in ("capture 127.0.0.1:", "runs get ", "goodput "):
        assert f"$ mldiag {command}" in done.stdout, done.stdout
    assert f"mldiag view {shlex.quote(f'{tmp_path}/runs')}\n" in done.stdout, done.stdout
    assert re.search(r"127\.0\.0\.1:\d+ +Captured", done.stdout), done.stdout
    assert re.search(r"goodput \d+\.\d %", done.stdout), done.stdout
    assert re.search(rf"First result after .*; its files stay in {tmp_path}", done.stderr), done.stderr


def test_the_capture_uses_the_six_fields_of_the_peer() -> None:
    capture = yaml.safe_load(capture_of(["a-1", "b-2"], name="try", namespace="ml"))
    assert capture["metadata"] == {"name": "try", "namespace": "ml"}
    fields = {"podName", "podNamespace", "capturePort", "durationSeconds", "profiler", "storageLocation"}
    assert set(capture["spec"]["triggerCapture"]) == fields
    assert capture["spec"]["triggerCapture"]["podName"] == "a-1,b-2"
    assert capture["spec"]["triggerCapture"]["podNamespace"] == "ml"


def test_the_pods_of_the_example_publish_the_profiler_port() -> None:
    jobset = yaml.safe_load((EXAMPLE / "jobset.yaml").read_text())
    (container,) = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"]
    capture = yaml.safe_load((EXAMPLE / "capture.yaml").read_text())
    (port,) = container["ports"]
    assert port["name"].startswith("mldiag-prof")
    assert port["containerPort"] == capture["spec"]["triggerCapture"]["capturePort"]
