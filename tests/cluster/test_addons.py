"""Addons run with small requests and unchanged behaviour."""

import pytest
from cluster.addons import ADDONS, crd_paths, for_small_cluster
from cluster.progress import ClusterError

DEPLOYMENT = {
    "kind": "Deployment",
    "metadata": {"name": "controller"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "controller"}},
        "template": {
            "metadata": {"labels": {"app": "controller"}},
            "spec": {
                "serviceAccountName": "controller",
                "containers": [
                    {
                        "name": "manager",
                        "command": ["/manager"],
                        "args": ["--config=/etc/config.yaml"],
                        "image": "controller:latest",
                        "imagePullPolicy": "Always",
                        "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}},
                    }
                ],
            },
        },
    },
}


def test_controllers_get_small_requests_and_keep_arguments_and_accounts() -> None:
    service = {"kind": "Service", "spec": {"ports": [{"port": 443}]}}
    small, untouched = for_small_cluster([DEPLOYMENT, service], ADDONS["jobset"], {"jobset": "registry.test/jobset:1"})
    assert untouched is service
    assert small["spec"]["replicas"] == 1
    assert small["spec"]["selector"] == {"matchLabels": {"app": "controller"}}
    pod = small["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == "controller"
    [container] = pod["containers"]
    assert container["image"] == "registry.test/jobset:1"
    assert container["args"] == ["--config=/etc/config.yaml"]
    assert "command" not in container
    assert container["resources"] == {"requests": {"cpu": "10m", "memory": "64Mi"}}


def test_each_controller_gets_the_image_of_its_binary() -> None:
    names = ("cert-manager-controller", "cert-manager-cainjector")
    template = {"spec": {"containers": [{"name": name, "image": "any"} for name in names]}}
    addon = ADDONS["cert-manager"]
    loaded = {name: addon.image(name) for name in addon.binaries}
    [small] = for_small_cluster([{"kind": "Deployment", "spec": {"template": template}}], addon, loaded)
    containers = small["spec"]["template"]["spec"]["containers"]
    assert [each["image"] for each in containers] == [f"localhost/mldiagnostics-{name}:1.11.0" for name in names]


@pytest.mark.parametrize(
    ("addon", "binary", "image"),
    [
        ("jobset", "jobset", "registry.k8s.io/jobset/jobset:v0.12.0"),
        ("kuberay", "kuberay", "quay.io/kuberay/operator:v1.6.0"),
        ("cert-manager", "cert-manager-cainjector", "quay.io/jetstack/cert-manager-cainjector:v1.11.0"),
    ],
)
def test_a_cluster_that_can_pull_gets_the_image_of_the_project(addon: str, binary: str, image: str) -> None:
    assert ADDONS[addon].released(binary) == image


def test_an_unknown_addon_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(ClusterError, match="'volcano': unknown; use one of jobset, lws, kuberay, cert-manager"):
        crd_paths("volcano")
