"""kopf's handlers: each event of the custom resource goes to whom it concerns, and nothing waits here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import kopf
from mldiagnostics_api.resources import CONNECTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Event = Literal["seen", "gone"]
    Observe = Callable[[Mapping[str, Any], Event], None]


def register(observe: Observe) -> kopf.OperatorRegistry:
    """Make a registry whose only handler calls `observe` with each object and whether it was seen or is gone.

    Low-level events only: kopf then keeps no state, finalizer or annotation on the objects. Under a field selector,
    `gone` also means that the object no longer matches.
    """
    registry = kopf.OperatorRegistry()

    @kopf.on.event(*CONNECTIONS.gvr, registry=registry)
    async def on_event(event: kopf.RawEvent, **_: Any) -> None:
        observe(event["object"], "gone" if event["type"] == "DELETED" else "seen")

    return registry
