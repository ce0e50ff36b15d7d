"""The place of a process in its run, by the names of Google's SDK."""

from __future__ import annotations

import os
import socket
from typing import Any

from mldiagnostics.identity.environment import detect
from mldiagnostics.identity.process import process_info
from mldiagnostics.identity.resolve import locate

__all__ = ["get_hostname", "get_process_index", "get_workload_details", "is_master_host"]


def get_hostname() -> str:
    """Return the name of this host."""
    return socket.gethostname()


def get_process_index() -> int:
    """Return the rank of this process, from 0."""
    return process_info(detect(os.environ), {}).rank


def is_master_host() -> bool:
    """Return whether this process has rank 0."""
    return get_process_index() == 0


def get_workload_details() -> dict[str, Any] | None:
    """Return the injected workload of this process; None outside of one.

    The keys are those of Google's SDK.
    """
    identity = locate(detect(os.environ), name="").identity
    workload = identity.workload if identity is not None else {}
    if not workload:
        return None
    return {
        "id": workload.get("name", ""),
        "kind": workload.get("kind", ""),
        "cluster": workload.get("cluster", ""),
        "namespace": workload.get("namespace", ""),
        "parent_workload": workload.get("parent"),
        "creation-timestamp": workload.get("creationTimestamp", ""),
        "labels": workload.get("labels"),
    }
