from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cluster.certificates import make_certificates
from mldiagnostics_kube.certificates import ServingCertificate
from mldiagnostics_webhook.replica import WebhookHealth

if TYPE_CHECKING:
    from pathlib import Path

NOW = datetime.now(UTC)


def test_readiness_names_the_first_missing_part(tmp_path: Path) -> None:
    clock, synced = [NOW], [False]
    certificate = ServingCertificate(lambda: clock[0])
    health = WebhookHealth(lambda: synced[0])
    assert health.ready() == (False, "resolving the cluster's name")
    health.serving = True
    assert health.ready() == (False, "waiting for a certificate")
    health.certificate = certificate
    assert health.ready() == (False, "waiting for a certificate")
    files = make_certificates(tmp_path, hosts=["a"])
    certificate.load(files.certificate("apiserver").read_bytes(), files.key("apiserver").read_bytes())
    assert health.ready() == (False, "reading namespaces and workloads")
    synced[0] = True
    assert health.ready() == (True, "serving")
    clock[0] = NOW + timedelta(days=5000)
    assert health.ready() == (False, "waiting for a certificate")
    health.leaving = True
    assert health.ready() == (False, "shutting down")


def test_liveness_is_always_true() -> None:
    assert WebhookHealth(lambda: False).live() == (True, "resolving the cluster's name")
