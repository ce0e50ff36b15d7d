"""Certificates that someone else keeps: a mounted folder, looked at again and again."""

import asyncio
import logging
from pathlib import Path
from typing import Final

from mldiagnostics_kube.certificates.serving import Serving

_log: Final = logging.getLogger(__name__)
LOOK_S: Final = 5.0
CHAIN: Final = "tls.crt"
KEY: Final = "tls.key"


class Mounted:
    """The loop that serves what lies in the folder; while that is missing or no pair, what was served before stays."""

    def __init__(self, folder: Path, serving: Serving, *, look_s: float = LOOK_S) -> None:
        self._folder = folder
        self._serving = serving
        self._look_s = look_s
        self._trouble = ""

    async def run(self) -> None:
        """Look, for ever."""
        while True:
            self._look()
            await asyncio.sleep(self._look_s)

    def _look(self) -> None:
        trouble = ""
        try:
            if self._serving.show((self._folder / CHAIN).read_bytes(), (self._folder / KEY).read_bytes()):
                _log.info("Serving the certificate of %s, valid until %s", self._folder, self._serving.expires)
        except OSError as missing:
            trouble = f"No certificate can be read yet: {missing}"
        except ValueError as fault:
            trouble = f"The certificate in {self._folder} is not usable: {fault}"
        if trouble and trouble != self._trouble:
            _log.warning("%s", trouble)
        self._trouble = trouble
