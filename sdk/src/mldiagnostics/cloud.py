"""Look up the Google Cloud project and region of this process.

A look-up may take its whole time limit, so it must not run on a thread of the training. Sources, in this order: the
program, the environment, gcloud's configuration, the metadata server.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import configparser
    from collections.abc import Mapping

LINK_LOCAL = "169.254.169.254"
"""Address of the metadata server, which needs no DNS."""


class CloudEnvironment:
    """Looks up project and region once; the program may give both."""

    def __init__(self, *, project: str | None = None, region: str | None = None, env: Mapping[str, str]) -> None:
        self._given = {"project": project, "region": region}
        self._env = env
        self._cache: dict[str, str | None] = {}
        self._lock = threading.Lock()

    def project(self, timeout_s: float = 5.0) -> str | None:
        """Return the project id, None if unknown."""
        return self._find("project", timeout_s)

    def region(self, timeout_s: float = 5.0) -> str | None:
        """Return the region, such as `us-central1`; None if unknown."""
        return self._find("region", timeout_s)

    def _find(self, what: str, timeout_s: float) -> str | None:
        with self._lock:
            if what not in self._cache:
                self._cache[what] = self._given[what] or self._look_up(what, timeout_s)
            return self._cache[what]

    def _look_up(self, what: str, timeout_s: float) -> str | None:
        if what == "project":
            return (
                self._env.get("GOOGLE_CLOUD_PROJECT")
                or _gcloud(self._env).get("core", "project", fallback=None)
                or metadata("project/project-id", env=self._env, timeout_s=timeout_s)
            )
        zone = metadata("instance/zone", env=self._env, timeout_s=timeout_s)  # projects/<number>/zones/<zone>
        if zone:
            return zone.rpartition("/")[2].rpartition("-")[0] or None
        return _gcloud(self._env).get("compute", "region", fallback=None)


def metadata(path: str, *, env: Mapping[str, str], timeout_s: float) -> str | None:
    """Return a value of the metadata server, None without a response in `timeout_s`."""
    values: SimpleQueue[str | None] = SimpleQueue()
    host = env.get("GCE_METADATA_HOST") or LINK_LOCAL
    arguments = (values, host, f"/computeMetadata/v1/{path}", timeout_s)
    threading.Thread(target=_request, args=arguments, name="mldiagnostics-metadata", daemon=True).start()
    try:
        return values.get(timeout=timeout_s)
    except Empty:
        return None


def _request(values: SimpleQueue[str | None], host: str, path: str, timeout_s: float) -> None:
    import http.client  # noqa: PLC0415 - loaded at the first look-up

    try:
        with contextlib.closing(http.client.HTTPConnection(host, timeout=timeout_s)) as connection:
            connection.request("GET", path, headers={"Metadata-Flavor": "Google"})
            response = connection.getresponse()
            genuine = response.status == 200 and response.getheader("Metadata-Flavor") == "Google"
            values.put(response.read(4096).decode() if genuine else None)
    except (OSError, http.client.HTTPException, ValueError):
        values.put(None)


def _gcloud(env: Mapping[str, str]) -> configparser.ConfigParser:
    """Return the active configuration of gcloud, empty if there is none."""
    import configparser  # noqa: PLC0415 - loaded at the first look-up

    configuration = configparser.ConfigParser(interpolation=None)
    folder = Path(env.get("CLOUDSDK_CONFIG") or Path(env.get("HOME") or os.path.expanduser("~")) / ".config/gcloud")  # noqa: PTH111
    try:
        active = env.get("CLOUDSDK_ACTIVE_CONFIG_NAME") or (folder / "active_config").read_text().strip()
        configuration.read_string((folder / "configurations" / f"config_{active}").read_text())
    except (OSError, ValueError, configparser.Error):
        pass
    return configuration
