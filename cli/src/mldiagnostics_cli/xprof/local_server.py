"""The process that hosts XProf on this machine.

Run `python -m … RECORD NAME LOGDIR PORT IDLE_S`.

It listens on 127.0.0.1, and ends after a time without traffic. Its record exists while XProf answers.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path

from mldiagnostics_cli.xprof.idle_server import LOCALHOST, serve

__all__: list[str] = []

XPROF = "mldiagnostics_cli.xprof.local_xprof"


def _main(record: str, name: str, log_directory: str, port: str, idle_s: str) -> int:
    path = Path(record)

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

    command = (sys.executable, "-m", XPROF, "--logdir", log_directory)
    try:
        return asyncio.run(serve(LOCALHOST, int(port), command, idle_s=float(idle_s), on_ready=write_record))
    finally:
        path.unlink(missing_ok=True)


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
