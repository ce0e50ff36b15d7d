"""Debian packages: an installation that is interrupted ends, because half-installed packages fail the next one."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from cluster.packages import install
from cluster.paths import E2E
from cluster.progress import ClusterError

APT = """#!/bin/sh
for argument; do case $argument in update) echo started > "$FOLDER/started";; install) exit 0;; esac; done
read line < "$FOLDER/continue"
echo finished > "$FOLDER/finished"
"""


def _apt(folder: Path, script: str) -> dict[str, str]:
    (folder / "apt-get").write_text(script)
    (folder / "apt-get").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}", "FOLDER": str(folder), "MLDIAG_CACHE": str(folder)}


def test_an_interrupted_installation_ends_first(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")
    os.mkfifo(tmp_path / "continue")
    program = "from cluster.packages import install; install(['containerd'])"
    environment = os.environ | _apt(tmp_path, APT) | {"PYTHONPATH": str(E2E)}
    with subprocess.Popen([sys.executable, "-c", program], env=environment, stderr=subprocess.PIPE) as process:
        assert (tmp_path / "started").read_text() == "started\n"
        process.send_signal(signal.SIGINT)
        (tmp_path / "continue").write_text("now\n")
        _, errors = process.communicate()
    assert (tmp_path / "finished").exists()
    assert process.returncode != 0
    assert b"KeyboardInterrupt" in errors


def test_a_failed_installation_quotes_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in _apt(tmp_path, "#!/bin/sh\necho E: Unable to locate package; exit 100\n").items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ClusterError, match=r"(?s)apt-get update` ended with 100:.*Unable to locate package"):
        install(["containerd"])
    install([])
