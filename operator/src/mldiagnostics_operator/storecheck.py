"""`helm test`: write, read and delete one object in the default storage, with the operator's own settings."""

import asyncio
import os
import sys
import uuid
from typing import Final

from mldiagnostics.errors import MLDiagnosticsError

from mldiagnostics_operator import config
from mldiagnostics_operator.captures.storage import LogDirectory, Storage

DEADLINE_S: Final = 60.0


async def check(directory: LogDirectory) -> str:
    """Put, read and delete an object; return where it was.

    Raises what the store raises, and ValueError if it gives back something else than was put.
    """
    key = f"mldiagnostics-store-check-{uuid.uuid4().hex}"
    where = (await directory.put(key, key.encode())).url
    try:
        if await directory.read(key) != key.encode():
            raise ValueError(f"{where} holds something else than was written: look at what serves this storage")
    finally:
        await directory.delete(key)
    return where


def main() -> int:
    """Check the default storage and say how it went; the exit status is 0 if it works."""
    try:
        settings = config.load(os.environ)
        location = settings.policy.default_storage
        if location is None:
            sys.stdout.write("There is no default storage: every capture names its own.\n")
            return 0
        storage = Storage(settings.volume_root)
        try:
            where = asyncio.run(asyncio.wait_for(check(storage.directory(location)), DEADLINE_S))
        finally:
            storage.close()
    except (MLDiagnosticsError, ValueError, TimeoutError) as fault:
        sys.stderr.write(f"The default storage does not work: {str(fault) or f'no end within {DEADLINE_S:g} s'}\n")
        return 1
    sys.stdout.write(f"Wrote, read and deleted {where}: the default storage works.\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
