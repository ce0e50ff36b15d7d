"""Publishing: the pushed artefacts, their order, and signatures of digests; stubs play the programs."""

from __future__ import annotations

import json
import os
import shlex
import sys
from typing import TYPE_CHECKING

import pytest
from cluster.progress import ClusterError
from release import package, publish
from release.parts import PARTS

if TYPE_CHECKING:
    from pathlib import Path

DIGEST = f"sha256:{'ab' * 32}"
STUB = """#!{python}
import json, os, sys
with open({calls!r}, "a") as calls:
    calls.write(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]) + "\\n")
print("Digest: {digest}" if "push" in sys.argv and "helm" in sys.argv[0] else "{digest}")
"""
REGISTRY = "registry.test/ml"
BOTH = ("linux/amd64", "linux/arm64")


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty package, and programs that only note how they are called."""
    monkeypatch.setattr(package, "DIST", tmp_path / "dist")
    monkeypatch.setattr(publish, "DIST", tmp_path / "dist")
    monkeypatch.setattr(publish, "REPOSITORY", tmp_path)
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("docker", "cosign", "helm", "gh"):
        (programs / name).write_text(STUB.format(python=sys.executable, calls=str(tmp_path / "calls"), digest=DIGEST))
        (programs / name).chmod(0o755)
    monkeypatch.setattr(publish, "tool", lambda name: programs / name)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    return tmp_path / "dist"


def fill(platforms: tuple[str, ...]) -> None:
    """Write empty files for everything that `make package` makes."""
    for path in publish._files("1.2.3", platforms):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


def calls(dist: Path) -> list[list[str]]:
    return [json.loads(line) for line in (dist.parent / "calls").read_text().splitlines()]


def test_images_of_all_platforms_get_one_name_and_signatures_of_digests(dist: Path) -> None:
    fill(BOTH)
    publish.publish("1.2.3", f"{REGISTRY}/", BOTH, signed=True, dry_run=False)
    operator = f"{REGISTRY}/{PARTS[0].name}"
    archive = dist / "images" / f"{PARTS[0].name}-1.2.3"
    assert calls(dist)[:11] == [
        ["docker", "load", f"--input={archive}-amd64.tar"],
        ["docker", "push", f"{operator}:1.2.3-amd64"],
        ["docker", "load", f"--input={archive}-arm64.tar"],
        ["docker", "push", f"{operator}:1.2.3-arm64"],
        ["docker", "buildx", "imagetools", "create", f"--tag={operator}:1.2.3", f"{operator}:1.2.3-amd64",
         f"{operator}:1.2.3-arm64"],
        ["docker", "buildx", "imagetools", "inspect", "--format={{.Manifest.Digest}}", f"{operator}:1.2.3"],
        ["helm", "push", str(dist / f"charts/{PARTS[0].name}-1.2.3.tgz"), f"oci://{REGISTRY}/charts"],
        ["cosign", "sign", "--yes", f"{operator}@{DIGEST}"],
        ["cosign", "sign", "--yes", f"{REGISTRY}/charts/{PARTS[0].name}@{DIGEST}"],
        ["cosign", "attest", "--yes", "--type=spdxjson",
         f"--predicate={dist / f'sbom/{PARTS[0].name}-1.2.3.spdx.json'}", f"{operator}@{DIGEST}"],
        ["docker", "load", f"--input={dist / 'images' / f'{PARTS[1].name}-1.2.3-amd64.tar'}"],
    ]  # fmt: skip


def test_one_platform_is_pushed_under_its_name_without_signatures_if_wanted(dist: Path) -> None:
    fill(())
    publish.publish("1.2.3", REGISTRY, (), signed=False, dry_run=False)
    called = calls(dist)
    assert ["docker", "push", f"{REGISTRY}/{PARTS[1].name}:1.2.3"] in called
    assert not [call for call in called if call[0] == "cosign" or "create" in call]


def test_a_dry_run_prints_the_commands_and_calls_nothing(dist: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(BOTH)
    publish.publish("1.2.3", REGISTRY, BOTH, signed=True, dry_run=True)
    assert not (dist.parent / "calls").exists()
    printed = capsys.readouterr().err
    assert f"  cosign sign --yes {REGISTRY}/{PARTS[0].name}@sha256:DIGEST\n" in printed
    chart = shlex.quote(f"{dist}/charts/{PARTS[1].name}-1.2.3.tgz")
    assert f"  helm push {chart} oci://{REGISTRY}/charts\n" in printed


def test_nothing_is_pushed_if_a_file_is_missing(dist: Path) -> None:
    fill(BOTH)
    package.image_archive(PARTS[1], "1.2.3", "linux/arm64").unlink()
    with pytest.raises(ClusterError, match=r"-arm64\.tar: does not exist; run make package"):
        publish.publish("1.2.3", REGISTRY, BOTH, signed=True, dry_run=False)
    assert not (dist.parent / "calls").exists()


def test_a_release_has_notes_manifests_charts_bills_and_wheels(dist: Path) -> None:
    fill(())
    (dist.parent / "CHANGELOG.md").write_text("## 1.2.3 (2026-11-30)\n\n* News.\n")
    (dist / "wheels").mkdir()
    for name in ("operator.yaml", "webhook.yaml", "wheels/m-1.2.3-py3-none-any.whl", "wheels/m-1.2.2-py3-none-any.whl"):
        (dist / name).touch()
    publish.announce("1.2.3", dry_run=False)
    [[program, *words]] = calls(dist)
    assert (program, words[:3]) == ("gh", ["release", "create", "v1.2.3"])
    assert "--prerelease" not in words
    assert (dist / "notes.md").read_text() == "* News.\n"
    names = {word.rpartition("/")[2] for word in words if word.startswith(str(dist))}
    assert {"operator.yaml", "webhook.yaml", "m-1.2.3-py3-none-any.whl", f"{PARTS[0].name}-1.2.3.tgz"} <= names
    assert f"{PARTS[0].name}-1.2.3.spdx.json" in names
    assert "m-1.2.2-py3-none-any.whl" not in names
