"""Buckets of each scheme, and the variables with which programs reach their servers."""

from __future__ import annotations

import os

BUCKETS = {"gs": "gcs_bucket", "s3": "s3_bucket", "az": "azure_container"}
"""The fixture of each scheme."""

_PREFIXES = ("AWS_", "AZURE_", "STORAGE_EMULATOR_HOST", "DISABLE_GCS_")


def client_variables() -> dict[str, str]:
    """Return the variables of the clients of the clouds in this process, for programs."""
    return {name: value for name, value in os.environ.items() if name.startswith(_PREFIXES)}
