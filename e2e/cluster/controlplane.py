"""Command lines of etcd, API server, controller manager and scheduler."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cluster.certificates import Certificates

SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE_ADDRESS = "10.96.0.1"
API_SERVER_NAMES = ("localhost", "127.0.0.1", API_SERVICE_ADDRESS, "kubernetes", "kubernetes.default.svc")
POD_NETWORK = "10.244.0.0/24"
# Controllers for clouds and for node addresses are off: there is no cloud, and the CNI plugin assigns addresses.
CONTROLLERS = (
    "*",
    "-node-ipam-controller",
    "-cloud-node-lifecycle-controller",
    "-service-lb-controller",
    "-node-route-controller",
)


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Addresses, ports and files of one control plane."""

    folder: Path
    certificates: Certificates
    bind_address: str
    advertise_address: str
    api_port: int
    etcd_port: int
    etcd_peer_port: int

    @property
    def url(self) -> str:
        return f"https://{self.bind_address}:{self.api_port}"

    @property
    def etcd_url(self) -> str:
        return f"http://127.0.0.1:{self.etcd_port}"


AUDIT_POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


def etcd_command(plane: ControlPlane, binary: Path) -> list[str]:
    """Return the command of etcd."""
    peers = f"http://127.0.0.1:{plane.etcd_peer_port}"
    return [
        str(binary),
        "--name=mldiagnostics",
        f"--data-dir={plane.folder / 'etcd'}",
        f"--listen-client-urls={plane.etcd_url}",
        f"--advertise-client-urls={plane.etcd_url}",
        f"--listen-peer-urls={peers}",
        f"--initial-advertise-peer-urls={peers}",
        f"--initial-cluster=mldiagnostics={peers}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver_command(
    plane: ControlPlane,
    binary: Path,
    *,
    with_kubelets: bool,
    disabled_admission: Sequence[str] = (),
    audit_log: Path | None = None,
) -> list[str]:
    """Return the command of the API server; `audit_log` gets request metadata and status codes."""
    files = plane.certificates
    command = [
        str(binary),
        f"--etcd-servers={plane.etcd_url}",
        f"--bind-address={plane.bind_address}",
        f"--advertise-address={plane.advertise_address}",
        f"--secure-port={plane.api_port}",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--service-cluster-ip-range={SERVICE_NETWORK}",
        "--allow-privileged=true",
        f"--tls-cert-file={files.certificate('apiserver')}",
        f"--tls-private-key-file={files.key('apiserver')}",
        f"--client-ca-file={files.ca}",
        f"--requestheader-client-ca-file={files.ca}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={files.certificate('front-proxy')}",
        f"--proxy-client-key-file={files.key('front-proxy')}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={files.service_account_key}",
        f"--service-account-signing-key-file={files.service_account_key}",
    ]
    if with_kubelets:
        command += [
            f"--kubelet-client-certificate={files.certificate('kubelet-client')}",
            f"--kubelet-client-key={files.key('kubelet-client')}",
            # Otherwise logs and exec would resolve the node's name, which DNS does not know.
            "--kubelet-preferred-address-types=InternalIP",
        ]
    if disabled_admission:
        command.append(f"--disable-admission-plugins={','.join(disabled_admission)}")
    if audit_log:
        policy = audit_log.with_suffix(".json")
        policy.write_text(json.dumps(AUDIT_POLICY))
        command += [f"--audit-policy-file={policy}", f"--audit-log-path={audit_log}"]
    return command


def controller_manager_command(
    plane: ControlPlane, binary: Path, kubeconfig: Path, *, port: int, controllers: Sequence[str] = CONTROLLERS
) -> list[str]:
    """Return the command of the controller manager; `port` serves its health on loopback."""
    files = plane.certificates
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        f"--controllers={','.join(controllers)}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        f"--root-ca-file={files.ca}",
        f"--service-account-private-key-file={files.service_account_key}",
        f"--cluster-signing-cert-file={files.ca}",
        f"--cluster-signing-key-file={files.ca_key}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--flex-volume-plugin-dir={plane.folder / 'volume-plugins'}",  # the default is a system folder
    ]


def scheduler_command(binary: Path, kubeconfig: Path, *, port: int) -> list[str]:
    """Return the command of the scheduler; `port` serves its health on loopback."""
    return [
        str(binary),
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
    ]
