"""Limits of the control-plane API, each in one place."""

from typing import Final

_KIB: Final = 2**10
_MIB: Final = 2**20

MAX_RUNS: Final = 20_000
"""Runs in memory: 10 000 that are watched, and as many that came and went within an hour."""
MAX_PROCESSES: Final = 65_536
"""Processes of all runs in memory, 1.2 kB each."""
MAX_PROCESSES_OF_RUN: Final = 16_384
MAX_SHARE: Final = 0.5
"""Part of the runs and processes that one namespace may fill."""
MAX_INCARNATIONS_OF_HOST: Final = 4
"""Earlier processes of one rank that are remembered, so that their late reports are recognised."""
SESSIONS_OF_OTHER_RANKS: Final = 4
MAX_SESSIONS_OF_RUN: Final = 64

SUPERSEDED_S: Final = 60.0
"""A process that is silent for so long while another one reports the same rank was replaced by it."""

MAX_EVENTS_OF_RUN: Final = 2_000_000
"""Goodput events that are kept for one run: a month of a step every 2.6 s, 400 MB of journal."""
SEGMENT_BYTES: Final = 64 * _KIB
"""An event segment is rewritten until it has this size, so that a slow run has few files."""
MAX_OPEN_BYTES: Final = 32 * _MIB
"""Event lines in memory: unpersisted ones and those of open segments."""
