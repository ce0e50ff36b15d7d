"""Certificates in a mounted folder, read again every few seconds."""

import asyncio
import logging
from pathlib import Path
from typing import Final

from mldiagnostics_kube.certificates.serving import ServingCertificate

_log: Final = logging.getLogger(__name__)
POLL_S: Final = 5.0
CHAIN: Final = "tls.crt"
KEY: Final = "tls.key"


class Mounted:
    """A loop that serves the certificate of a folder.

    While the files are missing or do not match, the previous certificate stays in service.
    """

    def __init__(self, folder: Path, serving: ServingCertificate, *, poll_s: float = POLL_S) -> None:
        self._folder = folder
        self._serving = serving
        self._poll_s = poll_s
        self._last_problem = ""

    async def run(self) -> None:
        """Reload until cancelled."""
        while True:
            self._reload()
            await asyncio.sleep(self._poll_s)

    def _reload(self) -> None:
        problem = ""
        try:
            if self._serving.load((self._folder / CHAIN).read_bytes(), (self._folder / KEY).read_bytes()):
                _log.info(
                    "Serving the certificate of %(folder)s, valid until %(expires)s",
                    {"folder": self._folder, "expires": self._serving.expires},
                )
        except OSError as missing:
            problem = f"Certificate folder '{self._folder}': cannot be read: {missing}"
        except ValueError as fault:
            problem = f"Certificate folder '{self._folder}': certificate rejected: {fault}"
        if problem and problem != self._last_problem:
            _log.warning("%(problem)s", {"problem": problem})
        self._last_problem = problem
