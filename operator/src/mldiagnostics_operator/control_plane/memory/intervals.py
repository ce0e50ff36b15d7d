"""How often the processes of a fleet report; pure."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.reports.models import INTERVAL_S

from mldiagnostics_operator.control_plane.limits import (
    CONNECTIONS,
    LONGEST_INTERVAL_S,
    REPORTS_OF_ALL_PER_SECOND,
    REPORTS_WITH_HANDSHAKE_PER_SECOND,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

LATE_S: Final = 0.5
LEAST_SHARE: Final = 0.05
_SLOWER: Final = 0.7
_FASTER: Final = 1.05


class ReportRate:
    """Rate of the reports that the leader takes.

    It is lower while the event loop is late: a report costs 1 ms on one machine and 3 ms on another, and a loop that is
    ten seconds late loses the Lease.
    """

    def __init__(self) -> None:
        self.share = 1.0
        """Part of the usual rate."""

    def note(self, late_s: float) -> None:
        """Note by how many seconds the event loop woke too late, about once a second."""
        if late_s > LATE_S:
            self.share = max(LEAST_SHARE, self.share * _SLOWER)
        else:
            self.share = min(1.0, self.share * _FASTER)

    def per_s(self, processes: int) -> float:
        """Return the reports per second of a number of processes."""
        usual = REPORTS_OF_ALL_PER_SECOND if processes <= CONNECTIONS else REPORTS_WITH_HANDSHAKE_PER_SECOND
        return usual * self.share


def interval_s(processes: Mapping[str, int], namespace: str, rate: ReportRate) -> int:
    """Return the seconds between two reports of a process.

    All processes report every 10 s while the leader takes that many reports. Beyond, each namespace has an equal share,
    and only those that exceed it report less often. More processes than there are connections open one for each report.

    Args:
        processes: Reporting processes by namespace.
        namespace: Namespace of the process.
        rate: Rate that the leader takes.
    """
    own, total = processes.get(namespace, 0), sum(processes.values())
    most = rate.per_s(total) * INTERVAL_S
    if total <= most:
        return INTERVAL_S
    share = most / len(processes)
    return min(max(INTERVAL_S, ceil(INTERVAL_S * own / share)), LONGEST_INTERVAL_S)
