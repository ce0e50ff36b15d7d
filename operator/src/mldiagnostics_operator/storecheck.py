"""`helm test`: check the default storage with the operator's own settings."""

import asyncio
import os
import sys
from typing import Final

from mldiagnostics.errors import MLDiagnosticsError

from mldiagnostics_operator import config
from mldiagnostics_operator.storage import LogDirectory, Storage

DEADLINE_S: Final = 60.0


async def _checked(directory: LogDirectory) -> str:
    async with asyncio.timeout(DEADLINE_S):
        return await directory.check()


def main() -> int:
    """Check the default storage, print the result and return the exit status."""
    try:
        settings = config.load(os.environ)
        location = settings.policy.default_storage
        if location is None:
            sys.stdout.write("There is no default storage: every capture names its own.\n")
            return 0
        storage = Storage(settings.volume_root)
        try:
            url = asyncio.run(_checked(storage.directory(location)))
        finally:
            storage.close()
    except (MLDiagnosticsError, ValueError, TimeoutError) as error:
        problem = str(error) or f"no result within {DEADLINE_S:g} s"
        sys.stderr.write(f"The default storage does not work: {problem}\n")
        return 1
    sys.stdout.write(f"Wrote, listed, read and deleted {url}: the default storage works.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
