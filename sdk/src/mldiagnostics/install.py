"""Commands that install this product, which no package index has yet; pure."""

from __future__ import annotations

from typing import Final

_WHEELS: Final = {"sdk": "mldiagnostics", "shim": "mldiagnostics_shim", "cli": "mldiagnostics_cli"}


def install_hint(member: str, *, extra: str = "", options: str = "") -> str:
    """Return the commands that install a member, from a checkout or from its wheel.

    Args:
        member: folder of the member: `sdk`, `shim` or `cli`.
        extra: extra of the member.
        options: options of `pip install`.
    """
    part = f"[{extra}]" if extra else ""
    command = " ".join(filter(None, ("pip install", options)))
    return (
        f"{command} './{member}{part}' in a checkout of mldiagnostics, "
        f"or {command} 'PATH/{_WHEELS[member]}-VERSION-py3-none-any.whl{part}' with its wheel"
    )
