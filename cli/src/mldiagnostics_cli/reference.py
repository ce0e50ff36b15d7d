"""Reference page of all commands, from their help.

Run `python -m mldiagnostics_cli.reference`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics_cli.program import walk

if TYPE_CHECKING:
    from collections.abc import Iterator


HEAD = """# The command line

Written by `python -m mldiagnostics_cli.reference` from the help of the commands; do not edit."""

WIDTH = 100
"""Columns of the help on the page."""


def lines() -> Iterator[str]:
    """Yield the lines of the page."""
    yield HEAD
    for context in walk():
        context.terminal_width = WIDTH
        context.max_content_width = WIDTH
        yield from ("", f"## `{context.command_path}`", "", "```text", context.get_help().rstrip(), "```")


if __name__ == "__main__":
    print("\n".join(lines()))  # noqa: T201 - that is its purpose
