"""`python -m mldiagnostics_diagnosis`: read one trace, or diagnose a session.

summarize FILE HOST MEMORY_BYTES CPU_SECONDS OUTPUT_BYTES   print the summary of a trace, within these limits
session LOG_DIRECTORY SESSION                               write summaries and diagnosis.json, and print the latter
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str]) -> int:
    """Run one of the two commands.

    The imports of the first are few, as it runs once for each trace.
    """
    match arguments:
        case ["summarize", path, host, memory_bytes, cpu_s, output_bytes]:
            from mldiagnostics_diagnosis import limits  # noqa: PLC0415
            from mldiagnostics_diagnosis.reading import program  # noqa: PLC0415

            limits.apply(int(memory_bytes), int(cpu_s), int(output_bytes))
            return program.run(path, host)
        case ["session", log_directory, session]:
            from mldiagnostics_diagnosis import job  # noqa: PLC0415

            return job.run(log_directory, session)
        case _:
            sys.stderr.write(__doc__ or "")
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
