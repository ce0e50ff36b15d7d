"""Whether JAX was told that a machine of the run will be taken away; asks its coordination service, so not for callers.

JAX's preemption service takes SIGTERM for itself, natively, and publishes a key for all processes. Its handler is left
alone here, and the key is read.
"""

from __future__ import annotations

import sys
from typing import Any

_KEY = "RECEIVED_PREEMPTION_NOTICE"


def is_watched() -> bool:
    """Tell whether JAX watches for that, and has taken SIGTERM."""
    return _client() is not None


def was_announced() -> bool:
    """Ask; no service, no answer and no such question in this version of JAX are a no."""
    client = _client()
    try:
        return bool(client.key_value_try_get(_KEY)) if client is not None else False
    except Exception:  # noqa: BLE001 - the service says "not found" by an error, and which one is its affair
        return False


def _client() -> Any:
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    return getattr(state, "client", None) if getattr(state, "preemption_sync_manager", None) is not None else None
