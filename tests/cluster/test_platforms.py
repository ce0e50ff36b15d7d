"""Images are built for the platforms that this machine can build for; others have a reason."""

import os
from pathlib import Path

import pytest
from cluster import docker
from cluster.platforms import OWN, SUPPORTED, obstacle, parse
from release.package import pinned_base

STUB = """#!/bin/sh
case "$*" in
*imagetools*) echo sha256:abc ;;
*"buildx inspect"*) printf 'Name: x\\nPlatforms: linux/amd64*, linux/arm64, linux/386\\n' ;;
*) echo 1 ;;
esac
"""
[OTHER] = set(SUPPORTED) - {OWN}


def test_platforms_are_a_list_without_repetitions() -> None:
    assert parse(" linux/arm64,linux/amd64,linux/arm64, ") == ["linux/arm64", "linux/amd64"]
    assert parse("") == []


def test_an_unknown_platform_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="PLATFORM=linux/s390x: not supported; use linux/amd64 or linux/arm64"):
        parse("linux/amd64,linux/s390x")


def test_another_platform_needs_an_emulator(tmp_path: Path) -> None:
    assert obstacle(OWN, with_docker=False, emulators=tmp_path) is None
    assert "install an emulator" in str(obstacle(OTHER, with_docker=False, emulators=tmp_path))
    for name in ("qemu-aarch64", "qemu-x86_64"):
        (tmp_path / name).touch()
    assert obstacle(OTHER, with_docker=False, emulators=tmp_path) is None


def test_docker_names_its_platforms_and_the_digest_of_a_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docker").write_text(STUB)
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert docker.platforms() == ["linux/amd64", "linux/arm64", "linux/386"]
    assert obstacle(OTHER, with_docker=True) is None
    assert pinned_base("ARG BASE=registry.test/python:3.12\nFROM ${BASE}\n") == "registry.test/python:3.12@sha256:abc"
    (tmp_path / "docker").write_text("#!/bin/sh\nexit 1\n")
    assert pinned_base("ARG BASE=registry.test/python:3.12\n") == ""
    assert "Docker builds for" in str(obstacle(OTHER, with_docker=True))
