"""Whether XLA's flags let a GPU run programs as command buffers.

A profile from another thread can end such a process (decision 0087).
"""

from __future__ import annotations

import re

OFF = "--xla_gpu_enable_command_buffer="
"""The flag of XLA_FLAGS without a value: no operation runs in a command buffer."""
_SETTING = re.compile(r"(?:^|\s)--xla_gpu_enable_command_buffer=(\S*)")


def are_off(flags: str) -> bool:
    """Return whether command buffers are turned off.

    Of several settings, the last one counts.

    Args:
        flags: The value of XLA_FLAGS.

    >>> are_off("--xla_dump_to=/tmp --xla_gpu_enable_command_buffer="), are_off("")
    (True, False)
    """
    values = _SETTING.findall(flags)
    return bool(values) and not values[-1].strip("'\"")
