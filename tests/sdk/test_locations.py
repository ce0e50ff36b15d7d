"""Local paths in every spelling."""

from __future__ import annotations

from pathlib import Path

import pytest
from mldiagnostics.locations import absolute_location, local_path, path_of


@pytest.mark.parametrize(
    ("location", "path"),
    [
        ("/runs", "/runs"),
        ("runs/a", "runs/a"),
        ("", ""),
        ("file:///runs/a%20b", "/runs/a b"),
        ("file:////runs", "//runs"),
        ("file://host/runs", None),
        ("gs://bucket/runs", None),
        ("s3://bucket", None),
    ],
)
def test_paths_and_file_urls_have_a_path(location: str, path: str | None) -> None:
    assert path_of(location) == path
    assert local_path(location) == (None if path is None else Path(path).absolute())


def test_a_relative_path_becomes_absolute_and_a_url_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert absolute_location("runs") == str(tmp_path / "runs")
    assert absolute_location("~/runs") == "/home/me/runs"
    assert absolute_location("gs://bucket//runs") == "gs://bucket//runs"
