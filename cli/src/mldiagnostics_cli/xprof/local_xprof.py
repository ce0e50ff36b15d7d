"""The process of XProf on this machine: its server, on 127.0.0.1 only.

XProf has no option for its address, and would show the profiles to the whole network.
"""

from __future__ import annotations

import sys


def _main() -> int:
    from xprof import server  # noqa: PLC0415 - takes seconds, only in this process

    if hasattr(server, "_get_wildcard_address"):
        server._get_wildcard_address = lambda _port: "127.0.0.1"  # noqa: SLF001 - see above
    return int(server.main(sys.argv[1:]) or 0)


if __name__ == "__main__":
    sys.exit(_main())
