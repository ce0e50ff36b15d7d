"""Settings of the operator, read from its environment at start."""

import ipaddress
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from mldiagnostics_api.captures.policy import Policy
from mldiagnostics_kube.installation.cluster_name import ConfiguredName
from mldiagnostics_kube.installation.policy_file import read_policy
from mldiagnostics_kube.process import settings
from mldiagnostics_kube.process.settings import LogLevel, Setting, SettingsReader

from mldiagnostics_operator.diagnoses.job import JobTemplate, read_template


def _address(raw: str) -> str:
    try:
        return str(ipaddress.ip_address(raw))
    except ValueError:
        raise ValueError("is not an IP address; use the fieldRef status.podIP") from None


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorConfig:
    """The operator's settings; each field names its environment variable."""

    pod_name: Annotated[str, Setting("POD_NAME", "Name of this pod (fieldRef).", settings.dns_name)] = "local"
    pod_namespace: Annotated[
        str, Setting("POD_NAMESPACE", "Namespace of this pod (fieldRef), and of the Lease.", settings.dns_name)
    ] = "default"
    pod_uid: Annotated[str, Setting("POD_UID", "Uid of this pod (fieldRef). Empty outside a cluster.")] = ""
    pod_ip: Annotated[
        str,
        Setting("POD_IP", "IP address of this pod (fieldRef), to which the control plane's Service leads.", _address),
    ] = ""
    cluster_name: ConfiguredName = ""
    policy: Annotated[
        Policy,
        Setting(
            "MLDIAG_POLICY_FILE",
            "JSON file with the administrator's limits and allow-lists. Empty: the built-in limits.",
            read_policy,
        ),
    ] = field(default_factory=Policy)
    volume_root: Annotated[
        Path,
        Setting(
            "MLDIAG_VOLUME_ROOT",
            "Directory where the operator's volume is mounted: `volume:///x` is `x` below it.",
            settings.absolute_path,
        ),
    ] = Path("/var/lib/mldiagnostics")
    watch_namespaces: Annotated[
        tuple[str, ...],
        Setting(
            "MLDIAG_WATCH_NAMESPACES",
            "Comma-separated namespaces whose captures are served. Empty: all.",
            settings.dns_names,
        ),
    ] = ()
    http_port: Annotated[
        int,
        Setting(
            "MLDIAG_HTTP_PORT", "Port of `/healthz`, `/readyz` and `/metrics`; 0 lets the system choose.", settings.port
        ),
    ] = 8081
    log_level: LogLevel = "INFO"
    lease_name: Annotated[
        str, Setting("MLDIAG_LEASE_NAME", "Name of the Lease that elects the leader.", settings.dns_name)
    ] = "mldiagnostics-connection-operator"
    lease_duration_s: Annotated[
        float, Setting("MLDIAG_LEASE_DURATION_SECONDS", "How long a silent leader keeps the Lease.", settings.seconds)
    ] = 15.0
    lease_renew_deadline_s: Annotated[
        float,
        Setting(
            "MLDIAG_LEASE_RENEW_DEADLINE_SECONDS",
            "How long a leader tries to renew the Lease before it stops leading; less than the duration.",
            settings.seconds,
        ),
    ] = 10.0
    lease_retry_s: Annotated[
        float,
        Setting(
            "MLDIAG_LEASE_RETRY_SECONDS",
            "Pause between two reads of the Lease; less than half of the renew deadline.",
            settings.seconds,
        ),
    ] = 2.0
    shutdown_grace_s: Annotated[
        float,
        Setting(
            "MLDIAG_SHUTDOWN_GRACE_SECONDS",
            "How long running captures may go on after SIGTERM; less than `terminationGracePeriodSeconds`.",
            settings.seconds,
        ),
    ] = 200.0
    ignore_managed_addon: Annotated[
        bool,
        Setting(
            "MLDIAG_IGNORE_MANAGED_ADDON",
            "`true`: capture even if GKE's managed add-on owns the same resource.",
            settings.switch,
        ),
    ] = False

    diagnosis_job: Annotated[
        JobTemplate | None,
        Setting(
            "MLDIAG_DIAGNOSIS_JOB_FILE",
            "JSON file with the template of the Jobs that diagnose captures. Empty: no diagnoses.",
            read_template,
        ),
    ] = None
    view_url: Annotated[
        str,
        Setting(
            "MLDIAG_VIEW_URL",
            "URL of the web view; the status of a run gets it with the run id appended. Empty: no links.",
            settings.web_url,
        ),
    ] = ""
    runs_ttl_s: Annotated[
        int | None,
        Setting(
            "MLDIAG_RUNS_TTL_SECONDS",
            "Seconds after which the MLRun of an ended run is deleted, unless its own spec sets them. Empty: never.",
            settings.whole_number,
        ),
    ] = None
    runs_kept: Annotated[
        int,
        Setting(
            "MLDIAG_RUNS_KEPT_PER_NAMESPACE",
            "MLRuns of ended runs that each namespace keeps, the newest ones.",
            settings.whole_number,
        ),
    ] = 1000
    memory_limit: Annotated[
        int | None,
        Setting(
            "MLDIAG_MEMORY_LIMIT",
            "Memory limit of the container in bytes (resourceFieldRef), of which reports take at most a fifth. Empty: "
            "that of the chart's default values.",
            settings.whole_number,
        ),
    ] = None
    control_plane: Annotated[
        bool,
        Setting("MLDIAG_CONTROL_PLANE", "`true`: the leader serves the control-plane API to SDKs.", settings.switch),
    ] = False
    control_plane_port: Annotated[
        int,
        Setting(
            "MLDIAG_CONTROL_PLANE_PORT",
            "Port of the control-plane API (HTTPS), in the pod and of the Service; 0 lets the system choose.",
            settings.port,
        ),
    ] = 8443
    control_plane_service: Annotated[
        str,
        Setting(
            "MLDIAG_CONTROL_PLANE_SERVICE",
            "Name of the Service without selector, in this pod's namespace, that leads to the leader. Certificates are "
            "for `<name>.<POD_NAMESPACE>.svc`. Empty: no EndpointSlice and no publication.",
            settings.dns_name,
        ),
    ] = ""
    control_plane_publish: Annotated[
        bool,
        Setting(
            "MLDIAG_CONTROL_PLANE_PUBLISH",
            "`true`: the leader writes URL and CA certificates of the API into the ConfigMap "
            "`mldiagnostics-control-plane` of the namespace `kube-public`, which the webhook reads.",
            settings.switch,
        ),
    ] = False
    control_plane_secret: Annotated[
        str,
        Setting(
            "MLDIAG_CONTROL_PLANE_SECRET",
            "Name of the Secret, in this pod's namespace, that holds self-managed certificates of the API.",
            settings.dns_name,
        ),
    ] = "mldiagnostics-connection-operator-certificates"  # noqa: S105 - its name, not its content
    control_plane_folder: Annotated[
        Path | None,
        Setting(
            "MLDIAG_CONTROL_PLANE_CERTIFICATE_FOLDER",
            "Folder with `tls.crt`, `tls.key` and, for a private CA, `ca.crt`, mounted from a Secret. Empty: "
            "certificates are self-managed.",
            settings.absolute_path,
        ),
    ] = None
    peer_port: Annotated[
        int | None,
        Setting(
            "MLDIAG_PEER_PORT",
            "Port (plain HTTP) for the SDK `google-cloud-mldiagnostics`; 0 lets the system choose. Empty: off.",
            settings.port,
        ),
    ] = None

    results_port: Annotated[
        int | None,
        Setting(
            "MLDIAG_RESULTS_PORT",
            "Port on which the leader serves files of the volume to API servers, in the pod and of the Service of the "
            "control plane; 0 lets the system choose. Empty: off.",
            settings.port,
        ),
    ] = None

    def holder(self, process: str) -> str:
        """Return this process's name in the Lease and in the status of captures.

        It is `<pod name>/<pod uid>/<process>`.
        """
        return f"{self.pod_name}/{self.pod_uid}/{process}"


def _conflicts(config: OperatorConfig) -> list[str]:
    duration_s, deadline_s, retry_s = config.lease_duration_s, config.lease_renew_deadline_s, config.lease_retry_s
    if duration_s > deadline_s > 2 * retry_s:
        return []
    values = f"{duration_s:g}, {deadline_s:g} and {retry_s:g} s"
    return [f"the Lease needs duration > renew deadline > 2 x retry, but the values are {values}"]


_READER: Final = SettingsReader(
    OperatorConfig,
    title="Environment of the operator",
    module="mldiagnostics_operator.config",
    invalid="The settings of the operator are not valid",
    conflicts=_conflicts,
)
load, reference = _READER.load, _READER.reference

if __name__ == "__main__":
    sys.stdout.write(reference())
