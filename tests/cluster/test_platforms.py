"""Images are built for the platforms that this machine can build for; others have a reason."""

from pathlib import Path

import pytest
from cluster.platforms import OWN, SUPPORTED, obstacle, parse

[OTHER] = set(SUPPORTED) - {OWN}


def test_platforms_are_a_list_without_repetitions() -> None:
    assert parse(" linux/arm64,linux/amd64,linux/arm64, ") == ["linux/arm64", "linux/amd64"]
    assert parse("") == []


def test_an_unknown_platform_is_rejected_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="PLATFORM=linux/s390x: not supported; use linux/amd64 or linux/arm64"):
        parse("linux/amd64,linux/s390x")


def test_another_platform_needs_an_emulator(tmp_path: Path) -> None:
    assert obstacle(OWN, with_docker=False, emulators=tmp_path) is None
    assert "install an emulator" in str(obstacle(OTHER, with_docker=False, emulators=tmp_path))
    for name in ("qemu-aarch64", "qemu-x86_64"):
        (tmp_path / name).touch()
    assert obstacle(OTHER, with_docker=False, emulators=tmp_path) is None
