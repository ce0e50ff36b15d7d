"""A real API server accepts every injected pod, and every pod with an explanation that it accepted before."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import jsonpatch
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from mldiagnostics_api.injection import InjectionSettings, controller_of, decide, patch
from mldiagnostics_api.workloads.owners import owner_chain
from support.cluster import admission
from support.cluster import builders as a
from support.cluster.impersonation import Answer, Requests

if TYPE_CHECKING:
    from cluster.envtest import ApiServer

pytestmark = pytest.mark.apiserver

SETTINGS = InjectionSettings(
    cluster="projects/p/locations/l/clusters/c1",
    storage="gs://bücket/$(HOME)",
    sinks=("jsonl:",),
    view_url="https://view",
    control_plane_url="https://control",
    control_plane_ca="-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
)


@pytest.fixture(scope="module")
def api(api_server: ApiServer) -> Requests:
    return Requests(api_server.kubeconfig)


@pytest.fixture(scope="module")
def namespace(api: Requests) -> str:
    name = f"injection-{uuid4().hex[:8]}"
    assert api("POST", "/api/v1/namespaces", {"metadata": {"name": name}}).status == 201
    return name


def tried(api: Requests, namespace: str, pod: dict[str, Any]) -> Answer:
    return api("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)


@hypothesis_settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(admission.situations())
def test_a_valid_pod_stays_valid(api: Requests, namespace: str, situation: tuple[a.World, dict[str, Any]]) -> None:
    world, pod = situation
    pod["metadata"]["name"] = "trainer-0"
    owners = owner_chain(controller_of(pod, "ml"), admission.reader(world), pods=False)
    before = tried(api, namespace, pod)
    decision = decide(
        pod,
        namespace="ml",
        namespace_labels={},
        namespace_annotations={},
        owners=owners,
        settings=SETTINGS,
        now=dt.datetime(2026, 11, 21, tzinfo=dt.UTC),
    )
    after = tried(api, namespace, jsonpatch.apply_patch(pod, patch(pod, decision)))
    if before.status == 201:
        assert after.status == 201, after.message
    else:
        assert after.status == before.status
