"""`python -m mldiagnostics_shim`: who answers to the import names of others here; status 1 if it is not us."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

from mldiagnostics_shim.originals import ORIGINALS, advice, original


def main() -> int:
    """Print a line for each import name and return how the process should end."""
    answers = [(*_report(name),) for name in ORIGINALS]
    print("\n".join(line for line, _ in answers))  # noqa: T201 - that is its purpose
    return 0 if all(clean for _, clean in answers) else 1


def _report(import_name: str) -> tuple[str, bool]:
    found, ours = original(import_name), _is_ours(import_name)
    if ours and not found:
        return f"{import_name}: served by mldiagnostics", True
    who = "served by mldiagnostics, for now" if ours else "not served by mldiagnostics"
    reason = f"{found} is installed too" if found else "its folder was replaced"
    return f"{import_name}: {who}: {reason}; {advice(import_name)}", False


def _is_ours(import_name: str) -> bool:
    """Tell whose the folder is without importing it, which would start the original's threads."""
    spec = find_spec(import_name)
    return spec is not None and spec.origin is not None and "mldiagnostics_shim" in Path(spec.origin).read_text()


if __name__ == "__main__":
    sys.exit(main())
