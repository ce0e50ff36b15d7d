from __future__ import annotations

import os
import subprocess
import sys

COMMAND = (sys.executable, "-m", "mldiagnostics_webhook")


def run(**environ: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **environ}
    return subprocess.run(COMMAND, env=env, capture_output=True, text=True, check=False, timeout=120)


def test_wrong_settings_end_it_with_all_faults() -> None:
    ended = run(MLDIAG_HTTP_PORT="high", MLDIAG_LOG_LEVEL="loud")
    assert ended.returncode == 2
    assert "MLDIAG_HTTP_PORT: 'high'" in ended.stderr
    assert "MLDIAG_LOG_LEVEL: 'loud'" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_no_way_to_a_cluster_ends_it() -> None:
    ended = run()
    assert ended.returncode == 2
    assert "cannot read the credentials of the API server" in ended.stderr
    assert "Traceback" not in ended.stderr
