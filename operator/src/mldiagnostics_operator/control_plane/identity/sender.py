"""The sender of a report; pure."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a report, from its token."""

    namespace: str
    account: str = ""
    """Name of the service account."""
    pod: str = ""
    """Empty outside the cluster."""
    pod_uid: str = ""
    node: str = ""

    @property
    def owner(self) -> str:
        """The owner of the runs that it may write.

        Pods belong to their run by their owners, so this is empty. An account outside the cluster owns the runs that it
        was the first to report.
        """
        return "" if self.pod_uid else f"account:{self.account}"
