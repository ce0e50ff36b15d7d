"""Docker machines of several kinds, played by a stub of its command line."""

import json
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cluster import ambient, baseimage, docker, images
from cluster.kind import Kind
from cluster.progress import ClusterError

DOCKERFILE = "ARG BASE=docker.io/library/python:3.12\nFROM ${BASE}\nCOPY app /app\n"
STUB = """#!{python}
import json, os, sys
folder = {folder!r}
arguments = sys.argv[1:]
given = sys.stdin.buffer.read() if arguments[0] == "load" or arguments[-1] == "-" else b""
attestations = os.environ.get("BUILDX_NO_DEFAULT_ATTESTATIONS")
with open(folder + "/calls", "a") as calls:
    calls.write(json.dumps({{"arguments": arguments, "bytes": len(given), "attestations": attestations}}) + "\\n")
if any(word.startswith("/") or "=/" in word for word in arguments):
    sys.exit("a confined client cannot read this file")
for prefix, problem in json.load(open(folder + "/problems")):
    if arguments[:len(prefix)] == prefix:
        sys.exit(problem)
if arguments[0] == "save":
    sys.stdout.write("an archive of " + arguments[1])
"""


@dataclass(frozen=True)
class Engine:
    """A stub of Docker; `problems` are commands that fail with a message."""

    folder: Path

    def fails(self, *problems: tuple[str, str]) -> None:
        (self.folder / "problems").write_text(json.dumps([[command.split(), text] for command, text in problems]))

    def calls(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "calls").read_text().splitlines()]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Engine:
    folder = tmp_path / "engine"
    folder.mkdir()
    (folder / "docker").write_text(STUB.format(python=sys.executable, folder=str(folder)))
    (folder / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("MLDIAG_CACHE", str(tmp_path / "cache"))
    for name in (*images.CA_VARIABLES, *images.PROXY_VARIABLES):
        for each in (name, name.upper(), ambient.PREFIX + name, ambient.PREFIX + name.upper()):
            monkeypatch.delenv(each, raising=False)
    baseimage._pull_failure.cache_clear()
    stub = Engine(folder)
    stub.fails(("image inspect", "No such image"))
    return stub


@pytest.fixture
def user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)


@pytest.fixture
def context(tmp_path: Path) -> Path:
    (tmp_path / "context").mkdir()
    (tmp_path / "context/app").write_text("code")
    (tmp_path / "context/Dockerfile").write_text(DOCKERFILE)
    return tmp_path / "context"


@pytest.mark.parametrize(
    ("stderr", "reason"),
    [
        ("permission denied while trying to connect to the Docker daemon socket", "join the group docker"),
        ("Cannot connect to the Docker daemon", "no Docker engine answers .*start"),
    ],
)
def test_an_engine_that_cannot_be_used_gives_the_reason(engine: Engine, stderr: str, reason: str) -> None:
    engine.fails(("version", stderr))
    assert re.search(reason, docker.obstacle() or "")


@pytest.mark.usefixtures("user")
def test_without_buildx_a_user_learns_it_before_a_cluster_is_made(engine: Engine) -> None:
    engine.fails(("buildx version", "docker: 'buildx' is not a docker command."))
    assert "docker-buildx" in (Kind().obstacle() or "")


def test_without_buildx_root_builds_with_buildah(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    engine.fails(("buildx version", "docker: 'buildx' is not a docker command."))
    assert images.obstacle() is None


@pytest.mark.parametrize(
    "problem", [("load", "no space left on device"), ("run", "privileged containers are not allowed")]
)
def test_an_engine_without_privileged_containers_is_a_reason(
    engine: Engine, tmp_path: Path, problem: tuple[str, str]
) -> None:
    engine.fails(problem)
    (tmp_path / "pause.tar").write_bytes(b"image")
    assert problem[1] in (docker.privileged_obstacle("pause:1", tmp_path / "pause.tar") or "")


def test_an_image_is_built_through_a_confined_client_without_attestations(engine: Engine, context: Path) -> None:
    archive = images.build(context / "Dockerfile", context, "localhost/app:1")
    assert archive.read_text() == "an archive of localhost/app:1"
    [build] = [call for call in engine.calls() if call["arguments"][:2] == ["buildx", "build"]]
    assert build["attestations"] == "1"
    assert build["bytes"] > len("code")
    assert images.build(context / "Dockerfile", context, "localhost/app:1") == archive
    assert sum(call["arguments"][:2] == ["buildx", "build"] for call in engine.calls()) == 1


@pytest.mark.usefixtures("user")
def test_a_base_that_only_the_engine_reaches_is_used(engine: Engine) -> None:
    assert baseimage.base_of(DOCKERFILE, with_docker=True) == ""
    assert ["pull", "--quiet", "docker.io/library/python:3.12"] in [call["arguments"] for call in engine.calls()]


@pytest.mark.usefixtures("user")
def test_a_base_that_nobody_reaches_is_a_clear_error_for_a_user(engine: Engine) -> None:
    engine.fails(("image inspect", "No such image"), ("pull", "toomanyrequests: rate limit"))
    with pytest.raises(
        ClusterError, match=r"python:3.12: the Docker engine cannot pull it \(toomanyrequests.*set BASE"
    ):
        baseimage.base_of(DOCKERFILE, with_docker=True)


@pytest.mark.usefixtures("engine")
def test_the_base_of_the_user_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BASE", "registry.test/python:3")
    assert baseimage.base_of(DOCKERFILE, with_docker=True) == "registry.test/python:3"


@pytest.mark.parametrize("name", ["https_proxy", "HTTPS_PROXY"])
def test_a_proxy_in_either_case_reaches_the_build_in_both(name: str) -> None:
    arguments = images.build_arguments({name: "http://proxy:3128"}, "")
    assert arguments == [
        "--build-arg=https_proxy=http://proxy:3128",
        "--build-arg=HTTPS_PROXY=http://proxy:3128",
    ]
