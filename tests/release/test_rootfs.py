"""The root of an image has Python and its libraries, and nothing that starts other programs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from cluster.paths import E2E

if TYPE_CHECKING:
    from pathlib import Path

SHOW = """
import asyncio, ctypes, os, pwd, shutil, socket, ssl, zlib
libc = ctypes.CDLL(None)
certificates = len(ssl.create_default_context().get_ca_certs())
print(certificates > 50, shutil.which("sh"), pwd.getpwuid(os.getuid()).pw_name, os.access("/data", os.W_OK))
"""


@pytest.mark.root
@pytest.mark.skipif(shutil.which("dpkg-query") is None, reason="roots are made on Debian")
def test_python_runs_in_the_root_as_a_user_without_a_shell(tmp_path: Path) -> None:
    base, venv, root = sys._base_executable, tmp_path / "venv", tmp_path / "root"
    subprocess.run([base, "-m", "venv", "--without-pip", venv], check=True)
    subprocess.run([base, E2E / "release/rootfs.py", root, venv, "/data"], check=True, env={"PATH": os.environ["PATH"]})
    for folder in (root, *(root / part for part in tmp_path.parts[1:2])):
        folder.chmod(0o755)
    environment = {"PATH": str(venv / "bin"), "LANG": "C.UTF-8"}
    command = [shutil.which("chroot"), "--userspec=65532:65532", "--groups=", root, venv / "bin/python", "-c", SHOW]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "True None nonroot True\n", done.stderr
    programs = {path.name for path in root.rglob("*") if path.parent.name in ("bin", "sbin")}
    assert not programs & {"sh", "bash", "apt", "apt-get", "dpkg", "pip", "pip3"}
    assert (root / "var/lib/dpkg/status.d/libc6").read_text().startswith("Package: libc6\n")
