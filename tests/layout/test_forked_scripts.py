"""A forked script has the world of a script that is started, and ends as one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.programs.forked_scripts import run_script
from support.programs.processes import eventually
from support.suite.isolation import of_programs
from support.suite.processor_time import used_s

ROOT = Path(__file__).parents[2]
LIMIT_S = 120.0
WORLD = """
import locale, os, signal, sys, tempfile, threading, time
print(__name__, __file__, sys.argv, sys.path, sys.flags, locale.getlocale())
print(os.getcwd(), sorted(os.environ.items()), os.getpgrp(), os.getsid(0), os.umask(0))
print(sorted(os.listdir("/proc/self/fd")), [os.readlink(f"/proc/self/fd/{file}")[:9] for file in range(3)])
print(time.localtime(0), time.tzname, tempfile.gettempdir(), os.path.expanduser("~"))
print([(number, signal.getsignal(number)) for number in signal.valid_signals()], signal.pthread_sigmask(0, []))
for file in (sys.stdin, sys.stdout, sys.stderr):
    print(file.name, file.mode, file.encoding, file.errors, file.line_buffering, file.isatty(), file.seekable())
print(threading.active_count(), len(os.listdir("/proc/self/task")), file=sys.stderr)
"""


def both(folder: Path, source: str, env: dict[str, str]) -> list[subprocess.CompletedProcess[str]]:
    """Run a script in a fork and as a process of its own."""
    script = folder / "script.py"
    script.write_text(f"#!{sys.executable}\n{source}")
    script.chmod(0o755)
    command: list[str | Path] = [script, "--option", "ä"]
    forked = run_script(command, cwd=folder, env=env, limit_s=LIMIT_S)
    started = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    return [forked, started]


@pytest.mark.parametrize(
    "env", [{}, {"TZ": "Asia/Tokyo", "X": "\n"}, {"PYTHONIOENCODING": "ascii:replace"}, {"LC_ALL": "C"}]
)
def test_the_world_of_a_fork_is_that_of_a_start(tmp_path: Path, env: dict[str, str]) -> None:
    forked, started = both(tmp_path, WORLD, of_programs() | env)
    assert vars(forked) == vars(started)
    assert started.returncode == 0, started.stderr


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("sys.exit(3)", 3),
        ("sys.exit('a message')", 1),
        ("os._exit(4)", 4),
        ("os.kill(os.getpid(), 9)", -9),
        ("signal.signal(2, signal.SIG_DFL); os.kill(os.getpid(), 2)", -2),
        ("os.close(1)", 120),
        ("sys.stdout.write('x' * 10**6); sys.stderr.write('y' * 10**6)", 0),
        ("threading.Thread(target=lambda: (threading.main_thread().join(), print('last'))).start()", 0),
    ],
)
def test_a_fork_ends_as_a_start(tmp_path: Path, end: str, code: int) -> None:
    source = "import atexit, os, signal, sys, threading\natexit.register(print, 'at exit')\nprint('begun\\r')\n"
    forked, started = both(tmp_path, source + end, of_programs())
    assert vars(forked) == vars(started)
    assert forked.returncode == code


def test_the_time_of_a_fork_counts(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os\nwhile sum(os.times()[:2]) < 0.5: pass")
    before_s = used_s()
    run_script([script], cwd=tmp_path, env=of_programs(), limit_s=LIMIT_S)
    assert used_s() >= before_s + 0.5


def test_a_script_that_exceeds_its_limit_is_killed(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("import signal\nprint('waits', flush=True)\nsignal.pause()")
    folder = tmp_path / "folder"
    folder.mkdir()
    with pytest.raises(subprocess.TimeoutExpired):
        run_script([script], cwd=folder, env=of_programs(), limit_s=2.0)
    eventually(lambda: folder not in working_directories())


def working_directories() -> set[Path]:
    """Return those of all processes that this user can see."""
    directories = set()
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            directories.add(link.readlink())
        except OSError:  # it has ended, or is another user's
            continue
    return directories


@pytest.mark.parametrize("end", ["", "os.kill(os.getpid(), 9)"])
def test_the_forking_process_ends_with_its_caller(tmp_path: Path, end: str) -> None:
    script = tmp_path / "script.py"
    script.write_text("import os\nprint(os.getppid())")
    source = (
        "import os, sys\nfrom support.programs.forked_scripts import run_script\n"
        "done = run_script(sys.argv[1:], cwd='.', env={'PATH': os.environ['PATH']}, limit_s=120)\n"
        "sys.stdout.write(done.stdout + done.stderr)\nsys.stdout.flush()\n"
    )
    caller = subprocess.run(
        [sys.executable, "-c", source + end, script],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": f"{ROOT / 'tests'}:{ROOT / 'e2e'}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    process = Path("/proc") / caller.stdout.strip()
    assert process.name.isdigit(), caller
    eventually(lambda: not process.exists() or not (process / "cmdline").read_bytes())
