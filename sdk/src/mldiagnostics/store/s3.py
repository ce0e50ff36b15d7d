"""The client of `s3://` URLs, set by the variables `AWS_…` and the AWS CLI."""

from __future__ import annotations

import configparser
import contextlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from obstore.store import S3Store

from mldiagnostics.errors import NoCredentials
from mldiagnostics.store.object_client import client_options, retry_config
from mldiagnostics.store.object_store import BucketStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.bucket_urls import BucketUrl

_OF_OTHERS = {
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_SKIP_SIGNATURE",
}
"""Variables that choose credentials before a profile does."""

_PROFILE_KEYS = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}


def open_s3(url: BucketUrl, *, timeout_s: float) -> BucketStore:
    """Return the store at an `s3://` URL."""

    def connect() -> S3Store:
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL") or ""
        return S3Store(
            url.bucket,
            config=s3_config(os.environ, endpoint),
            client_options=client_options(endpoint, timeout_s, certificates=os.environ.get("AWS_CA_BUNDLE", "")),
            retry_config=retry_config(timeout_s),
        )

    return BucketStore(url, connect, timeout_s=timeout_s)


def s3_config(env: Mapping[str, str], endpoint: str) -> Any:
    """Return the settings that obstore does not read from the environment itself.

    Raises:
        NoCredentials: `AWS_PROFILE` names no profile with keys, and nothing else gives credentials.
    """
    config: dict[str, str] = {}
    if "AWS_COPY_IF_NOT_EXISTS" not in env:
        config["copy_if_not_exists"] = "multipart"
    if endpoint:
        config["endpoint"] = endpoint
    profile = env.get("AWS_PROFILE") or "default"
    home = Path(env.get("HOME") or os.path.expanduser("~"))  # noqa: PTH111 - the home may be missing
    settings = _section(Path(env.get("AWS_CONFIG_FILE") or home / ".aws/config"), profile, f"profile {profile}")
    if region := env.get("AWS_REGION") or env.get("AWS_DEFAULT_REGION") or settings.get("region"):
        config["region"] = region
    if not _OF_OTHERS & env.keys():
        keys = settings | _section(Path(env.get("AWS_SHARED_CREDENTIALS_FILE") or home / ".aws/credentials"), profile)
        config |= {ours: keys[theirs] for theirs, ours in _PROFILE_KEYS.items() if keys.get(theirs)}
        if env.get("AWS_PROFILE") and "access_key_id" not in config:
            raise NoCredentials(_without_keys(profile, exists=bool(keys)))
    return config


def _without_keys(profile: str, *, exists: bool) -> str:
    if not exists:
        return f"AWS_PROFILE: {profile!r}: no such profile; correct the name or the files in ~/.aws"
    export = f"aws configure export-credentials --profile {profile} --format env"
    return f"AWS_PROFILE: {profile!r}: the profile has no aws_access_key_id; run `{export}` and set its output"


def _section(file: Path, *names: str) -> dict[str, str]:
    """Return the values of the first section of these names in a file, else {}."""
    parser = configparser.ConfigParser(interpolation=None)
    with contextlib.suppress(OSError, ValueError, configparser.Error):
        parser.read_string(file.read_text())
    return next((dict(parser[name]) for name in names if parser.has_section(name)), {})
