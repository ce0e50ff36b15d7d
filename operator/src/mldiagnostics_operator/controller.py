"""The protocol between the leader and its controllers, one for each kind of work.

A new kind of work is a new controller and one more entry in `replica.CONTROLLERS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from mldiagnostics_api.resources import Resource
    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.config import OperatorConfig
    from mldiagnostics_operator.run_exchange import RunExchange
    from mldiagnostics_operator.storage import Storage
    from mldiagnostics_operator.telemetry import OperatorMetrics

Event = Literal["seen", "gone"]
"""`gone`: deleted, or not matched by the field selector any more."""
Observe = Callable[[Mapping[str, Any], Event], None]


class Controller(Protocol):
    """Work from the start of a leadership to its end."""

    @property
    def name(self) -> str:
        """Name of the work in logs."""

    async def run(self) -> None:
        """Work until cancelled; a return or an exception ends the leadership."""

    def stop_accepting(self) -> None:
        """Start nothing new: the next leader does it. Work in progress goes on."""

    async def drain(self) -> None:
        """Return when no work is in progress."""


@runtime_checkable
class WatchingController(Controller, Protocol):
    """The work on one resource, whose objects the leader watches for it."""

    @property
    def resource(self) -> Resource:
        """The resource whose objects are observed."""

    @property
    def field_selector(self) -> str:
        """Which of its objects are observed; empty: all."""

    def observe(self, body: Mapping[str, Any], event: Event) -> None:
        """Accept an event of the watch and return at once; events may be repeated."""

    def reset(self) -> None:
        """Stop the work on all objects: their definition was removed, and they with it."""


class ControllerFactory(Protocol):
    """A class of controllers, from which each leadership makes one."""

    def __call__(
        self,
        cluster: ApiClient,
        config: OperatorConfig,
        telemetry: OperatorMetrics,
        *,
        holder: str,
        exchange: RunExchange,
        storage: Storage,
    ) -> Controller:
        """Return a controller.

        Args:
            cluster: Client of the API server.
            config: Settings of the operator.
            telemetry: Metrics of the operator.
            holder: Name of this process in the status of objects.
            exchange: Shared by the controllers of a leadership.
            storage: The same; the leadership closes it after its controllers.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedResource:
    """A resource, the selector of its watched objects, and their observer."""

    resource: Resource
    observe: Observe
    field_selector: str = ""
