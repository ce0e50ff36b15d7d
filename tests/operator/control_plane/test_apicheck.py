from __future__ import annotations

from asyncio import to_thread
from typing import TYPE_CHECKING

import pytest
from mldiagnostics_operator.control_plane import apicheck

if TYPE_CHECKING:
    from pathlib import Path

    from support.cluster.control_planes import Running

pytestmark = pytest.mark.apiserver


async def test_the_api_answers_with_a_trusted_certificate(
    plane: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [ca_file] = (tmp_path / "pki").rglob("ca.crt")
    monkeypatch.setattr(apicheck, "DEADLINE_S", 0.0)
    monkeypatch.setenv(apicheck.URL, plane.url)
    monkeypatch.setenv(apicheck.CA_FILE, str(ca_file))
    assert await to_thread(apicheck.main) == 0
    monkeypatch.setenv(apicheck.CA_FILE, str(tmp_path / "absent"))
    assert await to_thread(apicheck.main) == 1
    assert "CERTIFICATE_VERIFY_FAILED" in capsys.readouterr().err
