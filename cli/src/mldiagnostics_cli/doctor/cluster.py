"""Checks of a cluster: resources, product, and rights of the caller."""

from __future__ import annotations

import asyncio
import time
from importlib.metadata import version
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.manifests.definition import definition_of
from mldiagnostics_api.names import GROUP, VERSION
from mldiagnostics_api.publication import PUBLICATION_NAME, PUBLICATION_NAMESPACE, Publication
from mldiagnostics_api.resources import CONNECTIONS, RUNS, SCHEDULES
from mldiagnostics_kube.client.apiserver import ClusterError, NotFound, path_to
from mldiagnostics_kube.installation.operator_volume import NAMESPACE, PRODUCT

from mldiagnostics_cli.cluster.objects import ObjectName
from mldiagnostics_cli.doctor.container import check_pod_sdk
from mldiagnostics_cli.doctor.finding import DoctorFinding, broken, fine, unknown
from mldiagnostics_cli.doctor.injecting import check_injection, check_labels
from mldiagnostics_cli.doctor.installation import (
    OPERATOR,
    WEBHOOK,
    certificate_finding,
    definition_finding,
    deployment_finding,
    endpoint_finding,
    version_finding,
)
from mldiagnostics_cli.doctor.pod import (
    check_pod_injection,
    check_pod_network,
    check_pod_port,
    check_pod_reports,
    choose_pod,
)
from mldiagnostics_cli.doctor.rights import check_rights
from mldiagnostics_cli.doctor.schedules import check_schedules

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from mldiagnostics_kube.client.cluster import Cluster

    Object = dict[str, Any]


SCHEMAS = f"/openapi/v3/apis/{GROUP}/{VERSION}"


async def check_cluster(cluster: Cluster, target: str | None) -> list[DoctorFinding]:
    """Return the findings about a cluster, and about a pod or workload in it.

    Raises:
        ConfigurationError: The pod or workload does not exist.
        ClusterError: The API server does not respond.
    """
    findings = [version_finding(await cluster.client.get("/version"), cluster.description)]
    pod = None if target is None else await choose_pod(cluster, ObjectName.parse(target))
    deployments = await _deployments(cluster)
    parts = [
        _attempt(cluster, "resources", _resources(cluster)),
        _attempt(cluster, OPERATOR, _deployment(OPERATOR, deployments)),
        _attempt(cluster, WEBHOOK, _deployment(WEBHOOK, deployments)),
        _attempt(cluster, "certificate", _registration(cluster)),
        _attempt(cluster, "labels", check_labels(cluster)),
        _attempt(cluster, "injection", check_injection(cluster)),
        _attempt(cluster, "control plane", _control_plane(cluster)),
        _attempt(cluster, "schedules", check_schedules(cluster)),
        _attempt(cluster, "rights", check_rights(cluster)),
    ]
    if pod is not None:
        of_pod = ObjectName.parse(pod["metadata"]["name"])
        operator_namespace = _namespace_of(deployments)
        parts += [
            _attempt(cluster, "run", check_pod_injection(cluster, of_pod, pod)),
            _attempt(cluster, "profiler", check_pod_port(cluster, pod)),
            _attempt(cluster, "network", check_pod_network(cluster, pod, operator_namespace)),
            _attempt(cluster, "sdk of the pod", check_pod_sdk(cluster, pod)),
            _attempt(cluster, "reports", check_pod_reports(cluster, pod)),
        ]
    return [*findings, *(finding for found in await asyncio.gather(*parts) for finding in found)]


async def _attempt(cluster: Cluster, part: str, check: Awaitable[list[DoctorFinding]]) -> list[DoctorFinding]:
    """Return the findings of a check, or why it could not be made."""
    try:
        return await check
    except (ClusterError, ConfigurationError) as error:
        text = str(cluster.failure(error) if isinstance(error, ClusterError) else error)
        problem, _, remedy = text.rpartition("; ")
        return [unknown(part, problem, remedy)]


async def _resources(cluster: Cluster) -> list[DoctorFinding]:
    try:
        schemas = (await cluster.client.get(SCHEMAS))["components"]["schemas"]
    except NotFound:
        schemas = {}
    served = {
        kind["kind"]: schema
        for schema in schemas.values()
        for kind in schema.get("x-kubernetes-group-version-kind") or ()
    }
    return [
        definition_finding(resource.kind, definition_of(resource), served.get(resource.kind))
        for resource in (CONNECTIONS, RUNS, SCHEDULES)
    ]


async def _deployments(cluster: Cluster) -> list[Object] | ClusterError:
    """Return the product's Deployments in all namespaces.

    Without that right, return those of the usual one.
    """
    failure: ClusterError | None = None
    for namespace in (None, NAMESPACE):
        path = path_to("apps", "v1", "deployments", namespace=namespace)
        try:
            return await cluster.client.items(path, lambda deployment: deployment, labels=PRODUCT)
        except ClusterError as error:
            failure = error
    assert failure is not None  # noqa: S101 - the loop has a turn
    return failure


async def _deployment(part: str, deployments: list[Object] | ClusterError) -> list[DoctorFinding]:
    if isinstance(deployments, ClusterError):
        raise deployments
    return [deployment_finding(part, deployments, version("mldiagnostics-cli"))]


def _namespace_of(deployments: list[Object] | ClusterError) -> str:
    """Return the namespace of the operator, or the usual one."""
    for deployment in deployments if isinstance(deployments, list) else ():
        if any(each["name"] == OPERATOR for each in deployment["spec"]["template"]["spec"]["containers"]):
            return str(deployment["metadata"]["namespace"])
    return NAMESPACE


async def _registration(cluster: Cluster) -> list[DoctorFinding]:
    """Check certificates and endpoints of the webhook's registration."""
    path = path_to("admissionregistration.k8s.io", "v1", "mutatingwebhookconfigurations")
    ours = [each for each in await cluster.client.items(path, lambda item: item) if _is_ours(each)]
    if not ours:
        return [broken("certificate", "no MutatingWebhookConfiguration of the webhook", "install the webhook's chart")]
    findings = [certificate_finding(each, time.time()) for each in ours]
    services = {
        f"{service['namespace']}/{service['name']}"
        for each in ours
        for entry in each["webhooks"]
        if (service := entry["clientConfig"].get("service"))
    }
    return [*findings, *[await _endpoints(cluster, WEBHOOK, service) for service in sorted(services)]]


def _is_ours(configuration: Object) -> bool:
    return any(entry["name"].endswith(f".injection.{GROUP}") for entry in configuration.get("webhooks") or ())


async def _control_plane(cluster: Cluster) -> list[DoctorFinding]:
    part = "control plane"
    path = path_to("", "v1", "configmaps", namespace=PUBLICATION_NAMESPACE, name=PUBLICATION_NAME)
    try:
        published = Publication.of((await cluster.client.get(path)).get("data") or {})
    except NotFound:
        published = None
    except ValueError as error:
        remedy = (
            f"kubectl delete configmap -n {PUBLICATION_NAMESPACE} {PUBLICATION_NAME} (the operator writes it again)"
        )
        return [broken(part, f"{PUBLICATION_NAMESPACE}/{PUBLICATION_NAME}: {error}", remedy)]
    if published is None:
        return [fine(part, "none is published; programs write to their storage only")]
    if not published.serves(cluster.namespace):
        remedy = "add the namespace to the operator's value namespaces"
        return [broken(part, f"{published.url}: does not serve namespace '{cluster.namespace}'", remedy)]
    service, _, rest = (urlsplit(published.url).hostname or "").partition(".")
    namespace = rest.partition(".")[0]
    if not namespace:
        return [fine(part, f"published as {published.url}")]
    return [await _endpoints(cluster, part, f"{namespace}/{service}")]


async def _endpoints(cluster: Cluster, part: str, service: str) -> DoctorFinding:
    namespace, _, name = service.partition("/")
    path = path_to("discovery.k8s.io", "v1", "endpointslices", namespace=namespace)
    try:
        slices: list[Object] = await cluster.client.items(
            path, lambda item: item, labels=f"kubernetes.io/service-name={name}"
        )
    except ClusterError as error:
        return unknown(part, f"Service {service}: its endpoints cannot be read: {error.detail or error}")
    return endpoint_finding(part, service, slices)
