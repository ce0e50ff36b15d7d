"""`helm test`: check that the control-plane API answers at its Service.

It verifies the certificate, as clients do.
"""

import http.client
import os
import ssl
import sys
import time
from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

URL: Final = "MLDIAG_CONTROL_PLANE_URL"
CA_FILE: Final = "MLDIAG_CONTROL_PLANE_CA_FILE"
DEADLINE_S: Final = 60.0
"""A new leader serves a few seconds after the end of the one before."""
PAUSE_S: Final = 1.0
_REPORTS: Final = "/v1/runs/helm-test/reports"


def check(url: str, ca_file: Path | None) -> None:
    """Send a report without a token, which only the API rejects as it should.

    Args:
        url: Address of the API.
        ca_file: Certificates of its CA; None for those of the system.

    Raises:
        OSError: It cannot be reached, or its certificate is not trusted.
        ValueError: It gives another answer.
    """
    context = ssl.create_default_context(cafile=ca_file)
    address = urlsplit(url)
    connection = http.client.HTTPSConnection(address.hostname or "", address.port, timeout=10, context=context)
    try:
        connection.request("POST", _REPORTS, body=b"{}", headers={"Content-Type": "application/json"})
        status = connection.getresponse().status
    finally:
        connection.close()
    if status != HTTPStatus.UNAUTHORIZED:
        raise ValueError(f"a report without a token got the status {status}, not {HTTPStatus.UNAUTHORIZED.value}")


def main() -> int:
    """Check the API until it answers, print the result and return the exit status."""
    url, file = os.environ[URL], Path(os.environ[CA_FILE])
    until = time.monotonic() + DEADLINE_S
    while True:
        try:
            check(url, file if file.exists() else None)
        except (OSError, http.client.HTTPException, ValueError) as error:
            if time.monotonic() > until:
                sys.stderr.write(f"The control-plane API {url} does not work: {error}\n")
                return 1
            time.sleep(PAUSE_S)
        else:
            sys.stdout.write(f"The control-plane API {url} answers, and its certificate is trusted.\n")
            return 0


if __name__ == "__main__":
    sys.exit(main())
