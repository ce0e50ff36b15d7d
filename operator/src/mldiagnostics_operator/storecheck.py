"""`helm test`: check the default storage with the operator's own settings."""

import asyncio
import os
import sys
import uuid
from typing import Final

from mldiagnostics.errors import MLDiagnosticsError

from mldiagnostics_operator import config
from mldiagnostics_operator.storage import LogDirectory, Storage

DEADLINE_S: Final = 60.0


async def check(directory: LogDirectory) -> str:
    """Write, list, read and delete an object; return its URL.

    Raises the errors of the store, and ValueError if it returns other bytes than were written, or does not list them.
    """
    folder = f"mldiagnostics-store-check-{uuid.uuid4().hex}"
    key = f"{folder}/object"
    url = (await directory.put(key, key.encode())).url
    try:
        if await directory.read(key) != key.encode():
            raise ValueError(f"{url}: the store returned other bytes than were written; check the volume or the bucket")
        if [entry.key for entry in await directory.list(folder)] != [key]:
            raise ValueError(f"{url}: the store does not list what was written; check the volume or the bucket")
    finally:
        await directory.delete(key)
    return url


async def _checked(directory: LogDirectory) -> str:
    async with asyncio.timeout(DEADLINE_S):
        return await check(directory)


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
