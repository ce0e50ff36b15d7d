"""Configuration files of the bare cluster's node: runtime, pod network, kubelet, proxy and DNS."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cluster.controlplane import POD_NETWORK

BRIDGE = "mldiag0"
# Address of the bridge, used as gateway of the pods and as address of the node: no port is open outside the machine.
NODE_ADDRESS = "10.244.0.1"
CLUSTER_DOMAIN = "cluster.local"
PAUSE_IMAGE = "localhost/mldiagnostics-pause:1"


@dataclass(frozen=True, slots=True)
class Node:
    """Folders of the node; `run` is short because socket paths have at most 107 bytes."""

    name: str
    data: Path
    run: Path

    @property
    def containerd_socket(self) -> Path:
        return self.run / "containerd.sock"

    @property
    def cni_folder(self) -> Path:
        return self.data / "cni"

    @property
    def kubelet_folder(self) -> Path:
        return self.data / "kubelet"


def containerd_config(node: Node, cni_binaries: Path) -> str:
    """Return the configuration of containerd 1.6 and 1.7 (TOML, version 2)."""
    return f"""\
version = 2
root = {_quoted(node.data / "containerd")}
state = {_quoted(node.run / "containerd")}

[grpc]
  address = {_quoted(node.containerd_socket)}

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = {_quoted(PAUSE_IMAGE)}
  # The kubelet lowers OOM scores, which the runtime may not do without CAP_SYS_RESOURCE.
  restrict_oom_score_adj = true
  # Below the cluster's folder, so that its removal finds them.
  netns_mounts_under_state_dir = true

[plugins."io.containerd.grpc.v1.cri".containerd]
  snapshotter = "overlayfs"

[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dir = {_quoted(cni_binaries)}
  conf_dir = {_quoted(node.cni_folder)}

[plugins."io.containerd.internal.v1.opt"]
  path = {_quoted(node.data / "opt")}
"""


def cni_config(node: Node) -> str:
    """Return the CNI configuration: one bridge, and `firewall` for hosts where Docker drops forwards."""
    bridge = {
        "type": "bridge",
        "bridge": BRIDGE,
        "isGateway": True,
        "ipMasq": True,
        "hairpinMode": True,
        "ipam": {
            "type": "host-local",
            "dataDir": str(node.data / "addresses"),
            "ranges": [[{"subnet": POD_NETWORK}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    portmap = {"type": "portmap", "capabilities": {"portMappings": True}}
    plugins = [bridge, portmap, {"type": "firewall"}]
    return json.dumps({"cniVersion": "0.4.0", "name": "mldiagnostics", "plugins": plugins}, indent=2)


def kubelet_config(node: Node, client_ca: Path, resolv_conf: Path) -> str:
    """Return the KubeletConfiguration of a small single-node machine."""
    return _yaml(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": NODE_ADDRESS,
            "healthzBindAddress": "127.0.0.1",
            "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
            "cgroupDriver": "cgroupfs",
            "failSwapOn": False,
            "failCgroupV1": False,
            "featureGates": {"KubeletInUserNamespace": True},  # tolerates the limits of a container as host
            "authentication": {"x509": {"clientCAFile": str(client_ca)}, "webhook": {"enabled": True}},
            "authorization": {"mode": "Webhook"},
            "podLogsDir": str(node.data / "pod-logs"),
            "volumePluginDir": str(node.data / "volume-plugins"),
            "clusterDNS": [NODE_ADDRESS],
            "clusterDomain": CLUSTER_DOMAIN,
            "resolvConf": str(resolv_conf),
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            # Images come from archives: the kubelet could not pull a deleted one again.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
        }
    )


def kubelet_command(node: Node, binary: Path, config: Path, kubeconfig: Path) -> list[str]:
    """Return the command of the kubelet."""
    return [
        str(binary),
        f"--config={config}",
        f"--kubeconfig={kubeconfig}",
        f"--hostname-override={node.name}",
        f"--node-ip={NODE_ADDRESS}",
        f"--root-dir={node.kubelet_folder}",
        f"--cert-dir={node.kubelet_folder / 'pki'}",
    ]


def proxy_config(node: Node, kubeconfig: Path) -> str:
    """Return a KubeProxyConfiguration that does not change the limits of connection tracking."""
    return _yaml(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "iptables",
            "bindAddress": NODE_ADDRESS,
            "healthzBindAddress": "127.0.0.1:10256",
            "metricsBindAddress": "127.0.0.1:10249",
            "hostnameOverride": node.name,
            "clusterCIDR": POD_NETWORK,
            "clientConnection": {"kubeconfig": str(kubeconfig)},
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }
    )


def corefile(kubeconfig: Path, resolv_conf: Path, *, ready_port: int) -> str:
    """Return the configuration of CoreDNS: cluster names from the API server, others from the host."""
    return f"""\
.:53 {{
    bind {NODE_ADDRESS}
    errors
    ready 127.0.0.1:{ready_port}
    kubernetes {CLUSTER_DOMAIN} in-addr.arpa {{
        kubeconfig {kubeconfig}
        ttl 5
    }}
    forward . {resolv_conf}
    cache 5
}}
"""


def _quoted(path: Path | str) -> str:
    return json.dumps(str(path))


def _yaml(content: dict[str, Any]) -> str:
    return yaml.safe_dump(content, sort_keys=False)
