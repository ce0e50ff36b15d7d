"""Limits of servers of XProf by default."""

from __future__ import annotations

from typing import Final

IDLE_S: Final = 2 * 3600.0
"""A server ends after so long without a reader: enough for a meeting, and no memory is held all night."""

CACHE_BYTES: Final = 20 * 2**30
"""Most bytes of the copy of a bucket that XProf cannot read."""
