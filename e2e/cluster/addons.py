"""Controllers of other projects for the end-to-end tests: CRDs, images and manifests."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from cluster import images
from cluster.admission import until_reached
from cluster.archive import binary_image
from cluster.command import run
from cluster.durations import Expected
from cluster.modules import module_folder
from cluster.progress import ClusterError, echo, step
from cluster.provider import Provider
from cluster.tools import TOOLS, tool

# A controller looks for its new certificate with a growing pause: 15 s usually, 140 s once on a busy machine.
AVAILABLE_DEADLINE_S = 300


@dataclass(frozen=True, slots=True)
class Addon:
    """Controller whose Go module contains its manifests: kustomize's `config/default`, or a Helm chart.

    `binaries` are the tools that its containers run: a single one, or one per container, with the container's name.
    `repository` is that of its released images, up to the container's name if there are several.
    """

    name: str
    module: str
    crds: str
    namespace: str
    binaries: tuple[str, ...]
    repository: str
    chart: str = ""
    pinned: str = ""
    """Folder in `e2e/tools` of the module that pins it; empty is that of its name."""

    def image(self, binary: str) -> str:
        """Return the name of the compiled image of a binary."""
        return f"localhost/mldiagnostics-{binary}:{TOOLS[binary].version}"

    def released(self, binary: str) -> str:
        """Return the project's own image of a binary."""
        part = binary.removeprefix(self.name) if len(self.binaries) > 1 else ""
        return f"{self.repository}{part}:v{TOOLS[binary].version}"

    def binary_of(self, container: str) -> str:
        """Return the binary that a container runs."""
        return container if container in self.binaries else self.binaries[0]


ADDONS = {
    addon.name: addon
    for addon in (
        Addon(
            "jobset",
            "sigs.k8s.io/jobset",
            "config/components/crd/bases",
            "jobset-system",
            ("jobset",),
            "registry.k8s.io/jobset/jobset",
            pinned="cluster",
        ),
        Addon("lws", "sigs.k8s.io/lws", "config/crd/bases", "lws-system", ("lws",), "registry.k8s.io/lws/lws"),
        Addon(
            "kuberay",
            "github.com/ray-project/kuberay/ray-operator",
            "config/crd/bases",
            "ray-system",
            ("kuberay",),
            "quay.io/kuberay/operator",
        ),
        Addon(
            "cert-manager",
            "github.com/cert-manager/cert-manager",
            "deploy/crds",
            "cert-manager",
            ("cert-manager-controller", "cert-manager-cainjector", "cert-manager-webhook"),
            "quay.io/jetstack/cert-manager",
            chart="deploy/charts/cert-manager",
        ),
    )
}


def crd_paths(name: str) -> list[Path]:
    """Return the CRD files in the module of an addon, for API servers without its controller.

    Those of an addon with a chart contain templates.

    Raises:
        ClusterError: no such addon, or its module cannot be downloaded.
    """
    addon = _addon(name)
    return sorted((_module_folder(addon) / addon.crds).glob("*.yaml"))


def install(name: str, provider: Provider) -> None:
    """Install an addon, unless it is available, and wait until it is available.

    Raises:
        ClusterError: a tool is missing, or the controller does not become available.
    """
    with installed(name, provider):
        pass


@contextmanager
def installed(name: str, provider: Provider) -> Iterator[None]:
    """Install an addon, and wait at the end of the block until it is available.

    Its pods start while the block works. Raises what `install` raises.
    """
    addon = _addon(name)
    kubectl = [str(tool("kubectl")), f"--kubeconfig={provider.kubeconfig}"]
    wait = ["wait", "--for=condition=Available", "deployment", "--all", f"--namespace={addon.namespace}"]
    if subprocess.run([*kubectl, *wait, "--timeout=1s"], capture_output=True, check=False).returncode == 0:
        echo(f"{addon.name} is already available")
        yield
        return
    if addon.chart:
        tool("helm")
    loaded = {binary: _loaded(addon, binary, provider) for binary in addon.binaries}
    applying, waiting = installing(addon.name)
    with step(applying.title, about_s=applying.usual_s):
        rendered = _from_chart(addon) if addon.chart else _from_kustomize(addon)
        objects = for_small_cluster(_in_namespace(rendered, addon), addon, loaded)
        run(
            [*kubectl, "apply", "--server-side", "--force-conflicts", "-f", "-"],
            given=yaml.dump_all(objects, Dumper=yaml.CSafeDumper),
        )
    yield
    with step(waiting.title, about_s=waiting.usual_s):
        run([*kubectl, *wait, f"--timeout={AVAILABLE_DEADLINE_S}s"])
        until_reached(kubectl, objects)


def installing(name: str) -> tuple[Expected, Expected]:
    """Return the two steps of an installation: applying its objects, and waiting for its pods."""
    return Expected(f"Installing {name}", 5), Expected(f"Waiting until {name} is available", 15)


def tools_of(name: str, provider: Provider) -> tuple[str, ...]:
    """Return the tools that the installation of an addon uses, before there is a cluster."""
    addon = _addon(name)
    compiled = [binary for binary in addon.binaries if not provider.may_pull(addon.released(binary))]
    return ("helm" if addon.chart else "kubectl", *compiled)


def for_small_cluster(objects: list[dict[str, Any]], addon: Addon, loaded: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the objects with one replica per controller, small requests and the images of each binary."""
    return [_small(each, addon, loaded) if each["kind"] == "Deployment" else each for each in objects]


def _small(deployment: dict[str, Any], addon: Addon, loaded: Mapping[str, str]) -> dict[str, Any]:
    template = deployment["spec"]["template"]
    containers = [
        {
            **{key: value for key, value in container.items() if key != "command"},  # the image starts the binary
            "image": loaded[addon.binary_of(container["name"])],
            "imagePullPolicy": "IfNotPresent",
            "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}},
        }
        for container in template["spec"]["containers"]
    ]
    small_template = {**template, "spec": {**template["spec"], "containers": containers}}
    return {**deployment, "spec": {**deployment["spec"], "replicas": 1, "template": small_template}}


def _loaded(addon: Addon, binary: str, provider: Provider) -> str:
    """Bring the image of a binary into the cluster and return its name.

    It is the released one if the cluster can pull it, else a compiled one.
    """
    if not TOOLS[binary].path.exists() and provider.pull(addon.released(binary)):
        return addon.released(binary)
    archive = TOOLS[binary].path.with_name(f"{binary}-{TOOLS[binary].version}.tar")
    if not archive.exists():
        binary_image(archive, addon.image(binary), tool(binary))
    images.load(archive, provider)
    return addon.image(binary)


def _from_chart(addon: Addon) -> list[dict[str, Any]]:
    """Render the module's chart, CRDs first.

    The module lacks the release's Chart.yaml, and its CRDs contain template lines.
    """
    module = _module_folder(addon)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) / addon.name
        shutil.copytree(module / addon.chart, folder, copy_function=shutil.copyfile)
        folder.chmod(0o755)
        version = TOOLS[addon.binaries[0]].version
        about = {"apiVersion": "v2", "name": addon.name, "version": version, "appVersion": f"v{version}"}
        (folder / "Chart.yaml").write_text(yaml.safe_dump(about))
        options = [f"--namespace={addon.namespace}", "--set=startupapicheck.enabled=false"]
        rendered = run([str(tool("helm")), "template", addon.name, str(folder), *options])
    return [
        *(_crd(path) for path in crd_paths(addon.name)),
        *(each for each in yaml.load_all(rendered, yaml.CSafeLoader) if each),
    ]


def _crd(path: Path) -> dict[str, Any]:
    lines = (line for line in path.read_text().splitlines() if "{{" not in line)
    definition: dict[str, Any] = yaml.load("\n".join(lines), yaml.CSafeLoader)  # KubeRay's: 1.6 s instead of 6.3 s
    return definition


def _from_kustomize(addon: Addon) -> list[dict[str, Any]]:
    """Render the module's default manifests from a copy: the module cache is read-only."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        shutil.copytree(_module_folder(addon) / "config", folder / "config", copy_function=shutil.copyfile)
        for directory in (folder / "config").rglob("*"):
            if directory.is_dir():
                directory.chmod(0o755)
        overlay = {"resources": ["config/default"], "namespace": addon.namespace}
        (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
        rendered = run([str(tool("kubectl")), "kustomize", str(folder)])
    return [each for each in yaml.load_all(rendered, yaml.CSafeLoader) if each]


def _in_namespace(objects: list[dict[str, Any]], addon: Addon) -> list[dict[str, Any]]:
    if not any(each["kind"] == "Namespace" for each in objects):
        return [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": addon.namespace}}, *objects]
    return objects


def _module_folder(addon: Addon) -> Path:
    return module_folder(addon.module, addon.pinned or addon.name)


def _addon(name: str) -> Addon:
    if name not in ADDONS:
        raise ClusterError(f"addon {name!r}: unknown; use one of {', '.join(ADDONS)}")
    return ADDONS[name]
