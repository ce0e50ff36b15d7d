"""A fork waits until no thread of ours is half way through an import or the start of TLS, and not for ever."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING

from mldiagnostics.pipeline.forks import wait_for_imports

if TYPE_CHECKING:
    from pathlib import Path

MODULE = "import os, time\nopen('loading', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.001)\nvalue = 7\n"

PROGRAM = """
import os, sys, threading, time
sys.path.insert(0, '.')
import mldiagnostics.pipeline.recorder
from mldiagnostics.pipeline import forks

forks.wait_for_imports.__defaults__ = (60.0,)
threading.Thread(target=lambda: __import__('slow'), name='mldiagnostics-test', daemon=True).start()
while not os.path.exists('loading'):
    time.sleep(0.001)
threading.Timer(0.3, lambda: open('go', 'w').close()).start()
child = os.fork()
if not child:
    import slow
    os._exit(slow.value)
deadline = time.monotonic() + 30
while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < deadline:
    time.sleep(0.01)
if not ended[0]:
    os.kill(child, 9)
print(os.waitstatus_to_exitcode(ended[1]) if ended[0] else 'hangs')
"""


def test_a_child_can_import_what_our_thread_was_loading(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(MODULE)
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout == "7\n"


TLS = """
import os, ssl, sys, threading
import mldiagnostics.pipeline.recorder

begins = threading.Event()
def connect():
    begins.set()
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
threading.Thread(target=connect, name='mldiagnostics-test', daemon=True).start()
begins.wait()
child = os.fork()
if not child:
    __import__('signal').alarm(30)
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    os._exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_child_can_use_the_tls_that_our_thread_was_initialising(tmp_path: Path) -> None:
    for _ in range(5):  # the fork meets the thread in one of two
        command = [sys.executable, "-c", TLS]
        result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
        assert result.stdout == "7\n"


def test_patience_has_an_end(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(MODULE)
    program = PROGRAM.partition("threading.Timer")[0] + (
        "from mldiagnostics.pipeline.forks import wait_for_imports\nprint(wait_for_imports(0.05))\n"
        "open('go', 'w').close()\n"
    )
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True)
    assert result.stdout == "False\n"
    assert "mldiagnostics-test" in result.stderr


def test_without_a_loading_thread_a_fork_does_not_wait() -> None:
    began = time.process_time()
    assert wait_for_imports()
    assert time.process_time() - began < 1
