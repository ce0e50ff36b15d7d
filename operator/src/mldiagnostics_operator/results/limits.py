"""Limits of the API for files, each in one place."""

from typing import Final

READS: Final = 16
"""Requests that read or send at a time, each with at most `results.PART_BYTES` in memory."""
READS_OF_NAMESPACE: Final = 4
WAITING_OF_NAMESPACE: Final = 16
"""More requests of a namespace get 429 at once."""
READ_S: Final = 20.0
SEND_S: Final = 20.0
"""A reader that takes a part more slowly is disconnected: its request would hold a turn of others."""
CONNECTIONS: Final = 256
"""Only API servers connect; each opens one connection for each request in flight."""
HEAD_LINES: Final = 1024
"""The API server adds a line for each group of the reader."""
HEAD_LINE_BYTES: Final = 16 * 1024
CHECKED_S: Final = 15.0
"""A directory that was checked for a namespace is not checked again for so long."""
MAX_CHECKED: Final = 1024
POLL_S: Final = 30.0
"""Pause between two looks at the authorities of the API server, and at its registration."""
