from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mldiagnostics.store import open_store
from support.command_line import CommandLine
from support.emulator import running_emulator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mldiagnostics.store import Store


@pytest.fixture
def mldiag(tmp_path: Path) -> CommandLine:
    """The command line in an empty directory."""
    return CommandLine(tmp_path)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """The storage that the command line reads by default: below its directory."""
    return open_store(str(tmp_path / "mldiagnostics"))


@pytest.fixture
def gcs_bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of an empty bucket of an emulator, which commands use too."""
    with running_emulator() as emulator:
        monkeypatch.setenv("DISABLE_GCS_PYTHON_CLIENT_OTEL_BUCKET_METADATA", "true")
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", emulator.url)
        emulator.make_bucket("bucket")
        yield "bucket"
