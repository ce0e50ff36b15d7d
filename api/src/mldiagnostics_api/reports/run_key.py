"""The name of a run among all of a cluster."""

from __future__ import annotations

from typing import NamedTuple


class RunKey(NamedTuple):
    """A run: run ids are compared within a namespace only."""

    namespace: str
    run_id: str
