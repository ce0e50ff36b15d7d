"""`python -m mldiagnostics_shim`: show which package serves the peers' names.

The exit status is 1 if `mldiagnostics` does not serve all of them.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from mldiagnostics_shim.originals import ORIGINALS, advice, original


def main() -> int:
    """Print a line for each import name; return the exit status."""
    reports = [_report(name) for name in ORIGINALS]
    print("\n".join(line for line, _ in reports))  # noqa: T201 - the output of the command
    return 0 if all(is_clean for _, is_clean in reports) else 1


def _report(import_name: str) -> tuple[str, bool]:
    installed, ours = original(import_name), _is_ours(import_name)
    if ours and not installed:
        return f"{import_name}: served by mldiagnostics", True
    server = "served by mldiagnostics until the next installation" if ours else "not served by mldiagnostics"
    reason = f"{installed} is installed too" if installed else "its folder was replaced"
    return f"{import_name}: {server}: {reason}; {advice(import_name)}", False


def _is_ours(import_name: str) -> bool:
    """Return whether the folder is ours; an import would start the peer's threads."""
    spec = find_spec(import_name)
    return spec is not None and spec.origin is not None and "mldiagnostics_shim" in Path(spec.origin).read_text()


if __name__ == "__main__":
    sys.exit(main())
