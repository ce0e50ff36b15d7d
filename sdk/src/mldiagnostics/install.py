"""How to install this product: no package index has it yet, so the checkout and its wheels are named; pure."""

from __future__ import annotations

from typing import Final

_WHEELS: Final = {"sdk": "mldiagnostics", "shim": "mldiagnostics_shim"}


def install_hint(member: str, *, extra: str = "", options: str = "") -> str:
    """Return the commands that install a member of the repository, from the checkout or from its wheel.

    Args:
        member: folder of the member: `sdk` or `shim`.
        extra: optional part of it.
        options: options of `pip install`.
    """
    part = f"[{extra}]" if extra else ""
    command = " ".join(filter(None, ("pip install", options)))
    return (
        f"{command} './{member}{part}' in a checkout of mldiagnostics, "
        f"or {command} 'PATH/{_WHEELS[member]}-VERSION-py3-none-any.whl{part}' with its wheel"
    )
