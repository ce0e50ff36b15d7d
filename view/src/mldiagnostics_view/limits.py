"""Limits of the view, each with its reason."""

from __future__ import annotations

from typing import Final

REFRESH_S: Final = 5.0
"""Age at which a list of runs is read again, while somebody looks: a heartbeat is due every 10 s."""

SETTLED_S: Final = 600.0
"""A run that ended so long ago has no later facts: the last report, the causes and the account come within 400 s."""

FIRST_LIST_S: Final = 10.0
"""A page waits so long for the first list of a source; then it shows the reason why there is none."""

MAX_THREADS: Final = 32
"""Threads that read: those that wait for a bucket which does not respond must leave some for other sources."""

CLOSE_S: Final = 1.0
"""The end of the server waits so long for readers; one that waits for its store ends with the process."""

MAX_SCHEDULES: Final = 100
"""Schedules of a namespace that are read for a run; the policy allows 20 by default."""
MAX_RUNS: Final = 10_000
"""Runs of one source, the newest. A row takes about 3 KiB."""

CHUNK_POINTS: Final = 128
"""Points that are summarised together: 1 000 000 points are 7813 summaries of 96 bytes, 1 MB."""

MAX_CURVE_BYTES: Final = 48 * 2**20
"""Memory for the summaries of all curves of one run; further curves are left out, and the page says so."""

MAX_OPEN_RUNS: Final = 8
"""Runs whose curves are kept, and that are compared; the one not used for the longest time is closed."""

MAX_SPILL_BYTES: Final = 4 * 2**30
"""Size of the temporary file with the points of one run, at 24 bytes a point."""

JOINED_BLOCKS: Final = 8
"""Blocks of lines (256 KiB each) that are parsed together: 200 metrics take half of the time."""

SAMPLED_BYTES: Final = 16 * 2**20
"""Unread records of a run that are sampled first: less takes half a second to read."""

SAMPLE_PIECES: Final = 128
"""Pieces of a sample at equal distances: a point of a curve every few pixels, for 0.3 s of work."""

SAMPLED_PIECE_BYTES: Final = 32 * 1024
"""Bytes of each piece: a line of each of 200 metrics."""

SAMPLED_OBJECTS: Final = 8
"""Objects of a bucket that are sampled: each must be fetched as a whole, and eight are fetched at a time."""

READ_SLICE_S: Final = 0.2
"""Longest work of a reader before others may read what it has."""

FIRST_ANSWER_S: Final = 0.6
"""A request for curves waits so long for a sample or all lines; then it returns what was read, with the progress."""

MAX_BUCKETS: Final = 4000
"""Buckets of one window: an 8K screen has 7680 pixels, and a bucket has a lowest and a highest value."""

MAX_CURVE_BUCKETS: Final = 100_000
"""Buckets of all curves of one response, 4 MB: the more curves, the coarser each of them."""

MAX_TABLE_POINTS: Final = 2000
"""Points of a table on a page."""

MAX_CSV_POINTS: Final = 500_000
"""Points of a file: about 40 MB."""

MAX_KEY_CHARS: Final = 2048
"""Length of the name of a metric with its labels; longer ones are left out."""

MAX_LISTED_METRICS: Final = 2000
"""Metrics of one list, 0.4 MB; a search finds the others."""

MAX_TEXT_CHARS: Final = 2000
"""Length of a stored text in a document; the rest is cut."""

MAX_DEPTH: Final = 64
"""Depth of a stored value in a document."""

MAX_LISTED: Final = 4096
"""Hosts, attempts, or files of one document."""

MAX_SHOWN_SESSIONS: Final = 200
"""Profile sessions of one document, the newest: each has a list of its files."""

MAX_QUERIED_METRICS: Final = 32
"""Metrics of one request."""

MAX_SERIES: Final = 256
"""Curves of one response; nobody can distinguish more."""

MAX_HEAT_CELLS: Final = 60_000
"""Cells of a heat map: 1000 hosts in 60 columns, 300 kB of JSON."""

MAX_QUERY_BYTES: Final = 8 * 1024
"""Length of the path and query of a request: 32 names of metrics."""

MAX_X: Final = 1e19
"""Largest step or time that is shown: steps are below 2^63, and differences of numbers near 1e308 overflow."""

MAX_HEAD_LINES: Final = 64
"""Headers of a request: a browser sends 20, a proxy adds some."""

MAX_CONNECTIONS: Final = 256
"""Connections at a time: browsers open six each. The oldest that waits for its client is closed for a new one."""

HEAD_S: Final = 10.0
"""Time in which a new connection must send its first request."""

IDLE_S: Final = 120.0
"""Time between two requests of a connection, and for the rest of a second request."""

MAX_REQUESTS: Final = 64
"""Requests at a time for which the server works, besides streams; a browser sends six."""

REQUEST_S: Final = 60.0
"""Time for one answer: a store gives up after so long."""

DELIVERY_S: Final = 30.0
"""Time in which a client must read a response: 1 MB at 35 kB/s. Then its connection is closed."""

MAX_UNREAD_BYTES: Final = 64 * 2**20
"""All responses together that clients have not read yet; the oldest is given up for a new one."""

MAX_STREAMS: Final = 64
"""Open streams of events; one for each page that somebody looks at."""

WRITE_S: Final = 10.0
"""Time in which a reader of a stream must take an event."""

PING_S: Final = 15.0
"""Pause after which a silent stream sends a comment: proxies close streams after 30 s and more."""

GOODPUT_PARTS: Final = 120
"""Equal parts of a run whose time is shown by cause; each is a bar of 3 pixels on a phone."""

MAX_REPORTS: Final = 256
"""Goodput reports that are kept, of about 20 KiB each."""

MAX_MARKED_TEXTS: Final = 50
"""Texts that stand on the charts, the newest: more would hide the curves."""

MAX_MARK_CHARS: Final = 200
"""Length of the words of a mark."""

MAX_VALUES: Final = 256
"""Configurations of a run that can be columns of the list, and as many metrics: of 256 runs, 30 MB are kept."""

MAX_VALUE_CHARS: Final = 128
"""Length of a name or text in such a column."""

MAX_LISTED_BYTES: Final = 64 * 2**20
"""Records of one run that are read for the list of runs: 1.6 s. The page of the run reads any."""

MAX_LISTED_REPORTS: Final = 32
"""Runs of one request for the goodput of a list."""

PARALLEL_REPORTS: Final = 2
"""Goodput reports that are computed at a time: each reads the records of a run."""

COPY_AGE_S: Final = 30.0
"""Age at which the copy of a run on the operator's volume is made again, while somebody looks."""

MAX_COPY_BYTES: Final = 256 * 2**20
"""Records of one run that are copied from the operator's volume: reports are below 1 kB/s, so this is three days."""

MAX_COPIES: Final = 8
"""Runs whose copies are kept; the one not used for the longest time is deleted."""

VERDICT_AGE_S: Final = 15.0
"""Time for which a right of a viewer is known: a right that was taken away ends so much later."""

MAX_VERDICTS: Final = 20_000
"""Rights of viewers that are known, 0.5 KiB each: 20 viewers of 1000 namespaces."""

PARALLEL_REVIEWS: Final = 16
"""Rights that are requested at a time: an API server answers about 1000 reviews per second."""

MAX_GROUPS: Final = 256
"""Groups of a viewer; one with more is rejected, because a proxy that sends them is not configured for this."""

SECRET_AGE_S: Final = 10.0
"""Age at which the secret of the proxy is read again: a rotation needs no restart."""

PARALLEL_FILES: Final = 16
"""Directories of runs that are checked at a time."""

MAX_BODY_BYTES: Final = 96 * 1024
"""Body of a request: the ranks of 10 000 hosts."""

READ_BODY_S: Final = 10.0
"""Time in which the body of a request must arrive."""

READ_RUN_S: Final = 20.0
"""An order of a capture waits so long for its run, which may have its profiles in a bucket that does not respond."""

MAX_CAPTURE_MS: Final = 3_600_000
"""Duration of a capture; the administrator's limit is far lower."""

MAX_XPROF_SERVERS: Final = 4
"""Servers of XProf that one page starts: each takes 0.5 GiB and more."""

MAX_XPROF_REQUESTS: Final = 8
"""Requests that a deployed XProf answers at a time; it has ten threads."""

XPROF_REQUEST_S: Final = 600.0
"""Time for one answer of a deployed XProf, which reads a trace of 1 GiB in a few minutes."""

SESSION_AGE_S: Final = 5.0
"""Age at which a copy for XProf is compared with its session again: a host may have added its trace."""

XPROF_WAIT_S: Final = 5.0
"""Longest wait of a request for the start of XProf, which takes up to two minutes; the page then asks again."""
