"""Start of the operator: settings, logs, one replica; the exit status says how it ended.

0: told to stop, or not the leader any more. 1: something broke, the log says what. 2: the settings are wrong.
"""

import asyncio
import os
import sys

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_kube import logs

from mldiagnostics_operator import config, replica


def main() -> int:
    """Run one replica with the settings of the environment; gives the exit status."""
    try:
        settings = config.load(os.environ)
        logs.configure(settings.log_level)
        return asyncio.run(replica.run(settings))
    except ConfigurationError as fault:
        sys.stderr.write(f"{fault}\n")
        return 2


if __name__ == "__main__":
    sys.exit(main())
