"""Records to Google Cloud Logging, by Google's client over HTTP.

`cloud-logging:` is Google's own endpoint, `cloud-logging:https://…` another one, like a regional one. HTTP and not
gRPC, because gRPC's threads do not survive a fork. Credentials are the application default ones; project and region
are what the program said, else what is found out (see `mldiagnostics.cloud`), all in threads of ours.
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
"""How long one request may take before its records wait on the disk; shorter than what the end of a process has."""

_LOOK_UP_S = 2.0
_SCOPE = "https://www.googleapis.com/auth/logging.write"
_WORTH_ANOTHER_TRY = {401, 403, 404, 408, 429}
"""Besides all of 500 and above: rights, projects and quotas come while a job runs."""

_REGIONLESS = "global"


def maker(url: str) -> SinkMaker:
    """Return the maker for `cloud-logging:[endpoint]`. Raises `MissingExtraError`."""
    endpoint = url.removeprefix("cloud-logging:").rstrip("/")
    require("google.cloud.logging", extra="cloud-logging", needed_for=url)
    name = "cloud-logging" if not endpoint else url.rstrip("/")
    return spooled(SinkMaker(name, lambda origin: CloudLoggingSink(endpoint, origin)), name)


EntryMaker: TypeAlias = "Callable[..., dict[str, Any] | None]"
"""Makes an entry as `entry_of` does, None for a record that shall not be there."""


class CloudLoggingSink:
    """Writes each batch in one request that ends within `TIMEOUT_S`."""

    pace = BatchPolicy(records=100, gather_s=0.3)
    durable = False

    def __init__(self, endpoint: str, origin: Origin, *, entry: EntryMaker = entry_of) -> None:
        self._origin = origin
        self._entry = entry
        self._access = CredentialsLookup(endpoint, project=origin.project, region=origin.region, scope=_SCOPE)

    def open(self) -> None:
        """Find credentials and project. Raises `SinkUnavailable` if there are none, or not yet."""
        self._access.wait()

    def write(self, batch: Sequence[Record]) -> None:
        """Write the batch's entries. Raises `SinkUnavailable` also where an administrator has to do something."""
        import requests  # noqa: PLC0415 - loaded by the sink's own thread
        from google.api_core.exceptions import GoogleAPICallError  # noqa: PLC0415 - the same
        from google.auth.exceptions import GoogleAuthError  # noqa: PLC0415 - the same

        access = self._access.wait()
        turns = GilYielder()
        entries = []
        for record in batch:
            if entry := self._entry(record, self._origin, project=access.project, region=access.region):
                entries.append(entry)
            turns()
        if not entries:
            return
        try:
            access.api.write_entries(entries, partial_success=True)
        except GoogleAPICallError as error:
            code = int(error.code or 500)
            story = f"Cloud Logging of project {access.project}: HTTP {code}: {error.message}{_advice(code)}"
            worth = code in _WORTH_ANOTHER_TRY or code >= 500
            raise (SinkUnavailable if worth else SinkRefused)(story) from error
        except (GoogleAuthError, requests.RequestException, OSError) as error:
            raise SinkUnavailable(f"Cloud Logging of project {access.project}: {error}") from error

    def flush(self) -> None:
        """Do nothing: nothing is held back."""

    def close(self) -> None:
        """Do nothing: the next request would open a connection anew."""


@dataclass(frozen=True, slots=True)
class LoggingClient:
    """Google's client for one project, and where the program runs."""

    project: str
    region: str
    api: Any


class CredentialsLookup:
    """Credentials, project and region, looked up in a thread of its own: metadata servers that hang take their time.

    A sink waits no longer than `_LOOK_UP_S` at once; records wait on the disk meanwhile.
    """

    def __init__(self, endpoint: str, *, project: str, region: str = "", scope: str) -> None:
        self._endpoint = endpoint
        self._project, self._region = project, region
        self._scope = scope
        self._thread: threading.Thread | None = None
        self._found: LoggingClient | None = None
        self._problem = ""

    def wait(self, timeout_s: float = _LOOK_UP_S) -> LoggingClient:
        """Return what was found. Raises `SinkUnavailable` if that is nothing, or takes longer; then ask again."""
        if self._found is None:
            if self._thread is None:
                self._thread = threading.Thread(target=self._look, name="mldiagnostics-credentials", daemon=True)
                self._thread.start()
            self._thread.join(timeout_s)
            if self._thread.is_alive():
                raise SinkNotReady("Cloud Logging: still looking for credentials and project")
            self._thread = None
        if self._found is None:
            raise SinkUnavailable(f"Cloud Logging: {self._problem}")
        return self._found

    def _look(self) -> None:
        try:
            self._found = self._access()
        except Exception as error:  # noqa: BLE001 - told by whoever waits; libraries for credentials raise anything
            self._problem = str(error) or repr(error)

    def _access(self) -> LoggingClient:
        import google.auth  # noqa: PLC0415 - loaded by the sink's own thread
        from google.api_core.client_options import ClientOptions  # noqa: PLC0415 - the same
        from google.auth.credentials import AnonymousCredentials  # noqa: PLC0415 - the same
        from google.cloud.logging import Client  # noqa: PLC0415 - the same

        cloud = CloudEnvironment(project=self._project or None, region=self._region or None, env=os.environ)
        credentials: Any
        if self._endpoint.startswith("http://"):  # never send a token in the clear
            credentials, project = AnonymousCredentials(), None
        else:
            credentials, project = google.auth.default(scopes=[self._scope])
        project = self._project or project or cloud.project()
        if not project:
            raise SinkUnavailable("no project is known: say machinelearning_run(project=…) or set GOOGLE_CLOUD_PROJECT")
        client = Client(
            project=project,
            credentials=credentials,
            client_options=ClientOptions(api_endpoint=self._endpoint or None),
            _http=_bounded_session(credentials),
            _use_grpc=False,
        )
        return LoggingClient(project, cloud.region() or _REGIONLESS, client.logging_api)


def _bounded_session(credentials: Any) -> Any:
    """Return a session like the client's own, whose requests end within `TIMEOUT_S`."""
    from google.auth.transport.requests import AuthorizedSession  # noqa: PLC0415 - loaded by the sink's own thread

    class Bounded(AuthorizedSession):  # type: ignore[misc]
        def request(self, *arguments: Any, **options: Any) -> Any:
            return super().request(*arguments, **{**options, "timeout": TIMEOUT_S, "max_allowed_time": TIMEOUT_S})

    return Bounded(credentials, refresh_timeout=TIMEOUT_S)


def _advice(code: int) -> str:
    return ": the job's service account needs the role roles/logging.logWriter" if code == 403 else ""
