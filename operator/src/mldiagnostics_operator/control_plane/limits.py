"""Limits of the control-plane API, each in one place."""

from typing import Final

_KIB: Final = 2**10
_MIB: Final = 2**20

MAX_PROCESSES_OF_RUN: Final = 16_384
MAX_INCARNATIONS_OF_HOST: Final = 4
"""Earlier processes of one rank that are remembered, so that their late reports are recognised."""
RUN_BYTES: Final = 5 * _KIB // 2
"""Memory of a run, without its processes and texts."""
PROCESS_BYTES: Final = 3 * _KIB // 2
"""Memory of a process, without its texts."""
PROCESSES_OF_SLICE: Final = 256
"""Processes that are written or read within 5 ms."""
RUNS_OF_SLICE: Final = 256
"""Runs whose processes are counted at a time."""
SESSIONS_OF_OTHER_RANKS: Final = 4
MAX_SESSIONS_OF_RUN: Final = 64

RETURN_S: Final = 60.0
"""Each process that lives has reported to a new leader after this time: SDKs wait no longer after failures."""
SUPERSEDED_S: Final = 60.0
"""A process that is silent for so long while another one reports the same rank was replaced by it."""

MAX_EVENTS_OF_RUN: Final = 2_000_000
"""Goodput events that are kept for one run: a month of a step every 2.6 s, 400 MB of journal.

The account of the run ends with the last of them.
"""
SEGMENT_BYTES: Final = 64 * _KIB
"""An event segment is rewritten until it has this size, so that a slow run has few files."""
MAX_SEGMENT_BYTES: Final = 1024 * _KIB
"""Largest open segment that is read to be extended: one below `SEGMENT_BYTES`, and the events of one report."""
SEGMENT_S: Final = 3600.0
"""Or until this time is over."""

CONNECTIONS: Final = 4096
"""Each SDK keeps one; beyond that, the connection that has been idle for the longest time is closed."""
NEW_CONNECTIONS_PER_SECOND: Final = 50.0
"""Of one address: a pod, or all clients behind a proxy. A handshake costs 1 ms, and needs no token."""
HANDSHAKES_PER_SECOND: Final = 300.0
"""Of all addresses, in turn: a third of a core at most, and 4096 hosts that start at once wait 14 s."""
SMALL_BODY_BYTES: Final = 8 * _KIB
"""Usual reports have 1 kB, and so many arrive at a time as there are connections."""
LARGE_BODIES_BYTES: Final = 16 * _MIB
"""All larger bodies together."""
FIRST_REQUEST_S: Final = 15.0
"""Time for a handshake and the first head: all hosts of a large run connect at the same moment."""
READ_S: Final = 10.0
"""Time for a body to arrive: a busy training process sends slowly."""
MAX_REST_BYTES: Final = 160 * _KIB
"""A report without events and configurations; 32 profiles with the longest names have 80 kB."""
MAX_VALUES: Final = 4096
"""Most characters `{`, `[` and `,` in it, and `:` in the configurations: each may cost 230 bytes while it is parsed."""
INLINE_BYTES: Final = 64 * _KIB
"""A larger body is taken apart in its turn: one at a time, namespaces in turn."""
WAITING_BODIES: Final = 64
"""Larger bodies of one namespace that wait for their turn."""

REVIEW_CACHE_S: Final = 300.0
"""Longest use of a TokenReview's result."""
REJECTION_CACHE_S: Final = 10.0
"""Use of a rejection: a token that is rejected now may be valid soon, for example after a restart of the API server."""
MAX_TOKENS: Final = 65_536
MAX_REJECTIONS: Final = 4096
MAX_TOKEN_LENGTH: Final = 3072
"""Projected tokens have 1 kB; a line of the head has at most 4 KiB."""
LOOKUPS: Final = 16
"""TokenReviews or walks at a time; an API server answers 1341 TokenReviews a second on two cores."""
LOOKUPS_OF_CLIENT: Final = 4
WAITING_LOOKUPS: Final = 4096
"""All hosts of a large run start at the same moment."""
WAITING_LOOKUPS_OF_CLIENT: Final = 1024
"""A namespace is one client: its largest run starts at once, and a turn takes 10 ms."""
LOOKUP_S: Final = 5.0

REPORTS_PER_SECOND: Final = 2.0
"""Reports of one token; a pod with eight processes sends 0.8."""
REPORTS_BURST: Final = 64
"""All processes of a pod start and end at the same moment."""
RETRY_AFTER_S: Final = 5

REPORTS_OF_ALL_PER_SECOND: Final = 200
"""Of more processes than may send one report every 10 s, each reports less often.

A report costs 1 to 3 ms, and 1 ms more if there are more processes than `CONNECTIONS`: then each has lost its
connection since its last report: 0.2 to 0.8 of a core, the rest is for the statuses of the runs.
"""
LATENESS_S: Final = 1.0
"""Pause between two looks at how late the event loop is."""
LONGEST_INTERVAL_S: Final = 300
"""SDKs wait no longer."""

JOURNAL_INTERVAL_S: Final = 10.0
"""Least time between two writes of one run's journal, but for its end."""
JOURNALS_PER_SECOND: Final = 100
"""Of more runs than this allows every 10 s, each is written less often."""
JOURNAL_TICK_S: Final = 0.1
JOURNAL_STARTS: Final = 16
"""Most writes that are started and not done, but for those of runs that end."""
JOURNAL_WRITES: Final = 8
JOURNAL_WRITES_OF_NAMESPACE: Final = 6
JOURNAL_MERGES: Final = 3
"""Tries of a write while a former leader still writes; it ends within seconds."""
JOURNAL_COUNT_INTERVAL_S: Final = 3600.0
"""Pause between two counts of the journals on the volume, which visit each run's directory."""
FINAL_WAIT_S: Final = 2.0
"""An answer to a final report waits so long for the journal: the process that sent it is about to end."""
JOURNAL_CLOSE_S: Final = 20.0
"""Time of a former leader for its last writes: clients keep what is not acknowledged for the next one."""
MAX_STATE_BYTES: Final = 64 * _MIB
"""Largest state of a run's journal that is read: 16 384 processes have 12 MB."""
MAX_STATE_LINE_BYTES: Final = _MIB
"""Largest part of it, which is parsed at once: a usual one has 0.2 MB, and a hostile one takes 0.4 s."""

ACCOUNT_INTERVAL_S: Final = 30.0
"""Least time between two accounts of one run."""
ACCOUNT_SHARE: Final = 20
"""The account of a run takes at most a twentieth of the time: one that takes 3 s comes every minute."""
ACCOUNT_DEADLINE_S: Final = 60.0
"""Of one account: a journal of two million events takes five seconds."""
FAILED_ACCOUNT_S: Final = 3600.0
"""Pause after an account that took more memory or time than it may: the journals of all runs are read again then."""
EVENT_BYTES: Final = 20
"""Memory of an event in an account."""
OPEN_JOURNAL_BYTES: Final = 19 * _KIB
"""Memory of an account without its events."""
JOURNAL_IDLE_S: Final = 600.0
"""A journal that was not read for so long is closed."""

PEER_CONNECTIONS: Final = 256
"""Its client opens a connection for a few requests in the life of a run."""
FINISH_S: Final = 3.0
"""Time for the requests in flight when the leader stops."""
ADDRESS_CACHE_S: Final = 30.0
"""Use of a look-up of a pod by its address: the address may belong to another pod soon."""
MAX_ADDRESSES: Final = 4096
