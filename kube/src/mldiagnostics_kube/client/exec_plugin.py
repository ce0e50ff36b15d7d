"""Credentials from the plugin that a kubeconfig names.

The protocol is `client.authentication.k8s.io`, in all its versions.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Self

from mldiagnostics_kube.client.apiserver import ClusterError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Json = dict[str, Any]

TIMEOUT_S: Final = 60.0
"""How long a plugin may take: some open a browser and wait for its login."""
_EARLY: Final = timedelta(seconds=10)
"""A token is renewed so long before it expires, so that no request carries an expired one."""


@dataclass(frozen=True, slots=True)
class PluginCredential:
    """Result of a plugin."""

    token: str
    certificate_pem: bytes | None
    key_pem: bytes | None
    expires: datetime | None

    @classmethod
    def parse(cls, text: bytes) -> Self:
        """Parse the output of a plugin.

        Raises:
            ValueError: It is not an ExecCredential with a status.
        """
        document = json.loads(text)
        status = document.get("status") if isinstance(document, dict) else None
        if not isinstance(status, dict):
            raise ValueError("its output has no status")  # noqa: TRY004 - of the plugin, not of the program
        certificate, key = status.get("clientCertificateData"), status.get("clientKeyData")
        expires = status.get("expirationTimestamp")
        return cls(
            token=str(status.get("token") or ""),
            certificate_pem=certificate.encode() if certificate else None,
            key_pem=key.encode() if key else None,
            expires=datetime.fromisoformat(expires) if expires else None,
        )


class ExecPlugin:
    """Runs a plugin, and again when its token is about to expire.

    Args:
        entry: Field `exec` of a user of a kubeconfig.
        folder: Folder of the kubeconfig; a relative path of a program starts there.
        cluster: Cluster of the context, which plugins with `provideClusterInfo` receive.
    """

    def __init__(self, entry: Json, folder: Path, cluster: Json) -> None:
        command = str(entry["command"])
        self._command = str(folder / command) if "/" in command else command
        self._entry, self._cluster = entry, cluster
        self._lock = asyncio.Lock()
        self._credential: PluginCredential | None = None

    async def token(self) -> str:
        """Return a token that is valid now. Raises `ClusterError` if the plugin fails."""
        return (await self.credential()).token

    async def credential(self) -> PluginCredential:
        """Return a credential that is valid now.

        Raises:
            ClusterError: The plugin is missing, fails, or returns no credential; the message has its hint.
        """
        async with self._lock:
            held = self._credential
            if held is None or (held.expires is not None and datetime.now(UTC) > held.expires - _EARLY):
                self._credential = held = await self._run()
            return held

    async def _run(self) -> PluginCredential:
        arguments = [str(each) for each in self._entry.get("args") or ()]
        try:
            process = await asyncio.create_subprocess_exec(
                self._command,
                *arguments,
                stdin=None if self._is_interactive() else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                env=self._environment(os.environ),
            )
        except OSError as fault:
            raise self._failure(f"cannot be started: {fault.strerror}") from fault
        try:
            async with asyncio.timeout(TIMEOUT_S):
                output, _ = await process.communicate()
        except TimeoutError:
            raise self._failure(f"did not end in {TIMEOUT_S:g} s") from None
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode:
            raise self._failure(f"exited with {process.returncode}")
        try:
            return PluginCredential.parse(output)
        except (ValueError, AttributeError) as fault:
            raise self._failure(f"returned no credential: {fault}") from fault

    def _environment(self, environ: Mapping[str, str]) -> dict[str, str]:
        spec: Json = {"interactive": self._is_interactive()}
        if self._entry.get("provideClusterInfo"):
            spec["cluster"] = self._cluster
        version = self._entry.get("apiVersion", "client.authentication.k8s.io/v1")
        info = {"apiVersion": version, "kind": "ExecCredential", "spec": spec}
        own = {str(each["name"]): str(each["value"]) for each in self._entry.get("env") or ()}
        return {**environ, **own, "KUBERNETES_EXEC_INFO": json.dumps(info)}

    def _is_interactive(self) -> bool:
        may = self._entry.get("interactiveMode", "IfAvailable") != "Never"
        return may and sys.stdin is not None and sys.stdin.isatty()

    def _failure(self, problem: str) -> ClusterError:
        hint = " ".join(str(self._entry.get("installHint") or "log in again, or install it").split())
        return ClusterError(f"credential plugin '{self._command}': {problem}; {hint}", status=401, detail=problem)
