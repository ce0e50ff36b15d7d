"""Parts of the commands of xprofiler: several values after one flag, and flags without an effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


F = TypeVar("F", bound="Callable[..., Any]")


class ManyValuesCommand(click.Command):
    """A command whose options with `multiple` take several values after one flag, as argparse does."""

    # The decorator `override` costs a tenth of the time of `mldiag --help`.
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:  # type: ignore[explicit-override]
        """Repeat the flag before each of its values, then parse as usual."""
        return super().parse_args(ctx, list(self._spread(args)))

    def _spread(self, arguments: list[str]) -> Iterator[str]:
        flags = {flag for each in self.params if getattr(each, "multiple", False) for flag in each.opts}
        current = ""
        for position, argument in enumerate(arguments):
            if argument.startswith("-"):
                current = argument if argument in flags else ""
            elif current and arguments[position - 1] != current:
                yield current
            yield argument


def ignored(*flags: str, help: str) -> Callable[[F], F]:  # noqa: A002 - click's own name
    """Return a flag that is accepted and has no effect."""
    return click.option(*flags, is_flag=True, expose_value=False, help=help)
