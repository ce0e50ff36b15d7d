"""The process that hosts XProf in a pod over a bucket that XProf cannot read.

Run `python -m … PORT IDLE_S CACHE_BYTES URL CACHE`, in an image that has the command `xprof` too. It exits with 0 only
after the idle time, as `idle_server` does in any image.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from mldiagnostics.errors import MLDiagnosticsError

from mldiagnostics_cli.xprof.idle_server import serve
from mldiagnostics_cli.xprof.stage_server import LOG_DIRECTORY, serving_stage


def _main(port: str, idle_s: str, cache_bytes: str, url: str, cache: str) -> int:
    directory = Path(cache)
    try:
        with serving_stage(url, directory, int(cache_bytes)) as stage:
            command = ("xprof", "--logdir", str(directory / LOG_DIRECTORY))
            return asyncio.run(serve(None, int(port), command, idle_s=float(idle_s), stage=stage))
    except MLDiagnosticsError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
