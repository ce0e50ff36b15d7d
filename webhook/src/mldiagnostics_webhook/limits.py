"""Limits of the webhook, and the memory limit that follows from them.

The costs are measured with hostile input, on CPython 3.11 with uvloop, aiohttp 3.14 and orjson 3.13.
"""

from typing import Final

from mldiagnostics_kube.serving.connections import BACKLOG_BYTES

_KIB: Final = 2**10
_MIB: Final = 2**20

CONNECTIONS: Final = 256
"""One for each review in flight: the API server sends one at a time over a connection."""
MAX_BODY_BYTES: Final = 2 * _MIB
"""A pod above 1.25 MiB gets no run (`MAX_POD_BYTES`); up to this size, its user gets a warning."""
SMALL_BODY_BYTES: Final = 64 * _KIB
"""Usual reviews have 5 to 50 kB. They do not share the bytes of larger ones."""
LARGE_BODIES_BYTES: Final = 8 * _MIB
"""All larger bodies together."""
READ_S: Final = 1.0
"""Time for a body to arrive; the API server sends it at once."""
MAX_VALUES: Final = 64 * _KIB
"""Most characters `{`, `[` and `,` in a review; 5000 variables with their managed fields have 45 000."""
CACHE_BYTES: Final = 64 * _MIB
"""Metadata of namespaces and workloads, as text."""
CONTEXTS: Final = 256
"""Owners of the latest pods, parsed."""
DECISIONS: Final = 256
"""Latest decisions."""
MAX_LOOKUPS: Final = 1024
"""Reads of the API server in progress or waiting."""

_PROCESS_BYTES: Final = 64 * _MIB
_CONNECTION_BYTES: Final = 448 * _KIB  # 32 pipelined requests; unread heads cost 330 KiB, bodies less
_BYTES_PER_BYTE: Final = 5  # one character beyond ASCII widens a string to 4 bytes each
_BYTES_PER_VALUE: Final = 256  # `{"":` takes 230, a label and the decision 250
_CONTEXT_BYTES: Final = 64 * _KIB  # two owners with 2 KiB of short labels each
_DECISION_BYTES: Final = 192 * _KIB  # its context, a key of 1024 names, and the patch

REVIEW_BYTES: Final = _BYTES_PER_BYTE * MAX_BODY_BYTES + _BYTES_PER_VALUE * MAX_VALUES
"""The costliest review. Only one is parsed at a time: none is kept while its owners are read."""
PEAK_BYTES: Final = (
    _PROCESS_BYTES
    + CONNECTIONS * _CONNECTION_BYTES
    + BACKLOG_BYTES
    + REVIEW_BYTES
    + CACHE_BYTES
    + CONTEXTS * _CONTEXT_BYTES
    + DECISIONS * _DECISION_BYTES
)
"""Most memory of one replica when every bound is reached at the same time."""
MEMORY_LIMIT_BYTES: Final = 448 * _MIB
"""The chart's memory limit: at least a fifth above the peak."""
