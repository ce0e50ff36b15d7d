"""Environments of other versions of Python, with the locked dependencies and the members."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
UV = ROOT / ".tools/uv/bin/uv"
MEMBERS = ("sdk", "shim", "api", "kube", "diagnosis", "operator", "webhook", "cli", "view")


def python_of(version: str) -> Path | None:
    """Return the interpreter of a version's environment, made where it is missing; None if uv cannot make it.

    Args:
        version: Such as "3.13"; "" is the version that runs.
    """
    if not version:
        return Path(sys.executable)
    folder = ROOT / f".tools/python{version}"
    python, ready = folder / "bin/python", folder / ".ready"
    members = [part for member in MEMBERS for part in ("-e", f"./{member}")]
    commands: list[list[str | Path]] = [
        [UV, "venv", "-q", "--allow-existing", "--python", version, folder],
        [UV, "pip", "sync", "-q", "--python", python, "--require-hashes", "requirements.lock"],
        [UV, "pip", "install", "-q", "--python", python, "--no-deps", *members],
    ]
    if not ready.exists():
        for command in commands:
            if subprocess.run(command, cwd=ROOT, check=False, stdout=subprocess.DEVNULL).returncode:
                return None
        ready.touch()
    return python
