from __future__ import annotations

import os
import subprocess
import sys

COMMAND = (sys.executable, "-m", "mldiagnostics_webhook")


def run(**environ: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environ}
    return subprocess.run(COMMAND, env=env, capture_output=True, text=True, check=False, timeout=120)


def test_invalid_settings_are_all_reported() -> None:
    process = run(MLDIAG_HTTP_PORT="high", MLDIAG_LOG_LEVEL="loud")
    assert process.returncode == 2
    assert "MLDIAG_HTTP_PORT: 'high'" in process.stderr
    assert "MLDIAG_LOG_LEVEL: 'loud'" in process.stderr
    assert "Traceback" not in process.stderr


def test_without_an_api_server_it_exits() -> None:
    process = run()
    assert process.returncode == 2
    assert "/.kube/config': no such file; set KUBECONFIG" in process.stderr
    assert "Traceback" not in process.stderr
