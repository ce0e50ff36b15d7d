"""Read preemption notices from JAX's coordination service; calls may wait for it.

JAX's preemption service handles SIGTERM natively and publishes a key for all processes; only the key is read here.
"""

from __future__ import annotations

import sys
from typing import Any

_KEY = "RECEIVED_PREEMPTION_NOTICE"


def is_watched() -> bool:
    """Return whether JAX watches for preemption, and so handles SIGTERM."""
    return _client() is not None


def was_announced() -> bool:
    """Return whether a preemption notice is published.

    Without a service or key that is False.
    """
    client = _client()
    try:
        return bool(client.key_value_try_get(_KEY)) if client is not None else False
    except Exception:  # noqa: BLE001 - the service reports a missing key by an exception of its own
        return False


def _client() -> Any:
    state = getattr(sys.modules.get("jax._src.distributed"), "global_state", None)
    return getattr(state, "client", None) if getattr(state, "preemption_sync_manager", None) is not None else None
