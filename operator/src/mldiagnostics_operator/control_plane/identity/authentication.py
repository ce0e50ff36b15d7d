"""Authentication: a token to its sender, by TokenReview, cached for a while."""

from __future__ import annotations

import base64
import hashlib
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

import orjson
from mldiagnostics_api.injection.control_plane import AUDIENCE
from mldiagnostics_kube.client.apiserver import ClusterError, path_to

from mldiagnostics_operator.control_plane.identity.lookups import Overloaded
from mldiagnostics_operator.control_plane.identity.sender import Sender
from mldiagnostics_operator.control_plane.limits import (
    MAX_REJECTIONS,
    MAX_TOKEN_LENGTH,
    MAX_TOKENS,
    REJECTION_CACHE_S,
    REVIEW_CACHE_S,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mldiagnostics_kube.client.api_client import ApiClient

    from mldiagnostics_operator.control_plane.identity.lookups import Lookups

_REVIEWS: Final = path_to("authentication.k8s.io", "v1", "tokenreviews")
_ACCOUNT: Final = "system:serviceaccount:"
_EXTRA: Final = "authentication.kubernetes.io"
_USE: Final = (
    f"use a projected service-account token with the audience {AUDIENCE!r}, "
    f"for example of `kubectl create token NAME --audience={AUDIENCE}`"
)


class Unauthenticated(Exception):
    """The token is missing or not valid here."""


class Authenticator:
    """Returns the sender of a token; asks the API server at most every five minutes.

    Args:
        cluster: Client of the API server.
        lookups: Turns at look-ups.
        clock: Unix time.
    """

    def __init__(self, cluster: ApiClient, lookups: Lookups, clock: Callable[[], float]) -> None:
        self._cluster = cluster
        self._lookups = lookups
        self._clock = clock
        self._senders: OrderedDict[bytes, tuple[float, Sender]] = OrderedDict()
        """End of use and sender, by the digest of the token."""
        self._rejected: OrderedDict[bytes, tuple[float, str]] = OrderedDict()
        self._of_pod: dict[str, set[bytes]] = {}

    async def sender(self, authorization: str, client: str) -> Sender:
        """Return the sender of an `Authorization` header.

        Args:
            authorization: The header's value.
            client: Address of the client, for its turn.

        Raises:
            Unauthenticated: There is no valid token.
            Overloaded: The API server does not answer, or too many wait.
        """
        scheme, _, token = authorization.partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > MAX_TOKEN_LENGTH or not token.isascii():
            raise Unauthenticated(f"Authorization: has no bearer token; {_USE}")
        digest = hashlib.sha256(token.encode()).digest()
        known = self._known(digest)
        if known is not None:
            return known
        async with self._lookups.turn(client, "tokenreview"):
            known = self._known(digest)  # another request of the client may have waited before
            if known is not None:
                return known
            try:
                review = await self._cluster.request(
                    "POST", _REVIEWS, body={"spec": {"token": token, "audiences": [AUDIENCE]}}
                )
            except ClusterError as error:
                raise Overloaded(f"the token cannot be reviewed now: {str(error)[:300]}; try again later") from error
        return self._keep(digest, token, review.get("status") or {})

    def forget_pod(self, uid: str) -> None:
        """Drop the tokens of a pod that does not exist any more."""
        for digest in self._of_pod.pop(uid, ()):
            self._senders.pop(digest, None)

    def forget_all(self) -> None:
        """Drop all tokens; each is reviewed again."""
        self._senders.clear()
        self._of_pod.clear()

    def _known(self, digest: bytes) -> Sender | None:
        now = self._clock()
        if (kept := self._senders.get(digest)) and now < kept[0]:
            return kept[1]
        if (rejected := self._rejected.get(digest)) and now < rejected[0]:
            raise Unauthenticated(rejected[1])
        return None

    def _keep(self, digest: bytes, token: str, status: Mapping[str, Any]) -> Sender:
        now = self._clock()
        try:
            sender = _sender(status)
        except Unauthenticated as error:
            self._rejected[digest] = now + REJECTION_CACHE_S, str(error)
            if len(self._rejected) > MAX_REJECTIONS:
                self._rejected.popitem(last=False)
            raise
        self._drop(digest)
        self._senders[digest] = min(now + REVIEW_CACHE_S, _expiry(token)), sender
        if sender.pod_uid:
            self._of_pod.setdefault(sender.pod_uid, set()).add(digest)
        if len(self._senders) > MAX_TOKENS:
            self._drop(next(iter(self._senders)))
        return sender

    def _drop(self, digest: bytes) -> None:
        kept = self._senders.pop(digest, None)
        if kept and (digests := self._of_pod.get(kept[1].pod_uid)):
            digests.discard(digest)
            if not digests:
                del self._of_pod[kept[1].pod_uid]


def _sender(status: Mapping[str, Any]) -> Sender:
    """Return the sender in the status of a TokenReview."""
    if not status.get("authenticated"):
        raise Unauthenticated(f"token: is not valid ({str(status.get('error') or 'rejected')[:200]}); {_USE}")
    if AUDIENCE not in (status.get("audiences") or ()):
        raise Unauthenticated(f"token: is for another audience; {_USE}")
    user = status.get("user") or {}
    name = str(user.get("username") or "")
    namespace, separator, account = name.removeprefix(_ACCOUNT).partition(":")
    if not name.startswith(_ACCOUNT) or not separator:
        raise Unauthenticated(f"token: is not of a service account; {_USE}")
    extra = user.get("extra") or {}
    pod, uid, node = (str((extra.get(f"{_EXTRA}/{key}") or [""])[0]) for key in ("pod-name", "pod-uid", "node-name"))
    return Sender(namespace, account, pod if uid else "", uid if pod else "", node)


def _expiry(token: str) -> float:
    """Return when a reviewed token expires; the API server has verified its content."""
    payload = token.split(".")[1:2]
    try:
        text = payload[0]
        return float(orjson.loads(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))["exp"])
    except (IndexError, KeyError, TypeError, ValueError):
        return 0.0
