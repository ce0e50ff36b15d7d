"""Settings of the webhook, from environment variables."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

from cryptography.x509 import load_pem_x509_certificates
from mldiagnostics.capture.addresses import DEFAULT_PORT
from mldiagnostics.errors import ConfigurationError
from mldiagnostics.locations import BUCKET_SCHEMES
from mldiagnostics.sink_urls import parse_sinks
from mldiagnostics_api.workloads.variables import InjectionSettings
from mldiagnostics_kube.installation.cluster_name import ConfiguredName
from mldiagnostics_kube.process import settings
from mldiagnostics_kube.process.settings import LogLevel, Setting, SettingsReader

_STORAGE: Final = re.compile(rf"({'|'.join(BUCKET_SCHEMES)})://[^/\s]+(/\S*)?|/\S+")
_URL: Final = re.compile(r"https?://[\x21-\x7e]+")


def _sinks(raw: str) -> tuple[str, ...]:
    try:
        return parse_sinks(raw)
    except ConfigurationError as fault:
        raise ValueError(f"has {fault}") from fault


def _storage(raw: str) -> str:
    if not _STORAGE.fullmatch(raw):
        raise ValueError("is not a storage location; write a URL such as s3://bucket/prefix, or an absolute path")
    return raw


def _url(raw: str) -> str:
    if not _URL.fullmatch(raw):
        raise ValueError("is not an http(s) URL; write it like https://host:8443")
    return raw


def _certificates(raw: str) -> str:
    try:
        load_pem_x509_certificates(raw.encode())
    except ValueError as fault:
        raise ValueError(f"is not a certificate in PEM: {fault}") from fault
    return f"{raw}\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookConfig:
    """Settings of the webhook; each field names its environment variable."""

    pod_namespace: Annotated[
        str,
        Setting(
            "POD_NAMESPACE",
            "Namespace of this pod (fieldRef), which holds the Secret of the certificates.",
            settings.dns_name,
        ),
    ] = "default"
    cluster_name: ConfiguredName = ""
    storage: Annotated[
        str,
        Setting(
            "MLDIAG_STORAGE",
            "Root directory of the runs' files in every pod: an absolute path, or the URL of a bucket such as "
            "`gs://bucket/prefix`, `s3://bucket/prefix` or `az://container/prefix`.",
            _storage,
        ),
    ] = ""
    sinks: Annotated[
        tuple[str, ...],
        Setting(
            "MLDIAG_SINKS",
            "Sinks of the SDK in every pod: sink URLs separated by commas. Empty: the SDK's default.",
            _sinks,
        ),
    ] = ()
    view_url: Annotated[str, Setting("MLDIAG_VIEW_URL", "URL of the web view, injected into every pod.", _url)] = ""
    control_plane_url: Annotated[
        str,
        Setting(
            "MLDIAG_CONTROL_PLANE_URL",
            "URL of the control plane, injected into every pod together with a token for it. Empty: the one that "
            "the operator publishes, or neither.",
            _url,
        ),
    ] = ""
    control_plane_ca: Annotated[
        str,
        Setting(
            "MLDIAG_CONTROL_PLANE_CA",
            "CA certificates (PEM) for connections to the control plane of the URL. Empty: those of the container.",
            _certificates,
        ),
    ] = ""
    profiler_port: Annotated[
        int, Setting("MLDIAG_PROFILER_PORT", "Profiler port of pods that do not set their own.", settings.port)
    ] = DEFAULT_PORT
    port: Annotated[int, Setting("MLDIAG_PORT", "Port for reviews (HTTPS); 0: any free port.", settings.port)] = 8443
    http_port: Annotated[
        int,
        Setting("MLDIAG_HTTP_PORT", "Port for `/healthz`, `/readyz` and `/metrics`; 0: any free port.", settings.port),
    ] = 8081
    service_name: Annotated[
        str,
        Setting(
            "MLDIAG_SERVICE_NAME",
            "Name of the Service that the API server calls; self-managed certificates are for "
            "`<name>.<POD_NAMESPACE>.svc`.",
            settings.dns_name,
        ),
    ] = "mldiagnostics-injection-webhook"
    configuration_name: Annotated[
        str,
        Setting(
            "MLDIAG_CONFIGURATION_NAME",
            "Name of the MutatingWebhookConfiguration whose `caBundle` gets the CA of self-managed certificates.",
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
            "Folder with `tls.crt` and `tls.key`, mounted from a Secret. Empty: certificates are self-managed.",
            settings.absolute_path,
        ),
    ] = None
    log_level: LogLevel = "INFO"

    def injected(self, cluster: str) -> InjectionSettings:
        """Return the settings of injection for a cluster."""
        return InjectionSettings(
            cluster=cluster,
            storage=self.storage,
            sinks=self.sinks,
            view_url=self.view_url,
            control_plane_url=self.control_plane_url,
            control_plane_ca=self.control_plane_ca,
            profiler_port=self.profiler_port,
        )


_READER: Final = SettingsReader(
    WebhookConfig,
    title="Environment of the webhook",
    module="mldiagnostics_webhook.config",
    invalid="Invalid environment of the webhook",
)
load, reference = _READER.load, _READER.reference

if __name__ == "__main__":
    sys.stdout.write(reference())
