"""Captures one process for each line of standard input: `PORT DURATION_MS FOLDER`; prints the outcome."""

import asyncio
import sys

from mldiagnostics.capture.api import prepare_capture


def main(port: str, duration_ms: str, folder: str) -> None:
    for number, _ in enumerate(sys.stdin):
        prepared = prepare_capture(
            f"127.0.0.1:{port}", storage=folder, duration_ms=int(duration_ms), session=f"pulse-{number}"
        )
        report = asyncio.run(prepared.run())
        print(report.outcomes[0].reason, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
