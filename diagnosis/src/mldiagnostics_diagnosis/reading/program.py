"""The child process that reads one trace and prints its summary."""

from __future__ import annotations

import errno
import json
import mmap
import sys
from pathlib import Path

from mldiagnostics.capture.wire import WireError

from mldiagnostics_diagnosis.limits import CORRUPT, TOO_LARGE
from mldiagnostics_diagnosis.reading.planes import read
from mldiagnostics_diagnosis.reading.summarizing import summarize


def run(path: str, host: str) -> int:
    """Print the summary of a trace; return 0, or the exit code that names the problem."""
    try:
        with Path(path).open("rb") as file:
            trace = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))  # unmapped with the process
        document = summarize(read(trace), host=host, trace_bytes=len(trace))
    except MemoryError:
        return TOO_LARGE
    except OSError as error:  # the address space has no room for the file
        if error.errno == errno.ENOMEM:
            return TOO_LARGE
        raise
    except (WireError, ValueError):  # mmap rejects an empty file
        return CORRUPT
    sys.stdout.write(json.dumps(document))
    return 0
