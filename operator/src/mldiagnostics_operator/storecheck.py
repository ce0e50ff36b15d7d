"""`helm test`: write, read and delete one object in the default storage, with the operator's own settings."""

import os
import sys
import uuid

from mldiagnostics.errors import MLDiagnosticsError
from mldiagnostics.store import Store, open_store
from mldiagnostics_api.location import Location, Medium

from mldiagnostics_operator import config

STORE_TIMEOUT_S = 30.0


def check(store: Store, name: str) -> str:
    """Put, read and delete an object; return where it was.

    Raises a StoreError for what the store refuses, and ValueError if it gives back something else than was put.
    """
    key, content = f"mldiagnostics-store-check/{name}", name.encode()
    where = store.put(key, content).url
    try:
        with store.open(key) as stored:
            if stored.read() != content:
                raise ValueError(f"{where} holds something else than was written: look at what serves this storage")
    finally:
        store.delete(key)
    return where


def main() -> int:
    """Check the default storage and say how it went; the exit status is 0 if it works."""
    try:
        settings = config.load(os.environ)
        location = settings.policy.default_storage
        if location is None:
            sys.stdout.write("There is no default storage: every capture names its own.\n")
            return 0
        where = check(open_store(_url(location, settings), timeout_s=STORE_TIMEOUT_S), uuid.uuid4().hex)
    except (MLDiagnosticsError, ValueError) as fault:
        sys.stderr.write(f"The default storage does not work: {fault}\n")
        return 1
    sys.stdout.write(f"Wrote, read and deleted {where}: {location} works.\n")
    return 0


def _url(location: Location, settings: config.Config) -> str:
    if location.medium is Medium.VOLUME:
        return str(settings.volume_root.joinpath(*location.segments))
    return str(location)


if __name__ == "__main__":
    sys.exit(main())
