"""The process that hosts XProf on this machine.

Run `python -m … RECORD NAME LOGDIR PORT IDLE_S CACHE_BYTES`.

It listens on 127.0.0.1, and ends after a time without traffic. Its record exists while XProf answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import socket
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from mldiagnostics.errors import MLDiagnosticsError

from mldiagnostics_cli.xprof.idle_server import LOCALHOST, serve
from mldiagnostics_cli.xprof.local import is_server
from mldiagnostics_cli.xprof.stage_plan import is_staged
from mldiagnostics_cli.xprof.stage_server import LOG_DIRECTORY, serving_stage

XPROF = "mldiagnostics_cli.xprof.local_xprof"


def _main(record: str, name: str, log_directory: str, *options: str) -> int:
    path = Path(record)
    listen_port, idle_s, cache_bytes = options

    def write_record(port: int) -> None:
        document = {
            "name": name,
            "logDirectory": log_directory,
            "port": port,
            "pid": os.getpid(),
            "created": time.time(),
        }
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(document))
        partial.replace(path)

    with ExitStack() as ending:
        ending.callback(path.unlink, missing_ok=True)
        shown, stage = log_directory, 0
        if is_staged(log_directory):
            cache = _new_cache()
            ending.callback(shutil.rmtree, cache, ignore_errors=True)
            try:
                stage = ending.enter_context(serving_stage(log_directory, cache, int(cache_bytes)))
            except MLDiagnosticsError as error:
                sys.stderr.write(f"{error}\n")
                return 1
            shown = str(cache / LOG_DIRECTORY)
        command = (sys.executable, "-m", XPROF, "--logdir", shown)
        serving = serve(LOCALHOST, int(listen_port), command, idle_s=float(idle_s), stage=stage, on_ready=write_record)
        return asyncio.run(serving)


def _new_cache() -> Path:
    """Return the directory of this process.

    Those of processes of this machine that were killed are deleted.
    """
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "mldiagnostics/xprof"
    start = f"{socket.gethostname()}-"  # the home may be shared
    for each in root.glob(f"{start}*"):
        pid = each.name.removeprefix(start)
        if pid.isdigit() and not is_server(int(pid)):
            shutil.rmtree(each, ignore_errors=True)
    cache = root / f"{start}{os.getpid()}"
    cache.mkdir(parents=True, exist_ok=True, mode=0o700)
    return cache


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
