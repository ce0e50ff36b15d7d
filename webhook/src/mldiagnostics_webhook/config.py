"""What the webhook is told by its environment: parsed once, every fault reported at once."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mldiagnostics.errors import ConfigurationError
from mldiagnostics_api.service import settings
from mldiagnostics_api.service.settings import Setting


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The webhook's settings; each field names its environment variable."""

    pod_name: Annotated[str, Setting("POD_NAME", "Name of this pod (fieldRef).", settings.dns_name)] = "local"
    pod_namespace: Annotated[
        str, Setting("POD_NAMESPACE", "Namespace of this pod (fieldRef): never injected into.", settings.dns_name)
    ] = "default"
    cluster_name: Annotated[
        str,
        Setting(
            "MLDIAG_CLUSTER_NAME",
            "Name of the cluster, part of every run id. Empty: GKE's metadata server is asked, "
            "else `k8s-` and the first 8 hex digits of the uid of namespace `kube-system`.",
        ),
    ] = ""
    port: Annotated[
        int, Setting("MLDIAG_PORT", "Port of the reviews (HTTPS); 0 lets the system choose.", settings.port)
    ] = 8443
    http_port: Annotated[
        int,
        Setting(
            "MLDIAG_HTTP_PORT", "Port of `/healthz`, `/readyz` and `/metrics`; 0 lets the system choose.", settings.port
        ),
    ] = 8081
    service_name: Annotated[
        str,
        Setting(
            "MLDIAG_SERVICE_NAME",
            "Name of the Service through which the API server calls; self-managed certificates are for "
            "`<name>.<POD_NAMESPACE>.svc`.",
            settings.dns_name,
        ),
    ] = "mldiagnostics-injection-webhook"
    configuration_name: Annotated[
        str,
        Setting(
            "MLDIAG_CONFIGURATION_NAME",
            "Name of the MutatingWebhookConfiguration; self-managed certificates publish their authorities there.",
            settings.dns_name,
        ),
    ] = "mldiagnostics-injection-webhook-mutating-webhook-config"
    certificate_secret: Annotated[
        str,
        Setting(
            "MLDIAG_CERTIFICATE_SECRET",
            "Name of the Secret, in this pod's namespace, that holds self-managed certificates.",
            settings.dns_name,
        ),
    ] = "mldiagnostics-injection-webhook-certificates"  # noqa: S105 - its name, not its content
    certificate_folder: Annotated[
        Path | None,
        Setting(
            "MLDIAG_CERTIFICATE_FOLDER",
            "Folder where `tls.crt` and `tls.key` of cert-manager or your own are mounted. "
            "Empty: certificates are self-managed.",
            settings.absolute_path,
        ),
    ] = None
    log_level: Annotated[
        str, Setting("MLDIAG_LOG_LEVEL", f"One of {', '.join(settings.LOG_LEVELS)}.", settings.log_level)
    ] = "INFO"


def load(environ: Mapping[str, str]) -> Config:
    """Read the settings; an unset or empty variable means its default.

    Raises ConfigurationError that lists every fault, not only the first.
    """
    config, faults = settings.read(Config, environ)
    if faults:
        raise ConfigurationError("The webhook's environment is wrong: " + "; ".join(faults))
    return config


def reference() -> str:
    """Write the reference page of the variables (Markdown)."""
    return settings.reference(Config, title="Environment of the webhook", module="mldiagnostics_webhook.config")


if __name__ == "__main__":
    sys.stdout.write(reference())
