"""Versions of Kubernetes: the one that is built here, and those that the product is tested with besides."""

import os
import re

from cluster.progress import ClusterError

# Pinned by e2e/tools/cluster/go.mod; change both together.
BUILT = "1.34.4"
# The oldest that the charts accept, and the newest. Only their released programs are used.
TESTED = {"oldest": "1.32.13", "newest": "1.37.2"}
VARIABLE = "MLDIAG_KUBERNETES"


def chosen(text: str) -> str:
    """Return the version that a name of `TESTED` or a number stands for; empty is the built one.

    Raises:
        ClusterError: neither a name nor a version.
    """
    if re.fullmatch(r"1\.\d+\.\d+", text):
        return text
    if text and text not in TESTED:
        raise ClusterError(f"{VARIABLE}={text}: not a version; use {', '.join(TESTED)} or a number such as {BUILT}")
    return TESTED.get(text, BUILT)


KUBERNETES = chosen(os.environ.get(VARIABLE, ""))
