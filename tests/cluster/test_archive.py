"""Images written without a daemon satisfy the checks of loaders."""

import hashlib
import io
import json
import tarfile
from pathlib import Path

from cluster.archive import binary_image


def test_digests_match_their_content(tmp_path: Path) -> None:
    binary = tmp_path / "server"
    binary.write_bytes(b"\x7fELF")
    binary.chmod(0o755)
    archive = binary_image(tmp_path / "image.tar", "localhost/server:1", binary)
    with tarfile.open(archive) as tar:
        content = {member.name: tar.extractfile(member).read() for member in tar.getmembers()}  # type: ignore[union-attr]
    [image] = json.loads(content["manifest.json"])
    config = json.loads(content[image["Config"]])
    [layer] = image["Layers"]
    assert image["RepoTags"] == ["localhost/server:1"]
    assert image["Config"] == hashlib.sha256(content[image["Config"]]).hexdigest() + ".json"
    assert config["rootfs"]["diff_ids"] == ["sha256:" + hashlib.sha256(content[layer]).hexdigest()]
    assert config["config"]["User"] == "65532:65532"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["image.tar", "server"]
    with tarfile.open(fileobj=io.BytesIO(content[layer])) as files:
        [member] = files.getmembers()
    assert [f"/{member.name}"] == config["config"]["Entrypoint"]
    assert (member.mode, member.uid) == (0o755, 0)


def test_the_same_binary_makes_the_same_image(tmp_path: Path) -> None:
    binary = tmp_path / "server"
    binary.write_bytes(b"\x7fELF")
    first = binary_image(tmp_path / "one.tar", "localhost/server:1", binary).read_bytes()
    binary.touch()
    assert binary_image(tmp_path / "two.tar", "localhost/server:1", binary).read_bytes() == first
