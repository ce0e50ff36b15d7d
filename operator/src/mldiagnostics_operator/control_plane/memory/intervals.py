"""How often the processes of a fleet report; pure."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from mldiagnostics_api.reports.models import INTERVAL_S

from mldiagnostics_operator.control_plane.limits import (
    CONNECTIONS,
    LONGEST_INTERVAL_S,
    REPORTS_OF_ALL_PER_SECOND,
    REPORTS_WITH_HANDSHAKE_PER_SECOND,
)

if TYPE_CHECKING:
    from collections.abc import Mapping


def interval_s(processes: Mapping[str, int], namespace: str) -> int:
    """Return the seconds between two reports of a process.

    All processes report every 10 s while the leader takes that many reports. Beyond, each namespace has an equal share,
    and only those that exceed it report less often. More processes than there are connections open one for each report.

    Args:
        processes: Reporting processes by namespace.
        namespace: Namespace of the process.
    """
    own, total = processes.get(namespace, 0), sum(processes.values())
    per_s = REPORTS_OF_ALL_PER_SECOND if total <= CONNECTIONS else REPORTS_WITH_HANDSHAKE_PER_SECOND
    most = per_s * INTERVAL_S
    if total <= most:
        return INTERVAL_S
    share = most / len(processes)
    return min(max(INTERVAL_S, ceil(INTERVAL_S * own / share)), LONGEST_INTERVAL_S)
