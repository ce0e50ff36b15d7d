"""Downloads are accepted only with the published digest."""

import functools
import hashlib
import http.server
import io
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster.progress import ClusterError
from cluster.sources import Download, Unavailable, published_sha256
from hypothesis import given
from hypothesis import strategies as st

CONTENT = b"#!/bin/sh\necho hello\n"
DIGEST = hashlib.sha256(CONTENT).hexdigest()
digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
names = st.from_regex(r"[a-z][a-z0-9_.-]{0,20}", fullmatch=True)


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def release(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    folder = tmp_path / "release"
    folder.mkdir()
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", folder
    server.shutdown()
    thread.join()
    server.server_close()


@given(published=st.dictionaries(names, digests, min_size=1), mark=st.sampled_from(["  ", " *"]), data=st.data())
def test_the_digest_of_the_file_is_found(published: dict[str, str], mark: str, data: st.DataObject) -> None:
    text = "\n".join(f"{digest}{mark}{name}" for name, digest in published.items())
    wanted = data.draw(st.sampled_from(sorted(published)))
    assert published_sha256(text, wanted) == published[wanted]


def test_a_digest_without_a_name_is_accepted() -> None:
    assert published_sha256(f"{DIGEST}\n", "kubectl") == DIGEST


def test_a_digest_of_another_file_is_rejected() -> None:
    with pytest.raises(ClusterError, match="do not contain kubectl"):
        published_sha256(f"{DIGEST}  kubectl.exe\n", "kubectl")


def test_a_verified_download_is_stored(release: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = release
    (folder / "tool").write_bytes(CONTENT)
    (folder / "tool.sha256").write_text(DIGEST)
    Download(f"{url}/tool", f"{url}/tool.sha256").obtain("tool 1", tmp_path / "tool")
    assert (tmp_path / "tool").read_bytes() == CONTENT


def test_a_member_of_a_verified_archive_is_stored(release: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = release
    with tarfile.open(folder / "tool.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("release/tool")
        member.size = len(CONTENT)
        archive.addfile(member, io.BytesIO(CONTENT))
    digest = hashlib.sha256((folder / "tool.tar.gz").read_bytes()).hexdigest()
    (folder / "SUMS").write_text(f"{digest}  tool.tar.gz\n")
    source = Download(f"{url}/tool.tar.gz", f"{url}/SUMS", "release/tool")
    source.obtain("tool 1", tmp_path / "tool")
    assert (tmp_path / "tool").read_bytes() == CONTENT


def test_a_changed_download_is_rejected_and_removed(release: tuple[str, Path], tmp_path: Path) -> None:
    url, folder = release
    (folder / "tool").write_bytes(CONTENT + b"# and more\n")
    (folder / "tool.sha256").write_text(DIGEST)
    with pytest.raises(ClusterError, match="is published"):
        Download(f"{url}/tool", f"{url}/tool.sha256").obtain("tool 1", tmp_path / "tool")
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


@pytest.mark.parametrize("missing", ["tool", "tool.sha256"])
def test_a_missing_release_is_skipped(release: tuple[str, Path], tmp_path: Path, missing: str) -> None:
    url, folder = release
    for name, content in {"tool": CONTENT, "tool.sha256": DIGEST.encode()}.items():
        if name != missing:
            (folder / name).write_bytes(content)
    with pytest.raises(Unavailable, match="404"):
        Download(f"{url}/tool", f"{url}/tool.sha256").obtain("tool 1", tmp_path / "tool")


def test_an_unreachable_host_is_skipped(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="is not reachable"):
        Download("http://127.0.0.1:1/tool", "http://127.0.0.1:1/sum").obtain("tool 1", tmp_path / "tool")
