"""Start of the webhook: settings, logs, one replica; the exit status says how it ended.

0: told to stop. 1: something broke, the log says what. 2: the settings are wrong.
"""

import asyncio
import logging
import os
import sys
from typing import Final

import uvloop
from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube import logs

from mldiagnostics_webhook import config, replica

_log: Final = logging.getLogger(__name__)


def main() -> int:
    """Run one replica with the settings of the environment; gives the exit status."""
    try:
        settings = config.load(os.environ)
        logs.configure(settings.log_level)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(replica.live(settings))
    except ConfigurationError as fault:
        sys.stderr.write(f"{fault}\n")
        return 2
    except Exception:  # noqa: BLE001 - the last to see it
        _log.exception("The webhook cannot go on")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
