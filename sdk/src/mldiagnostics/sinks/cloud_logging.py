"""Records to Google Cloud Logging, by Google's client over HTTP.

`cloud-logging:` is Google's own endpoint, `cloud-logging:https://…` another one, such as a regional one. HTTP is used
because gRPC's threads do not survive a fork. Credentials are the application default ones. Project and region are those
of the call, else those of the environment (see `mldiagnostics.cloud`), looked up in a thread.
"""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from mldiagnostics.cloud import CloudEnvironment
from mldiagnostics.extras import require
from mldiagnostics.pipeline.gil import GilYielder
from mldiagnostics.pipeline.sink import BatchPolicy, SinkMaker, SinkNotReady, SinkRefused, SinkUnavailable
from mldiagnostics.sinks.log_entries import entry_of
from mldiagnostics.sinks.spool import spooled

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mldiagnostics.identity.origin import Origin
    from mldiagnostics.pipeline.records import Record

TIMEOUT_S = 4.0
"""Time limit of a request, shorter than that of the process's exit. Its records then wait on disk."""

_LOOK_UP_S = 2.0
_SCOPE = "https://www.googleapis.com/auth/logging.write"
_RETRYABLE = {401, 403, 404, 408, 429}
"""Besides 500 and above: permissions, projects and quotas may be added while a job runs."""

_REGIONLESS = "global"


def maker(url: str) -> SinkMaker:
    """Return the maker for `cloud-logging:[endpoint]`. Raises `MissingExtraError`."""
    endpoint = url.removeprefix("cloud-logging:").rstrip("/")
    require("google.cloud.logging", extra="cloud-logging", needed_for=url)
    name = "cloud-logging" if not endpoint else url.rstrip("/")
    return spooled(SinkMaker(name, lambda origin: CloudLoggingSink(endpoint, origin)), name)


EntryMaker: TypeAlias = "Callable[..., dict[str, Any] | None]"
"""Returns an entry as `entry_of` does, None for a record to leave out."""


class CloudLoggingSink:
    """Writes each batch in one request of at most `TIMEOUT_S`."""

    batch_policy = BatchPolicy(records=100, gather_s=0.3)
    durable = False

    def __init__(self, endpoint: str, origin: Origin, *, entry: EntryMaker = entry_of) -> None:
        self._origin = origin
        self._entry = entry
        self._lookup = CredentialsLookup(endpoint, project=origin.project, region=origin.region, scope=_SCOPE)

    def open(self) -> None:
        """Look up credentials and project. Raises `SinkUnavailable` without them."""
        self._lookup.wait()

    def write(self, batch: Sequence[Record]) -> None:
        """Write the batch's entries. Raises `SinkUnavailable` or `SinkRefused`."""
        import requests  # noqa: PLC0415 - loaded by the sink's own thread
        from google.api_core.exceptions import GoogleAPICallError  # noqa: PLC0415 - the same
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - the same

        client = self._lookup.wait()
        yield_gil = GilYielder()
        entries = []
        for record in batch:
            if entry := self._entry(record, self._origin, project=client.project, region=client.region):
                entries.append(entry)
            yield_gil()
        if not entries:
            return
        try:
            client.api.write_entries(entries, partial_success=True)
        except GoogleAPICallError as error:
            code = int(error.code or 500)
            message = f"project {client.project}: HTTP {code}: {error.message}{_cure(code)}"
            is_retryable = code in _RETRYABLE or code >= 500
            raise (SinkUnavailable if is_retryable else SinkRefused)(message) from error
        except (GoogleAuthError, requests.RequestException, OSError) as error:
            raise SinkUnavailable(f"project {client.project}: {error}") from error

    def flush(self) -> None:
        """Do nothing: no records are buffered."""

    def close(self) -> None:
        """Do nothing: each request opens a connection if it needs one."""


@dataclass(frozen=True, slots=True)
class LoggingClient:
    """Google's client for one project, and the region of the program."""

    project: str
    region: str
    api: Any


class CredentialsLookup:
    """Looks up credentials, project and region in a thread.

    Metadata servers may hang: a sink waits at most `_LOOK_UP_S` at once; records wait on disk meanwhile.
    """

    def __init__(self, endpoint: str, *, project: str, region: str = "", scope: str) -> None:
        self._endpoint = endpoint
        self._project, self._region = project, region
        self._scope = scope
        self._thread: threading.Thread | None = None
        self._client: LoggingClient | None = None
        self._problem = ""

    def wait(self, timeout_s: float = _LOOK_UP_S) -> LoggingClient:
        """Return the client. Raises `SinkNotReady` or `SinkUnavailable`."""
        if self._client is None:
            if self._thread is None:
                self._thread = threading.Thread(target=self._look_up, name="mldiagnostics-credentials", daemon=True)
                self._thread.start()
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                raise SinkNotReady("looking up Google credentials and project")
            self._thread = None
        if self._client is None:
            raise SinkUnavailable(self._problem)
        return self._client

    def _look_up(self) -> None:
        try:
            self._client = self._create_client()
        except Exception as error:  # noqa: BLE001 - raised by `wait`; credential libraries raise anything
            self._problem = str(error) or repr(error)

    def _create_client(self) -> LoggingClient:
        import google.auth  # noqa: PLC0415 - loaded by the sink's own thread
        from google.api_core.client_options import ClientOptions  # noqa: PLC0415 - the same
        from google.auth.credentials import AnonymousCredentials  # noqa: PLC0415 - the same
        from google.cloud.logging import Client  # noqa: PLC0415 - the same

        cloud = CloudEnvironment(project=self._project or None, region=self._region or None, env=os.environ)
        credentials: Any
        if self._endpoint.startswith("http://"):  # a token must not be sent unencrypted
            credentials, project = AnonymousCredentials(), None
        else:
            credentials, project = google.auth.default(scopes=[self._scope])
        project = self._project or project or cloud.project()
        if not project:
            raise SinkUnavailable(
                "the Google Cloud project is not known; set machinelearning_run(project=…) or GOOGLE_CLOUD_PROJECT"
            )
        client = Client(
            project=project,
            credentials=credentials,
            client_options=ClientOptions(api_endpoint=self._endpoint or None),
            _http=_bounded_session(credentials),
            _use_grpc=False,
        )
        return LoggingClient(project, cloud.region() or _REGIONLESS, client.logging_api)


def _bounded_session(credentials: Any) -> Any:
    """Return a session like the client's own, with requests limited to `TIMEOUT_S`."""
    from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415 - loaded by the sink's own thread

    class Bounded(AuthorizedSession):  # type: ignore[misc]
        def request(self, *arguments: Any, **options: Any) -> Any:
            return super().request(*arguments, **{**options, "timeout": TIMEOUT_S, "max_allowed_time": TIMEOUT_S})

    return Bounded(credentials, refresh_timeout=TIMEOUT_S)


def _cure(code: int) -> str:
    return "; grant the job's service account roles/logging.logWriter" if code == 403 else ""
