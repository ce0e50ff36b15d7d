"""Tests do not see the user's home and variables, and leave both as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from cluster import ambient
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[2]
NOWHERE = "http://127.0.0.1:9"
TRAPS = {
    ".local/state/mldiagnostics/spool/4f6c/records.jsonl": "not a record\n",
    ".kube/config": "not: [a kubeconfig",
    ".config/gcloud/active_config": "trap",
    ".config/gcloud/configurations/config_trap": "[core]\nproject = of-the-user\n",
    ".config/gcloud/application_default_credentials.json": "not credentials",
    ".config/pip/pip.conf": f"[global]\nindex-url = {NOWHERE}\n",
    ".netrc": "machine 127.0.0.1 login user password secret\n",
    ".pythonstartup": "raise SystemExit(9)\n",
}
VARIABLES = {
    "http_proxy": NOWHERE,
    "HTTPS_PROXY": NOWHERE,
    "KUBERNETES_SERVICE_HOST": "127.0.0.1",
    "KUBERNETES_SERVICE_PORT": "9",
    "GOOGLE_CLOUD_PROJECT": "of-the-user",
    "CLOUDSDK_CORE_PROJECT": "of-the-user",
    "MLDIAG_STORAGE": "/nowhere/storage",
    "OTEL_EXPORTER_OTLP_ENDPOINT": NOWHERE,
    "RANK": "7",
    "NO_COLOR": "1",
    "COLUMNS": "31",
    "TZ": "Pacific/Chatham",
    "LC_ALL": "C",
    "LANGUAGE": "fr",
}
OWN = {"TZ": "UTC", "LC_ALL": "C.UTF-8"}
# The user's folders are named by variables too, as some machines do.
FOLDERS = {
    "XDG_STATE_HOME": ".local/state",
    "XDG_CONFIG_HOME": ".config",
    "KUBECONFIG": ".kube/config",
    "CLOUDSDK_CONFIG": ".config/gcloud",
    "GOOGLE_APPLICATION_CREDENTIALS": ".config/gcloud/application_default_credentials.json",
    "NETRC": ".netrc",
    "PIP_CONFIG_FILE": ".config/pip/pip.conf",
}
PROGRAM = """
import json, os, pathlib, signal, tempfile, time
ignored = [each.name for each in (signal.SIGINT, signal.SIGHUP) if signal.getsignal(each) is signal.SIG_IGN]
home, temporary = str(pathlib.Path.home()), tempfile.gettempdir()
print(json.dumps([dict(os.environ), home, temporary, time.tzname[0], os.umask(0), ignored]))
"""
THIS = "tests/layout/test_own_world.py::test_a_test_and_its_programs_have_a_world_of_their_own"
LOOK_AROUND = ["tests/sdk/test_upload.py", "tests/sdk/test_cloud.py"]
"""Modules whose programs look for a spool, a storage and a project."""


def test_a_test_and_its_programs_have_a_world_of_their_own() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    variables, home, temporary, zone, umask, ignored = json.loads(done.stdout)
    assert not variables.items() & VARIABLES.items()
    assert not variables.keys() & FOLDERS.keys()
    assert (variables["LC_ALL"], zone, umask) == (OWN["LC_ALL"], time.tzname[0], 0o022)
    assert (home, temporary) == (str(Path.home()), tempfile.gettempdir())
    assert Path(home).parent == Path(temporary).parent
    assert home != variables.get(f"{ambient.PREFIX}HOME")
    assert not list(Path(home).iterdir())
    assert ignored == []
    (Path(home) / "written").mkdir()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path / "home of the user"
    for name, text in TRAPS.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    return home


def run_tests(home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run pytest as a user with this home does, whose cache is elsewhere."""
    folders = {name: str(home / folder) for name, folder in FOLDERS.items()}
    # Without the folder of bytecode its programs compile all sources once more.
    names = ("PATH", "MLDIAG_CACHE", "PYTHONPYCACHEPREFIX")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(
        ["sh", "-c", 'umask 077; trap "" INT HUP; exec "$@"', "sh", *command, *arguments],
        cwd=ROOT,
        env={"HOME": str(home), **VARIABLES, **folders, **kept},
        capture_output=True,
        text=True,
        check=False,
    )


def contents(folder: Path) -> dict[str, tuple[int, str]]:
    """Return mode and text of each file below a folder."""
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_text() if path.is_file() else "")
        for path in folder.rglob("*")
    }


def test_tests_pass_beside_the_traps_of_a_home_and_leave_it_as_it_is(home: Path) -> None:
    before = contents(home)
    done = run_tests(home, "-m", "not root", THIS, *LOOK_AROUND)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    assert contents(home) == before


NAMES = st.sampled_from(["HOME", "TMPDIR", "KUBECONFIG", "PATH", "https_proxy", "TZ"])


@given(st.dictionaries(NAMES, st.text()), st.sets(NAMES))
def test_hidden_variables_are_those_of_the_user_again_for_programs_that_fetch(
    users: dict[str, str], kept: set[str]
) -> None:
    hidden = ambient.hidden(users, dict.fromkeys(kept, ""))
    assert {name for name in hidden if not name.startswith(ambient.PREFIX)} == kept & users.keys()
    own = {"HOME": "/of/a/test", "TMPDIR": "/of/a/test/tmp", "TZ": "UTC"}
    restored = ambient.restored(hidden | own | {f"{ambient.PREFIX}SET": "yes"})
    assert restored.items() >= {name: users[name] for name in users.keys() - (kept & own.keys())}.items()
