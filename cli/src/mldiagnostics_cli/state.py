"""Files that outlive a command."""

from __future__ import annotations

import os
from pathlib import Path


def state_directory(part: str) -> Path:
    """Return the directory of a part of the command line; it may not exist."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local/state") / "mldiagnostics" / part
