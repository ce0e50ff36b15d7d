"""Verdicts about the objects of an installation in a cluster; pure."""

from __future__ import annotations

import re
import ssl
from base64 import b64decode
from typing import TYPE_CHECKING, Any

from mldiagnostics.text.counts import counted, counted_of
from mldiagnostics_kube.installation.operator_volume import NAMESPACE

from mldiagnostics_cli.doctor.finding import broken, fine

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from mldiagnostics_cli.doctor.finding import DoctorFinding

    Object = Mapping[str, Any]


OPERATOR, WEBHOOK = "operator", "webhook"
"""Names of the containers in the charts' Deployments."""

CHARTS = {OPERATOR: "mldiagnostics-connection-operator", WEBHOOK: "mldiagnostics-injection-webhook"}

OLDEST_KUBERNETES = (1, 32)
EXPIRES_SOON_S = 7 * 86_400


def version_finding(version: Object, cluster: str) -> DoctorFinding:
    """Return the verdict about the version of the API server."""
    name = str(version.get("gitVersion", "of unknown version"))
    match = re.match(r"v(\d+)\.(\d+)", name)
    if match and (int(match[1]), int(match[2])) < OLDEST_KUBERNETES:
        oldest = ".".join(map(str, OLDEST_KUBERNETES))
        return broken("cluster", f"{cluster}: Kubernetes {name} is not supported", f"upgrade it to {oldest} or later")
    return fine("cluster", f"{cluster}: Kubernetes {name}")


def definition_finding(kind: str, definition: Object, served: Object | None) -> DoctorFinding:
    """Return the verdict about a custom resource.

    Args:
        kind: Kind of the resource.
        definition: Its CustomResourceDefinition in this version.
        served: Schema of the kind that the API server serves; None if it does not serve the kind.
    """
    upgrade = f"helm upgrade --install {CHARTS[OPERATOR]} charts/{CHARTS[OPERATOR]} -n {NAMESPACE} --create-namespace"
    if served is None:
        return broken("resources", f"{kind}: not installed in this cluster", upgrade)
    wanted = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    if missing := list(missing_fields(wanted, served)):
        shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        return broken("resources", f"{kind}: older than this command line: lacks {shown}", upgrade)
    return fine("resources", f"{kind}: installed")


def missing_fields(wanted: Object, served: Object, path: str = "") -> Iterator[str]:
    """Yield the fields of a schema that another one lacks, as paths."""
    for name, schema in (wanted.get("properties") or {}).items():
        if not path and name in ("apiVersion", "kind", "metadata"):
            continue
        place = f"{path}.{name}" if path else name
        found = (served.get("properties") or {}).get(name)
        if found is None:
            yield place
        else:
            yield from missing_fields(schema, found, place)


def deployment_finding(part: str, deployments: Sequence[Object], own_version: str) -> DoctorFinding:
    """Return the verdict about the Deployments of operator or webhook.

    Args:
        part: `operator` or `webhook`.
        deployments: All Deployments of the product.
        own_version: Version of the command line.
    """
    mine = [each for each in deployments if part in _containers(each)]
    chart = CHARTS[part]
    if not mine:
        install = f"helm install {chart} charts/{chart} -n {NAMESPACE} --create-namespace"
        return broken(part, f"not installed: no Deployment of {chart}", install)
    deployment = mine[0]
    metadata, status = deployment["metadata"], deployment.get("status") or {}
    place = f"-n {metadata['namespace']} deployment/{metadata['name']}"
    available, wanted = status.get("availableReplicas", 0), deployment["spec"].get("replicas", 1)
    version = (metadata.get("labels") or {}).get("app.kubernetes.io/version", "")
    replicas = counted_of(available, wanted, "replica", "are")
    message = f"{metadata['namespace']}/{metadata['name']} {version}: {replicas} available"
    if not available:
        return broken(part, message, f"kubectl describe {place} ; kubectl logs {place}")
    if _is_older(version, own_version):
        upgrade = f"helm upgrade {metadata['name']} charts/{chart} -n {metadata['namespace']}"
        return broken(part, f"{message}; it is older than this command line ({own_version})", upgrade)
    return fine(part, message)


def certificate_finding(configuration: Object, now: float) -> DoctorFinding:
    """Return the verdict about the authorities that verify the webhook.

    Args:
        configuration: The MutatingWebhookConfiguration.
        now: Current time in Unix seconds.
    """
    name = configuration["metadata"]["name"]
    selector = "app.kubernetes.io/part-of=mldiagnostics"
    restart = f"kubectl rollout restart deployment -n {_namespace_of(configuration)} -l {selector}"
    ends = []
    for entry in configuration.get("webhooks") or ():
        bundle = entry["clientConfig"].get("caBundle")
        if not bundle:
            return broken("certificate", f"{name}: entry {entry['name']} has no certificate authority", restart)
        try:
            ends.append(_latest_end(b64decode(bundle).decode("ascii")))
        except (ValueError, ssl.SSLError) as error:
            return broken("certificate", f"{name}: the authority of {entry['name']} cannot be read: {error}", restart)
    if not ends:
        return broken("certificate", f"{name}: has no entries", f"helm upgrade --install {CHARTS[WEBHOOK]} …")
    left_s = min(ends) - now
    if left_s <= 0:
        ago = counted(round(-left_s / 86_400), "day")
        return broken("certificate", f"{name}: its authority expired {ago} ago", restart)
    if left_s < EXPIRES_SOON_S:
        left = counted(round(left_s / 3600), "hour")
        return broken("certificate", f"{name}: its authority expires in {left}", restart)
    return fine("certificate", f"{name}: its authority is valid for {counted(round(left_s / 86_400), 'day')}")


def endpoint_finding(part: str, service: str, slices: Sequence[Object]) -> DoctorFinding:
    """Return the verdict about the endpoints of a Service."""
    endpoints = [endpoint for each in slices for endpoint in each.get("endpoints") or ()]
    ready = sum((endpoint.get("conditions") or {}).get("ready") is not False for endpoint in endpoints)
    namespace, _, name = service.partition("/")
    if not ready:
        remedy = f"kubectl get pods -n {namespace} ; kubectl describe service -n {namespace} {name}"
        return broken(part, f"Service {service} has no ready endpoint, so nothing can reach it", remedy)
    return fine(part, f"Service {service} has {counted(ready, 'ready endpoint')}")


def _containers(deployment: Object) -> set[str]:
    return {container["name"] for container in deployment["spec"]["template"]["spec"]["containers"]}


def _namespace_of(configuration: Object) -> str:
    services = [entry["clientConfig"].get("service") for entry in configuration.get("webhooks") or ()]
    return next((service["namespace"] for service in services if service), NAMESPACE)


def _latest_end(pem: str) -> float:
    """Return when the last authority of a bundle expires, in Unix seconds."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem)
    ends = [ssl.cert_time_to_seconds(str(each["notAfter"])) for each in context.get_ca_certs()]
    if not ends:
        raise ValueError("no certificate of an authority")
    return max(ends)


def _is_older(version: str, than: str) -> bool:
    numbers = [[int(part) for part in re.findall(r"\d+", each)[:3]] for each in (version, than)]
    return bool(numbers[0]) and numbers[0] < numbers[1]
