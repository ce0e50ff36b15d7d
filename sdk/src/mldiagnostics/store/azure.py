"""The client of `az://` and `abfss://` URLs, set by the variables `AZURE_…`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from obstore.store import AzureStore

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.store.object_client import client_options, retry_config
from mldiagnostics.store.object_store import BucketStore

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mldiagnostics.bucket_urls import BucketUrl

_PUBLIC = "dfs.core.windows.net"


def open_azure(url: BucketUrl, *, timeout_s: float) -> BucketStore:
    """Return the store at an `az://` or `abfss://` URL."""
    config = azure_config(url, os.environ)

    def connect() -> AzureStore:
        endpoint = config.get("endpoint", "")
        return AzureStore(
            url.container,
            config=config,
            client_options=client_options(endpoint, timeout_s, certificates=os.environ.get("SSL_CERT_FILE", "")),
            retry_config=retry_config(timeout_s),
        )

    return BucketStore(url, connect, timeout_s=timeout_s)


def azure_config(url: BucketUrl, env: Mapping[str, str]) -> Any:
    """Return the settings that the URL names, before those of the environment.

    Raises:
        ConfigurationError: Neither the URL nor the environment names the account.
    """
    account, _, suffix = url.account_host.partition(".")
    config: dict[str, str] = {}
    if authority := env.get("AZURE_AUTHORITY_HOST"):
        config["authority_host"] = authority.rstrip("/")  # AKS sets it with a slash, to which obstore adds another one
    endpoint = env.get("AZURE_STORAGE_ENDPOINT") or env.get("AZURE_ENDPOINT") or ""
    if endpoint:
        config["endpoint"] = endpoint
    elif suffix not in {"", _PUBLIC}:
        config["endpoint"] = f"https://{account}.{suffix.replace('dfs.', 'blob.', 1)}"
    if account:
        config["account_name"] = account
    elif not any(env.get(name) for name in ("AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_CONNECTION_STRING")):
        raise ConfigurationError(
            f"{str(url)!r}: the storage account is missing; set AZURE_STORAGE_ACCOUNT_NAME, or write "
            f"abfss://{url.container}@account.{_PUBLIC}/prefix"
        )
    return config
