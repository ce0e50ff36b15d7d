"""Container images written without a daemon, in the archive format of `docker save`."""

import hashlib
import io
import json
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster.sources import ARCHITECTURE


def binary_image(archive: Path, reference: str, binary: Path, *, user: str = "65532:65532") -> Path:
    """Write an image with one static executable, which runs as an unprivileged user."""
    layer = archive.with_suffix(".layer")
    with tarfile.open(layer, "w") as tar:
        tar.add(binary, arcname=binary.name, filter=_owned_by_root)
    try:
        return layer_image(archive, reference, layer, entrypoint=[f"/{binary.name}"], user=user)
    finally:
        layer.unlink()


def layer_image(archive: Path, reference: str, layer: Path, *, entrypoint: Sequence[str] = (), user: str = "") -> Path:
    """Write an image named `reference` with one layer, an uncompressed tar file."""
    with layer.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    config = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "config": {"Entrypoint": list(entrypoint), "User": user, "Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/sbin"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
        "history": [{"created_by": "mldiagnostics e2e"}],
    }
    config_bytes = _json(config)
    config_name = f"{hashlib.sha256(config_bytes).hexdigest()}.json"
    manifest = _json([{"Config": config_name, "RepoTags": [reference], "Layers": [f"{digest}/layer.tar"]}])
    unfinished = archive.with_suffix(".unfinished")
    with tarfile.open(unfinished, "w") as tar:
        _add(tar, config_name, config_bytes)
        _add(tar, "manifest.json", manifest)
        tar.add(layer, arcname=f"{digest}/layer.tar", filter=_owned_by_root)
    unfinished.replace(archive)
    return archive


def _owned_by_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    member.mtime = 0
    return member


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def _json(content: Any) -> bytes:
    return json.dumps(content, sort_keys=True).encode()
