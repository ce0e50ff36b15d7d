"""Entry point: `python -m mldiagnostics_view SOURCE… [--cluster]`, see `settings`."""

from __future__ import annotations

import sys
from typing import Final

_INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as that of other commands."""


def main() -> None:
    """Serve until Ctrl-C or SIGTERM."""
    try:
        from mldiagnostics_view.program import run  # noqa: PLC0415 - Ctrl-C during this import ends quietly too

        run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
