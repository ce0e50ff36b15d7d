"""A mounted folder that is replaced as the kubelet does it: by switching one symbolic link."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from mldiagnostics_kube.certificates import pem
from mldiagnostics_kube.certificates.authority import KeyPair, Lifetimes, issue, new_authority
from mldiagnostics_kube.certificates.mounted import Mounted
from mldiagnostics_kube.certificates.serving import ServingCertificate
from support.servers.handshakes import shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    import pytest

NAME = "webhook.ml.svc"
NOW = datetime.now(UTC)
CA = new_authority("webhook", NOW, Lifetimes())
FIRST, SECOND = (issue(CA, [NAME], NOW, Lifetimes()) for _ in range(2))


class Volume:
    """A folder whose files are links through `..data` into one folder per version of the Secret."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._versions = 0

    def turn(self, chain: bytes, key: bytes) -> None:
        """Mount another version."""
        self._versions += 1
        version = self.folder / f"..{self._versions}"
        version.mkdir()
        (version / "tls.crt").write_bytes(chain)
        (version / "tls.key").write_bytes(key)
        new = self.folder / "..data_tmp"
        new.symlink_to(version.name)
        new.rename(self.folder / "..data")
        for name in ("tls.crt", "tls.key"):
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")


def texts(pair: KeyPair) -> tuple[bytes, bytes]:
    return pem.of_certificates([pair.certificate]), pem.of_key(pair.key)


@asynccontextmanager
async def serving_from(folder: Path) -> AsyncIterator[ServingCertificate]:
    serving = ServingCertificate(lambda: NOW)
    task = asyncio.create_task(Mounted(folder, serving, poll_s=0.01).run())
    try:
        yield serving
    finally:
        task.cancel()
        await asyncio.wait([task])
    assert task.cancelled()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():  # noqa: ASYNC110 - polls files and logs
            await asyncio.sleep(0.01)


async def test_a_mounted_certificate_is_awaited_and_reloaded_and_ignores_bad_ones(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    volume = Volume(tmp_path)
    async with serving_from(tmp_path) as serving:
        await until(lambda: "cannot be read" in caplog.text)
        assert not serving.ready
        volume.turn(*texts(FIRST))
        await until(lambda: serving.ready)
        assert shown(serving.context, NAME, [CA]) == FIRST.certificate

        volume.turn(texts(SECOND)[0], texts(FIRST)[1])
        await until(lambda: "certificate rejected" in caplog.text)
        assert shown(serving.context, NAME, [CA]) == FIRST.certificate

        volume.turn(*texts(SECOND))
        await until(lambda: shown(serving.context, NAME, [CA]) == SECOND.certificate)
    assert len([record for record in caplog.records if record.levelno >= logging.WARNING]) == 2
