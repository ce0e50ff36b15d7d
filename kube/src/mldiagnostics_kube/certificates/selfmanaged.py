"""Self-managed certificates: every replica looks at one Secret and one configuration, and does what is due.

No replica leads. Whoever is first writes, and only over the version it has read; the others see it at their next look.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from cryptography import x509

from mldiagnostics_kube.apiserver import ClusterError, Conflict, NotFound, path_to
from mldiagnostics_kube.certificates import bundle, pem
from mldiagnostics_kube.certificates.content import SecretContent
from mldiagnostics_kube.certificates.renewal import with_new_authority, with_new_leaf
from mldiagnostics_kube.certificates.rotation import RotationRules, RotationStep, decide
from mldiagnostics_kube.certificates.serving import Serving
from mldiagnostics_kube.client import ApiClient
from mldiagnostics_kube.clock import Clock

_log: Final = logging.getLogger(__name__)
_APPLY: Final = "application/apply-patch+yaml"
_AS_MANAGER: Final = (("fieldManager", "mldiagnostics-certificates"), ("force", "true"))

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class CertificateObjects:
    """Names of the objects where the certificates are kept and published."""

    namespace: str
    secret: str
    configuration: str


@dataclass(frozen=True, slots=True)
class RotationTiming:
    """The pause between two looks, after a write or a conflict, and how long an authority is published before it signs.

    API servers learn of a changed configuration by their watch, within a second as a rule.
    """

    look_s: float = 5.0
    again_s: float = 0.2
    settle: timedelta = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class TrustObservation:
    """A version of the configuration that trusts an authority, and since when it is seen."""

    version: str
    authority: x509.Certificate
    since: datetime


def sight(
    last: TrustObservation | None, configuration: Mapping[str, Any] | None, authority: x509.Certificate, now: datetime
) -> TrustObservation | None:
    """Compare what is seen at `now` with what was seen last: the time counts from the last change."""
    if configuration is None or not bundle.trusts(configuration, authority):
        return None
    version = configuration["metadata"]["resourceVersion"]
    if last is not None and (last.version, last.authority) == (version, authority):
        return last
    return TrustObservation(version, authority, now)


class SelfManaged:
    """The loop of one replica: `run` keeps the Secret, the configuration and what is served as they should be."""

    def __init__(
        self,
        cluster: ApiClient,
        place: CertificateObjects,
        rules: RotationRules,
        serving: Serving,
        *,
        clock: Clock,
        pace: RotationTiming,
    ) -> None:
        self._cluster = cluster
        self._place = place
        self._rules = rules
        self._serving = serving
        self._clock = clock
        self._pace = pace
        self._secret_path = path_to("", "v1", "secrets", namespace=place.namespace, name=place.secret)
        self._configuration_path = path_to(
            "admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations", name=place.configuration
        )
        self._sight: TrustObservation | None = None
        self._trouble = ""

    async def run(self) -> None:
        """Look and act, for ever; what fails is told in the log and tried again."""
        while True:  # noqa: ASYNC110 - the cluster is asked
            await asyncio.sleep(await self._attempt())

    async def _attempt(self) -> float:
        """Look once; gives the pause until the next look."""
        try:
            wrote = await self._look()
        except Conflict:
            return self._pace.again_s  # another replica was faster; the next look tells what it did
        except ClusterError as error:
            self._tell(f"Certificates are not looked after: {error}")
            return self._pace.look_s
        except Exception:  # noqa: BLE001 - what stands in the cluster may be strange; what is served must stay
            _log.exception("Certificates are not looked after")
            return self._pace.look_s
        return self._pace.again_s if wrote else self._pace.look_s

    async def _look(self) -> bool:
        """Do what is due; True after a write."""
        configuration = await self._read(self._configuration_path)  # before the Secret: see `rotation`
        secret = await self._read(self._secret_path) or await self._apply(self._secret_path, self._secret())
        content = self._content(secret)
        published = bundle.published(configuration) if configuration else ()
        now = self._clock()
        step = decide(content, published, now, self._rules, settled=self._settled(configuration, content, now))
        if content is None or step is RotationStep.NEW_AUTHORITY:
            renewed = with_new_authority(content, published, now, self._rules)
        elif step is RotationStep.NEW_LEAF:
            renewed = with_new_leaf(content, now, self._rules)
        else:
            self._serve(content)
            return await self._publish(configuration, content)
        await self._apply(self._secret_path, self._secret(secret, renewed))
        _log.info("Changed the certificates in the Secret %s: %s", self._place.secret, step)
        return True

    def _content(self, secret: Json) -> SecretContent | None:
        data = secret.get("data") or {}
        try:
            return SecretContent.of(data) if data else None
        except ValueError as fault:
            _log.warning("The Secret %s is replaced, its content is not usable: %s", self._place.secret, fault)
            return None

    def _settled(self, configuration: Json | None, content: SecretContent | None, now: datetime) -> bool:
        if content is None:
            return False
        self._sight = sight(self._sight, configuration, content.authority.certificate, now)
        return self._sight is not None and now - self._sight.since >= self._pace.settle

    def _serve(self, content: SecretContent) -> None:
        if (leaf := content.leaf) is None:
            return
        if self._serving.show(pem.of_certificates([leaf.certificate]), pem.of_key(leaf.key)):
            _log.info("Serving a certificate that is valid until %s", leaf.ends.isoformat())

    async def _publish(self, configuration: Json | None, content: SecretContent) -> bool:
        if configuration is None:
            self._tell(f"The API server calls no webhook yet: there is no configuration {self._place.configuration}")
            return False
        self._tell("")
        change = bundle.publish(configuration, content.trusted)
        if change is None:
            return False
        await self._apply(self._configuration_path, change)
        _log.info("Published %d authorities in %s", len(content.trusted), self._place.configuration)
        return True

    def _secret(self, replaced: Json | None = None, content: SecretContent | None = None) -> Json:
        """Compose the Secret for server-side apply, over exactly the version that was read, or an empty one."""
        metadata: Json = {"namespace": self._place.namespace, "name": self._place.secret}
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

    async def _apply(self, path: str, body: Json) -> Json:
        return await self._cluster.request("PATCH", path, query=_AS_MANAGER, body=body, content_type=_APPLY)

    def _tell(self, trouble: str) -> None:
        """Log what is wrong once, not at every look."""
        if trouble and trouble != self._trouble:
            _log.warning("%s", trouble)
        self._trouble = trouble
