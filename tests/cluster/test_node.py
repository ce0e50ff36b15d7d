"""The node's configuration files parse in their formats."""

import ipaddress
import json
import tomllib
from pathlib import Path

import yaml
from cluster.bare import DATA, RUN
from cluster.controlplane import POD_NETWORK
from cluster.node import NODE_ADDRESS, PAUSE_IMAGE, Node, cni_config, containerd_config, kubelet_config
from hypothesis import given
from hypothesis import strategies as st

NODE = Node("node-1", DATA, RUN)
LONGEST_SOCKET_PATH = 107  # unix(7): sun_path holds 108 bytes with the final zero
CRI = "io.containerd.grpc.v1.cri"
folders = st.from_regex(r"/[ -~]{1,30}", fullmatch=True).map(Path)


@given(data=folders, run=folders)
def test_the_containerd_configuration_has_the_given_paths(data: Path, run: Path) -> None:
    node = Node("node-1", data, run)
    read = tomllib.loads(containerd_config(node, Path("/usr/lib/cni")))
    assert read["root"].startswith(str(data))
    assert read["state"].startswith(str(run))
    assert read["grpc"]["address"] == str(node.containerd_socket)
    assert read["plugins"][CRI]["sandbox_image"] == PAUSE_IMAGE
    assert read["plugins"][CRI]["cni"] == {"bin_dir": "/usr/lib/cni", "conf_dir": str(node.cni_folder)}


def test_socket_paths_are_short_enough() -> None:
    assert len(f"{NODE.containerd_socket}.ttrpc") <= LONGEST_SOCKET_PATH


def test_the_node_is_the_gateway_of_its_pods() -> None:
    network = ipaddress.ip_network(POD_NETWORK)
    assert ipaddress.ip_address(NODE_ADDRESS) == next(network.hosts())
    bridge = json.loads(cni_config(NODE))["plugins"][0]
    assert bridge["ipam"]["ranges"] == [[{"subnet": str(network)}]]


def test_all_kubelet_paths_are_below_the_clusters_folders() -> None:
    read = yaml.safe_load(kubelet_config(NODE, DATA / "pki/ca.crt", Path("/etc/resolv.conf")))
    paths = {key: value for key, value in read.items() if isinstance(value, str) and value.startswith("/")}
    outside = {key for key, value in paths.items() if not value.startswith(str(DATA))}
    assert outside == {"resolvConf"}
    assert read["containerRuntimeEndpoint"] == f"unix://{NODE.containerd_socket}"
