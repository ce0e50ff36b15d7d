"""The store of buildah has what the next build can use, survives a damage, and belongs to nobody else."""

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster import buildah
from cluster.command import run as command_run
from cluster.progress import ClusterError
from hypothesis import given
from hypothesis import strategies as st

DOCKERFILE = """\
FROM scratch AS build
COPY lock /lock
COPY code /code
FROM scratch
COPY --from=build /lock /lock
COPY --from=build /code /program
LABEL about=test
"""
names = st.from_regex(r"[a-z]{1,8}", fullmatch=True)


@given(registry=st.sampled_from(["", "localhost/", "registry.test:5000/ml/"]), name=names, version=names)
def test_an_image_takes_the_place_of_its_other_versions(registry: str, name: str, version: str) -> None:
    other = [f"registry.test/{name}:1.0.0", f"registry.test/{name}:1.0.0-stage-build"]
    kept = [
        f"{registry}{name}:{version}",
        f"{registry}{name}:{version}-stage-build",
        f"x/{name}-cli:1",
        "localhost/base:1",
    ]
    kept += [f"registry.test/{name}:1.0.0-arm64", f"registry.test/{name}:1.0.0-arm64-stage-build"]
    assert buildah.superseded([*kept, *other], kept[0]) == other
    assert buildah.superseded([*kept, *other], f"registry.test/{name}:1.0.1-arm64") == kept[-2:]


@given(st.lists(st.tuples(names, st.booleans(), st.sampled_from(["as", "AS"])), min_size=1, unique=True))
def test_named_stages_but_the_last_are_kept(stages: list[tuple[str, bool, str]]) -> None:
    lines = [f"FROM --platform=x ${{BASE}} {word} {name}" if named else "FROM scratch" for name, named, word in stages]
    assert buildah.stages("ARG BASE=debian\n" + "\nRUN echo FROM a\n".join(lines)) == [
        name for name, named, _ in stages[:-1] if named
    ]


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    buildah.install()
    monkeypatch.setenv("MLDIAG_CACHE", str(tmp_path / "cache"))
    yield tmp_path / "cache/buildah"
    buildah._remove()


@pytest.fixture
def context(tmp_path: Path) -> Path:
    (tmp_path / "context").mkdir()
    (tmp_path / "context/Dockerfile").write_text(DOCKERFILE)
    (tmp_path / "context/lock").write_text("dependencies")
    return tmp_path / "context"


def _build(context: Path, code: str) -> bytes:
    """Return the program in the image that a build of this code makes."""
    (context / "code").write_text(code)
    archive = context.parent / f"{code}.tar"
    buildah.build(context, "localhost/app:1", [], archive)
    with tarfile.open(archive) as image:
        [manifest] = json.loads(_member(image, "manifest.json"))
        assert manifest["RepoTags"] == ["localhost/app:1"]
        layer = manifest["Layers"][-1]
        with tarfile.open(fileobj=io.BytesIO(_member(image, layer))) as files:
            return _member(files, "program")


def _member(archive: tarfile.TarFile, name: str) -> bytes:
    content = archive.extractfile(name)
    assert content is not None
    return content.read()


def _listed(*command: str) -> set[str]:
    return {each["id"] for each in json.loads(command_run(buildah._command(*command, "--json"))) or []}


@pytest.mark.root
def test_a_build_leaves_what_the_next_can_use_and_a_damaged_store_is_made_again(
    context: Path, store: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert _build(context, "one") == b"one"
    first = _listed("images", "--all")
    command_run(buildah._command("from", "scratch"))  # as of a killed build
    assert _build(context, "two") == b"two"
    second = _listed("images", "--all")
    assert not _listed("containers")
    assert len(second) == len(first), "nothing of the first build but what both use"
    assert first & second, "the layer of the file that did not change"
    assert "cannot read" not in capfd.readouterr().err
    for manifest in store.glob("overlay-images/*/manifest"):
        manifest.unlink()
    assert _build(context, "three") == b"three"
    assert capfd.readouterr().err.count("cannot read this store of images; it is removed and made again") == 1
    (context / "Dockerfile").write_text("FROM scratch\nCOPY missing /\n")
    with pytest.raises(ClusterError, match="missing"):
        _build(context, "four")
    assert "cannot read" not in capfd.readouterr().err
    assert _listed("images", "--all"), "the store of a build that fails for another reason stays"
