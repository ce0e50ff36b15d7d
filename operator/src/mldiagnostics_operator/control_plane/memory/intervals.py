"""How often the processes of a fleet report; pure."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Final

from mldiagnostics_api.reports.models import INTERVAL_S

from mldiagnostics_operator.control_plane.limits import LONGEST_INTERVAL_S, REPORTS_OF_ALL_PER_SECOND

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


def interval_s(processes: Mapping[str, int], namespace: str, rate: ReportRate, *, before_s: int = INTERVAL_S) -> int:
    """Return the seconds until the next report of a process.

    All processes report every 10 s while the leader takes that many reports. Beyond, each namespace has an equal share,
    and only those that exceed it report less often.

    A late event loop doubles the interval at most: after a moment of load, a process that has to wait for minutes would
    be silent while the leader is idle.

    Args:
        processes: Reporting processes by namespace.
        namespace: Namespace of the process.
        rate: Rate that the leader takes.
        before_s: Interval that the process had before this report.
    """
    own, total = processes.get(namespace, 0), sum(processes.values())
    usual_s = _share_s(own, total, len(processes), REPORTS_OF_ALL_PER_SECOND)
    slower_s = _share_s(own, total, len(processes), REPORTS_OF_ALL_PER_SECOND * rate.share)
    return min(slower_s, max(usual_s, 2 * before_s))


def _share_s(own: int, total: int, namespaces: int, reports_per_s: float) -> int:
    """Return the interval at which a namespace uses its share of a rate."""
    most = reports_per_s * INTERVAL_S
    if total <= most:
        return INTERVAL_S
    return min(max(INTERVAL_S, ceil(INTERVAL_S * own * namespaces / most)), LONGEST_INTERVAL_S)
