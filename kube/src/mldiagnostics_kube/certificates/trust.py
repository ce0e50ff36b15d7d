"""The object in which clients find the authorities to trust."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol

from cryptography import x509

from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import APPLY_PATCH

Json = Mapping[str, Any]

FIELD_MANAGER: Final = "mldiagnostics-certificates"


class TrustStore(Protocol):
    """The object that publishes authorities, and how to read and write its content.

    The store itself sends nothing: the arguments `stored` are objects that the caller has read.
    """

    @property
    def path(self) -> str:
        """URL path of the object."""

    @property
    def title(self) -> str:
        """Kind and name of the object, for logs."""

    @property
    def if_missing(self) -> str:
        """Consequence if the object does not exist, for logs."""

    def published(self, stored: Json) -> tuple[x509.Certificate, ...]:
        """Return the authorities that any client trusts."""

    def trusts(self, stored: Json, authority: x509.Certificate) -> bool:
        """Return whether every client trusts the authority."""

    def changed(self, stored: Json) -> datetime | None:
        """Return when the content changed last; None if the object does not show it."""

    def publish(self, stored: Json, trusted: Sequence[x509.Certificate]) -> dict[str, Any] | None:
        """Return a server-side apply patch of the version that was read.

        None means that every client already trusts exactly these authorities.
        """


@dataclass(frozen=True, slots=True)
class TrustObservation:
    """A version of the object that trusts an authority, and how long it has."""

    version: str
    authority: x509.Certificate
    since: datetime


def observe(
    last: TrustObservation | None, store: TrustStore, stored: Json | None, authority: x509.Certificate, now: datetime
) -> TrustObservation | None:
    """Return the observation of an object read at `now`, given the previous one.

    Returns:
        None if some client does not trust the authority.
    """
    if stored is None or not store.trusts(stored, authority):
        return None
    version = stored["metadata"]["resourceVersion"]
    if last is not None and (last.version, last.authority) == (version, authority):
        return last
    return TrustObservation(version, authority, store.changed(stored) or now)


async def apply(cluster: ApiClient, path: str, body: Json) -> dict[str, Any]:
    """Write the fields in `body` with server-side apply, and return the object.

    Raises Conflict if the body has a resourceVersion that is not the newest.
    """
    query = (("fieldManager", FIELD_MANAGER), ("force", "true"))
    return await cluster.request("PATCH", path, query=query, body=body, content_type=APPLY_PATCH)
