"""Entry point of the webhook.

Exit status 0: stopped by a signal. 1: failed, see the log. 2: invalid settings.
"""

import asyncio
import logging
import os
import sys
from typing import Final

import uvloop
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube.process import logs
from mldiagnostics_kube.process.garbage import exempt_loaded

from mldiagnostics_webhook import config, replica

_log: Final = logging.getLogger(__name__)


def main() -> int:
    """Run one replica with the settings of the environment and return the exit status."""
    try:
        settings = config.load(os.environ)
        logs.configure(settings.log_level)
        exempt_loaded()
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(replica.run(settings))
    except ConfigurationError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except Exception:  # noqa: BLE001 - the last handler of the process
        _log.exception("The webhook failed")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
