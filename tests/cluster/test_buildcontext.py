"""An image is rebuilt if and only if its inputs change."""

from collections.abc import Callable
from pathlib import Path

import pytest
from cluster import buildcontext
from cluster.progress import ClusterError

DOCKERFILE = """\
ARG BASE=docker.io/library/python:3.12
FROM ${BASE} AS build
# COPY secrets /nowhere
COPY --chown=1:1 app /src/app
COPY lock.txt \\
     app/extra.txt /src/
FROM ${BASE}
COPY --from=build /opt /opt
"""


@pytest.fixture
def context(tmp_path: Path) -> Path:
    (tmp_path / "app" / "__pycache__").mkdir(parents=True)
    for name in ("app/main.py", "app/extra.txt", "app/__pycache__/main.pyc", "lock.txt", "secrets"):
        (tmp_path / name).write_text(name)
    return tmp_path


def test_sources_come_from_the_context_only() -> None:
    assert buildcontext.copied(DOCKERFILE) == ["app", "lock.txt", "app/extra.txt"]


def test_the_builder_sees_only_the_copied_files(context: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    staged = tmp_path_factory.mktemp("staged")
    buildcontext.stage(context, DOCKERFILE, staged)
    seen = {str(path.relative_to(staged)) for path in staged.rglob("*") if path.is_file()}
    assert seen == {"Dockerfile", "app/main.py", "app/extra.txt", "lock.txt"}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda context: (context / "app/main.py").write_text("new"), id="content"),
        pytest.param(lambda context: (context / "app/main.py").chmod(0o755), id="mode"),
        pytest.param(lambda context: (context / "app/new.py").write_text(""), id="new file"),
        pytest.param(lambda context: (context / "app/main.py").rename(context / "app/other.py"), id="name"),
    ],
)
def test_the_digest_depends_on_the_copied_files(context: Path, change: Callable[[Path], object]) -> None:
    before = buildcontext.digest(context, DOCKERFILE)
    change(context)
    assert buildcontext.digest(context, DOCKERFILE) != before


def test_the_digest_ignores_other_files(context: Path) -> None:
    before = buildcontext.digest(context, DOCKERFILE)
    (context / "secrets").write_text("changed")
    (context / "app/__pycache__/main.pyc").write_text("changed")
    assert buildcontext.digest(context, DOCKERFILE) == before


def test_the_digest_depends_on_the_dockerfile_and_the_arguments(context: Path) -> None:
    digests = {
        buildcontext.digest(context, DOCKERFILE),
        buildcontext.digest(context, DOCKERFILE, "base"),
        buildcontext.digest(context, f"{DOCKERFILE}USER 1\n"),
    }
    assert len(digests) == 3


def test_a_missing_source_is_named(context: Path) -> None:
    (context / "lock.txt").unlink()
    with pytest.raises(ClusterError, match=r"copies lock\.txt, which does not exist in"):
        buildcontext.files(context, DOCKERFILE)
