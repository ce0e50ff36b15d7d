"""Release notes: the section of a version in the changelog."""

import re

from cluster.progress import ClusterError

NOT_RELEASED = "not released yet"


def section(changelog: str, version: str) -> str:
    """Return the text of a version's section, without its title.

    Raises:
        ClusterError: there is no such section, or it is not dated.
    """
    pattern = rf"^## {re.escape(version)} \((?P<date>[^)]*)\)$(?P<text>.*?)(?=^## |\Z)"
    match = re.search(pattern, changelog, re.MULTILINE | re.DOTALL)
    if match is None:
        raise ClusterError(f"version {version}: CHANGELOG.md has no such section; run make release VERSION={version}")
    if match["date"] == NOT_RELEASED:
        raise ClusterError(f"version {version}: CHANGELOG.md says that it is {NOT_RELEASED}; set the date in its title")
    return match["text"].strip() + "\n"
