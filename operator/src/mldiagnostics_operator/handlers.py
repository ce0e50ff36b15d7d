"""kopf's handlers: pass each event on to its observer, and never wait."""

from __future__ import annotations

from contextvars import Context
from typing import TYPE_CHECKING, Any

import kopf

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mldiagnostics_operator.controller import WatchedResource


def register(watched: Iterable[WatchedResource]) -> kopf.OperatorRegistry:
    """Return a registry with one handler for each resource.

    Low-level events only: kopf then keeps no state, finalizer or annotation on the objects.
    """
    registry = kopf.OperatorRegistry()
    for each in watched:
        _register(registry, each)
    return registry


def _register(registry: kopf.OperatorRegistry, watched: WatchedResource) -> None:
    @kopf.on.event(*watched.resource.gvr, registry=registry)
    async def on_event(event: kopf.RawEvent, **_: Any) -> None:
        # Tasks keep the context in which they start, and kopf's has the whole object.
        Context().run(watched.observe, event["object"], "gone" if event["type"] == "DELETED" else "seen")
