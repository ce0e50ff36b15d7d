"""The control plane that the operator publishes, read every few seconds."""

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final

from mldiagnostics_api.publication import PUBLICATION_NAME, PUBLICATION_NAMESPACE, Publication
from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, RequestRejected, path_to
from mldiagnostics_kube.process.background import running

_log: Final = logging.getLogger(__name__)

POLL_S: Final = 5.0
_PATH: Final = path_to("", "v1", "configmaps", namespace=PUBLICATION_NAMESPACE, name=PUBLICATION_NAME)
_TITLE: Final = f"ConfigMap {PUBLICATION_NAMESPACE}/{PUBLICATION_NAME}"


class PublicationReader:
    """Follows the publication.

    While the API server does not answer, the latest publication stays. An absent one means that the operator is not
    installed, or that its control plane is off.

    Args:
        cluster: Client of the API server.
        changed: Called with each new publication, and with None if there is none any more.
        poll_s: Pause between two reads in seconds.
    """

    def __init__(
        self, cluster: ApiClient, changed: Callable[[Publication | None], None], *, poll_s: float = POLL_S
    ) -> None:
        self.settled = False
        """Whether the API server has answered once."""
        self._cluster = cluster
        self._changed = changed
        self._poll_s = poll_s
        self._current: Publication | None = None
        self._last_problem = ""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Read while the block runs."""
        return running(self._run())

    async def _run(self) -> None:
        while True:
            await self._poll()
            await asyncio.sleep(self._poll_s)

    async def _poll(self) -> None:
        problem = ""
        try:
            self._use(_parse((await self._cluster.get(_PATH)).get("data") or {}))
        except NotFound:
            self._use(None)
        except ValueError as fault:
            problem = f"{_TITLE}: {fault}; pods get no control plane"
            self._use(None)
        except RequestRejected as rejection:
            problem = f"{_TITLE}: cannot be read, pods get no control plane: {rejection}"
            self._use(None)
        except ClusterError as failure:
            problem = f"{_TITLE}: cannot be read, it is retried: {failure}"
        if problem and problem != self._last_problem:
            _log.warning("%(problem)s", {"problem": problem})
        self._last_problem = problem

    def _use(self, publication: Publication | None) -> None:
        self.settled = True
        if publication != self._current:
            self._current = publication
            _log.info("The control plane of new pods is %(url)s", {"url": publication.url if publication else "none"})
            self._changed(publication)


def _parse(data: dict[str, str]) -> Publication | None:
    """Parse a publication; raise ValueError if it cannot be used."""
    publication = Publication.of(data)
    if publication:
        try:
            pem.certificates(publication.ca.encode())
        except ValueError as fault:
            raise ValueError(f"ca.crt: {fault}") from fault
    return publication
