"""The client of Google's SDK that writes metrics, to the sinks of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mldiagnostics.metrics import record_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["LoggingClient", "NoOpLoggingClient"]


class LoggingClient:
    """Records metrics of the current run.

    The arguments of Google's client about its service are accepted, without an effect.

    Args:
        project_id: Google Cloud project.
        log_name: Name of a log.
        credentials_path: File with credentials.
        user_credentials: Credentials.
    """

    def __init__(
        self,
        project_id: str = "",
        log_name: str = "ml_diagnostics_metric",
        credentials_path: str | None = None,  # noqa: ARG002 - as above
        user_credentials: object = None,  # noqa: ARG002 - as above
    ) -> None:
        self.project_id, self.log_name = project_id, log_name

    def write_metric(  # noqa: PLR0917 - the order of Google's client
        self,
        metric_name: str,
        value: Any,
        run_id: str = "",
        location: str = "",
        step: int | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Record one value; `run_id` and `location` have no effect. It never raises."""
        item = {"metric_name": metric_name, "value": value, "step": step, "labels": labels}
        self.write_metrics([item], run_id, location)

    def write_metrics(
        self,
        metrics: Iterable[Mapping[str, Any]],
        run_id: str = "",  # noqa: ARG002 - records belong to the run of the process
        location: str = "",  # noqa: ARG002 - as above
    ) -> None:
        """Record several values; `run_id` and `location` have no effect. It never raises."""
        record_metrics(metrics)


class NoOpLoggingClient(LoggingClient):
    """Records nothing."""

    def __init__(self) -> None:
        super().__init__()

    def write_metrics(self, *_: object, **__: object) -> None:  # type: ignore[explicit-override]
        """Record nothing."""
