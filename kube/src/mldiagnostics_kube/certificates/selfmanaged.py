"""Self-managed certificates: every replica updates one Secret and one trust store.

There is no leader. A write replaces only the version that was read, so the first replica wins; the others see the
change at their next read.
"""

import asyncio
import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.certificates.content import SecretContent
from mldiagnostics_kube.certificates.renewal import with_new_authority, with_new_leaf
from mldiagnostics_kube.certificates.rotation import RotationRules, RotationStep, decide
from mldiagnostics_kube.certificates.serving import ServingCertificate
from mldiagnostics_kube.certificates.trust import TrustObservation, TrustStore, apply, observe
from mldiagnostics_kube.client.api_client import ApiClient
from mldiagnostics_kube.client.apiserver import ClusterError, Conflict, NotFound, path_to
from mldiagnostics_kube.process.clock import Clock

_log: Final = logging.getLogger(__name__)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CertificateObjects:
    """The Secret of the certificates, and the object that publishes their authorities."""

    namespace: str
    secret: str
    trust: TrustStore | None
    """None: people copy the authorities to the clients."""


@dataclass(frozen=True, slots=True)
class RotationTiming:
    """Pauses of the loop."""

    poll_s: float = 5.0
    """Between two reads."""
    retry_s: float = 0.2
    """After a write or a conflict."""


class SelfManaged:
    """The loop that updates the Secret, the trust store and the served certificate."""

    def __init__(
        self,
        cluster: ApiClient,
        objects: CertificateObjects,
        rules: RotationRules,
        serving: ServingCertificate,
        *,
        clock: Clock,
        timing: RotationTiming,
    ) -> None:
        self._cluster = cluster
        self._objects = objects
        self._rules = rules
        self._serving = serving
        self._clock = clock
        self._timing = timing
        self._secret_path = path_to("", "v1", "secrets", namespace=objects.namespace, name=objects.secret)
        self._observation: TrustObservation | None = None
        self._last_problem = ""

    async def run(self) -> None:
        """Reconcile until cancelled; failures are logged and retried."""
        while True:  # noqa: ASYNC110 - polls the API server
            await asyncio.sleep(await self._attempt())

    async def _attempt(self) -> float:
        """Reconcile once; return the pause until the next attempt in seconds."""
        try:
            wrote = await self._reconcile()
        except Conflict:
            return self._timing.retry_s  # another replica was faster
        except ClusterError as error:
            self._warn_once(f"Certificate check failed, it is retried: {error}")
            return self._timing.poll_s
        except Exception:  # noqa: BLE001 - objects may be malformed; the certificate in service must stay
            _log.exception("Certificate check failed, it is retried")
            return self._timing.poll_s
        return self._timing.retry_s if wrote else self._timing.poll_s

    async def _reconcile(self) -> bool:
        """Make the next change that is due; return whether something was written."""
        trust = self._objects.trust
        stored = await self._read(trust.path) if trust else None  # before the Secret: see `rotation`
        secret = await self._read(self._secret_path) or await apply(self._cluster, self._secret_path, self._secret())
        content = self._content(secret)
        published = trust.published(stored) if trust and stored else ()
        now = self._clock()
        step = decide(content, published, now, self._rules, trusted_for=self._trusted_for(stored, content, now))
        if content is None or step is RotationStep.NEW_AUTHORITY:
            renewed = with_new_authority(content, published, now, self._rules)
        elif step is RotationStep.NEW_LEAF:
            renewed = with_new_leaf(content, now, self._rules)
        else:
            self._serve(content)
            return await self._publish(trust, stored, content) if trust else False
        await apply(self._cluster, self._secret_path, self._secret(secret, renewed))
        _log.info(
            "Secret %(secret)s: changed the certificates: %(step)s", {"secret": self._objects.secret, "step": step}
        )
        return True

    def _content(self, secret: Json) -> SecretContent | None:
        data = secret.get("data") or {}
        try:
            return SecretContent.of(data) if data else None
        except ValueError as fault:
            _log.warning(
                "Secret %(secret)s: replacing unusable content: %(error)s",
                {"secret": self._objects.secret, "error": fault},
            )
            return None

    def _trusted_for(self, stored: Json | None, content: SecretContent | None, now: datetime) -> timedelta | None:
        """Return how long all clients have trusted the authority; None if they do not."""
        trust = self._objects.trust
        if content is None or trust is None:
            return None
        self._observation = observe(self._observation, trust, stored, content.authority.certificate, now)
        return now - self._observation.since if self._observation else None

    def _serve(self, content: SecretContent) -> None:
        if (leaf := content.leaf) is None:
            return
        if self._serving.load(pem.of_certificates([leaf.certificate]), pem.of_key(leaf.key)):
            _log.info("Serving a certificate that is valid until %(expires)s", {"expires": leaf.ends.isoformat()})

    async def _publish(self, trust: TrustStore, stored: Json | None, content: SecretContent) -> bool:
        if stored is None:
            self._warn_once(f"{trust.title}: not found; {trust.if_missing}")
            return False
        self._warn_once("")
        change = trust.publish(stored, content.trusted)
        if change is None:
            return False
        await apply(self._cluster, trust.path, change)
        _log.info(
            "%(object)s: published %(authorities)d authorities",
            {"object": trust.title, "authorities": len(content.trusted)},
        )
        return True

    def _secret(self, replaced: Json | None = None, content: SecretContent | None = None) -> Json:
        """Return the Secret for server-side apply over the version that was read."""
        metadata: Json = {"namespace": self._objects.namespace, "name": self._objects.secret}
        body: Json = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
        if replaced:
            metadata["resourceVersion"] = replaced["metadata"]["resourceVersion"]
        if content:
            body["data"] = content.data()
        return body

    async def _read(self, path: str) -> Json | None:
        try:
            return await self._cluster.get(path)
        except NotFound:
            return None

    def _warn_once(self, problem: str) -> None:
        """Log a problem once, not at every attempt."""
        if problem and problem != self._last_problem:
            _log.warning("%(problem)s", {"problem": problem})
        self._last_problem = problem
