"""Entry point of the operator: read the settings, configure logs, run one replica.

Exit status 0: stopped by a signal, or for a managed add-on. 1: a failure, which the log names. 2: invalid settings.
"""

import asyncio
import os
import sys
from typing import Final

import uvloop
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube.process import logs
from mldiagnostics_kube.process.garbage import exempt_loaded

from mldiagnostics_operator import config, replica

SWITCH_INTERVAL_S: Final = 0.0005
"""A thread that writes a file gives the interpreter back after this time.

The event loop gives it up for each gzip body and TLS record, and waits for it ten times as long with Python's default.
"""


def main() -> int:
    """Run one replica with the settings of the environment; return the exit status."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    try:
        settings = config.load(os.environ)
        logs.configure(settings.log_level)
        exempt_loaded()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:  # asyncio's own holds 256 KiB for each TLS
            return runner.run(replica.run(settings))
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
