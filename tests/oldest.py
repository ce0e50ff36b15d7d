"""Run the unit tests with the oldest versions that the members promise to work with.

python tests/oldest.py [sdk] [members]
    sdk       the SDK and the shim on Python 3.10
    members   every member on Python 3.11 with the lowest version of each direct dependency
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
UV = ROOT / ".tools/uv/bin/uv"
SDK = "./sdk[capture,cloud-logging,cloud-monitoring,gcs,gpu,otlp,prometheus,tensorboard]"
MEMBERS = ("shim", "api", "kube", "diagnosis", "operator", "webhook", "view", "cli")
UNIT = "not apiserver and not cluster and not peers"


@dataclass(frozen=True)
class Versions:
    """One interpreter, the packages in its environment, and the tests that run there."""

    python: str
    install: tuple[str, ...]
    tests: tuple[str, ...]


TEST_TOOLS = ("hypothesis", "pytest>=9", "pytest-asyncio", "pytest-randomly", "pytest-timeout", "pyyaml", "rich")
VERSIONS = {
    "sdk": Versions(
        "3.10",
        ("-e", SDK, "-e", "./shim", *TEST_TOOLS, "duckdb", "jax", "pandas", "orjson"),
        (
            # Without the repository's conftest.py, and so without its profile: no deadlines on a busy machine.
            "--confcutdir=tests/sdk", "--hypothesis-profile=ci",
            "-Wignore:You are using a:FutureWarning", "tests/sdk", "tests/shim",
            # The newest jaxlib for 3.10 lacks fields of the messages that these tests exchange with a server.
            "--ignore=tests/sdk/capture", "--ignore=tests/sdk/profiling",
            "--ignore=tests/sdk/compat/test_collect_profile.py",
            # The newest DuckDB for 3.10 has another type for labels.
            "--deselect=tests/sdk/sinks/test_segments.py::test_duckdb_reads_a_run_in_one_line_with_one_type_for_each_column",
        ),
    ),
    "members": Versions(
        "3.11",
        (
            "--resolution=lowest-direct", "-e", SDK,
            *(part for member in MEMBERS for part in ("-e", f"./{member}")),
            "--group=dev", "--group=peers",
        ),
        (
            "tests/api", "tests/kube", "tests/diagnosis", "tests/operator", "tests/webhook", "tests/cli", "tests/view",
            "tests/sdk/capture", "tests/sdk/store",
            # The official client needs newer versions.
            "--ignore-glob=*_oracle.py",
        ),
    ),
}  # fmt: skip


def run(name: str) -> bool:
    """Make the environment, run its tests, and return whether they passed."""
    versions, folder = VERSIONS[name], ROOT / ".tools/oldest" / name
    python = folder / "bin/python"
    print(f"\n==> {name}: Python {versions.python}", flush=True)
    environment = {**os.environ, "PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    for command in (
        [UV, "venv", "-q", "--allow-existing", "--python", versions.python, folder],
        [UV, "pip", "install", "-q", "--python", python, *versions.install],
        [python, "-m", "pytest", "-q", "-m", UNIT, *versions.tests],
    ):
        if subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode:
            return False
    return True


def main(names: list[str]) -> int:
    """Run the chosen sets of versions, all if none is named; return 1 if one failed."""
    if unknown := [name for name in names if name not in VERSIONS]:
        print(f"{unknown[0]}: not a set of versions; choose from {', '.join(VERSIONS)}", file=sys.stderr)
        return 2
    passed = [run(name) for name in names or VERSIONS]
    return int(not all(passed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
