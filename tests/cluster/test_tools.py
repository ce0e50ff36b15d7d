"""The table of tools and the pinned modules have the same versions."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cluster.durations import Expected
from cluster.paths import E2E
from cluster.progress import ClusterError
from cluster.sources import GoBuild
from cluster.tools import TOOLS, ProgramOf, Tool, tool
from cluster.versions import BUILT

# Main packages of `e2e/tools/cluster`, and the module whose version each has.
OWN_PACKAGES = {"./coredns": "github.com/coredns/coredns", "./kubernetes": "k8s.io/kubernetes"}
WHOLE = [source.whole for tool in TOOLS.values() for source in tool.sources if isinstance(source, ProgramOf)]
BUILDS = [
    pytest.param(tool, source, id=tool.name)
    for tool in [*TOOLS.values(), *dict.fromkeys(WHOLE)]
    for source in tool.sources
    if isinstance(source, GoBuild) and source.package != "."
]


def _module(folder: str) -> dict[str, list[dict[str, str]]]:
    go = shutil.which("go")
    if go is None:
        pytest.skip("needs go on the PATH to read go.mod")
    command = [go, "mod", "edit", "-json"]
    done = subprocess.run(command, cwd=E2E / "tools" / folder, capture_output=True, text=True, check=True)
    module: dict[str, list[dict[str, str]]] = json.loads(done.stdout)
    return module


@pytest.mark.parametrize(("tool", "source"), BUILDS)
def test_a_build_uses_the_version_of_the_table(tool: Tool, source: GoBuild) -> None:
    module = _module(source.folder)
    package = OWN_PACKAGES.get(source.package, source.package)
    assert source.package in OWN_PACKAGES or package in {each["Path"] for each in module["Tool"]}
    pinned = {each["Path"]: each["Version"] for each in module["Require"]}
    owner = max((path for path in pinned if f"{package}/".startswith(f"{path}/")), key=len)
    assert pinned[owner] == f"v{tool.version}"
    assert (E2E / "tools" / source.folder / "go.sum").exists()


def test_kubernetes_and_its_libraries_have_one_version() -> None:
    replaced = {each["Old"]["Path"]: each["New"]["Version"] for each in _module("cluster")["Replace"]}  # type: ignore[index]
    libraries = {path: version for path, version in replaced.items() if re.fullmatch(r"v0\.[1-9]\d\.\d+", version)}
    ours = {version for path, version in libraries.items() if path.startswith("k8s.io/")}
    assert ours == {f"v0.{BUILT.removeprefix('1.')}"}


def test_programs_of_one_binary_are_links_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_CACHE", str(tmp_path))
    whole = Tool("whole", "1", (GoBuild("cluster", "./kubernetes", 300),))
    program = ProgramOf(whole)
    assert program.expected("kubelet 1") == Expected("Building whole 1", 300)
    whole.path.parent.mkdir(parents=True)
    whole.path.write_text("all programs")
    (tmp_path / "kubelet").write_text("of an interrupted run")
    for name in ("kube-proxy", "kubelet"):
        program.obtain(f"{name} 1", tmp_path / name)
        assert (tmp_path / name).samefile(whole.path)
    assert program.expected("kubelet 1") == Expected("Linking kubelet 1", 1)


def test_an_unknown_tool_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(ClusterError, match=r"'kubectx': unknown; use one of .*kubectl"):
        tool("kubectx")


def test_a_cached_tool_is_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLDIAG_CACHE", str(tmp_path))
    path = TOOLS["helm"].path
    path.parent.mkdir(parents=True)
    path.write_text("as it is")
    assert tool("helm") == path
    assert path.read_text() == "as it is"
