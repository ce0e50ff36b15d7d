"""The notes of a release are its section of the changelog."""

import pytest
from cluster.progress import ClusterError
from release.notes import section

CHANGELOG = """# Changelog

## 1.2.0 (2026-11-30)

### Added

* New things (not only old ones).

## 1.2.0-rc.1 (2026-11-20)

* A try.

## 1.1.0 (not released yet)

* Old things.
"""


def test_a_section_ends_at_the_next_version() -> None:
    assert section(CHANGELOG, "1.2.0") == "### Added\n\n* New things (not only old ones).\n"
    assert section(CHANGELOG, "1.2.0-rc.1") == "* A try.\n"


@pytest.mark.parametrize(
    ("version", "reason"),
    [("1.1.0", "not released yet; set the date"), ("1.2", "no such section"), ("1.0.0", "make release")],
)
def test_a_version_without_a_dated_section_is_rejected(version: str, reason: str) -> None:
    with pytest.raises(ClusterError, match=reason):
        section(CHANGELOG, version)
