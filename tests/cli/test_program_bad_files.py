"""`profiles`, `xprof`, `trace` and `goodput` with bad files: one message with a remedy, and nothing half-made."""

from __future__ import annotations

import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_cli.exit_codes import INTERRUPTED

if TYPE_CHECKING:
    from pathlib import Path

    from support.programs.command_line import CommandLine

ON_KUBERNETES = ("--on", "kubernetes", "--image", "xprof", "--dry-run")
LINE = b"2026-11-22T10:00:00Z step 1 of the training loop\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("profiles", "get", "notes"),
            "notes: has no profile sessions; `mldiag profiles list` shows the sessions of all",
        ),
        (("profiles", "download", "notes/slow"), "notes/slow: has no session 'slow'; `mldiag profiles list` shows"),
        (
            ("profiles", "adopt", "notes", "--run", "notes"),
            "notes: has no traces; pass a directory with plugins/profile",
        ),
        (
            ("profiles", "download", "notes", "--to", "gs://b/r"),
            "--to gs://b/r: not a directory of this machine; pass a local path",
        ),
        pytest.param(("xprof", "create", "none"), "none: no such directory; pass the log", marks=pytest.mark.peers),
        (
            ("xprof", "create", "logs", *ON_KUBERNETES),
            "logs: a pod cannot read it; pass the URL of a bucket, or volume://",
        ),
        (
            ("xprof", "create", "volume:///a", *ON_KUBERNETES),
            "volume:///a: lies in a claim; pass its name with --claim",
        ),
        (
            ("xprof", "connect", "logs", "--on", "local"),
            "logs: no server of XProf has this name or log directory; `mldiag",
        ),
        (("trace", "binary.log"), "binary.log.trace.json.gz: not written: no entry of the sources is shown; "),
        (("trace", "none.log"), "none.log: no such file; pass the path of a log, a run, or - for standard input"),
        (("trace", "notes"), "notes: has no logs; pass files, or a directory with"),
        (("goodput", "binary.log"), "binary.log: no goodput events, and "),
        (("goodput", "notes", "--out", "none/page.html", "-o", "html"), "notes: "),
    ],
)
def test_one_message_says_what_to_do(mldiag: CommandLine, arguments: tuple[str, ...], message: str) -> None:
    folder = mldiag.folder
    (folder / "notes").mkdir()
    (folder / "notes/readme.md").write_text("not a profile")
    (folder / "binary.log").write_bytes(bytes(range(256)) * 16)
    bad = folder / "logs/plugins/profile/bad"
    bad.mkdir(parents=True)
    (bad / "host.xplane.pb").write_bytes(b"\xff" * 64)
    before = files_in(folder)
    shown = mldiag.failure(*arguments, env={"HOME": str(folder / "home"), "XDG_STATE_HOME": str(folder / "state")})
    assert message in shown
    assert "; " in shown, "a message has a remedy"
    assert files_in(folder) == before


def test_ctrl_c_leaves_no_part_of_a_trace(mldiag: CommandLine) -> None:
    with subprocess.Popen(
        [mldiag.script, "trace", "-", "--out", "whole.json"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=mldiag.folder,
        env=mldiag.environment(),
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(LINE * 100_000)  # more than a pipe holds, so it has read most of them
        process.stdin.flush()
        process.send_signal(signal.SIGINT)
        with suppress(BrokenPipeError):
            process.stdin.write(LINE)
            process.stdin.flush()
        assert (process.wait(60), process.stdout.read(), process.stderr.read().strip()) == (INTERRUPTED, b"", b"")
    assert files_in(mldiag.folder) == set()


def files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
