"""Deletions that a user confirms: of files, MLRuns and servers."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, TypeVar

import click
from mldiagnostics.errors import ConfigurationError, MLDiagnosticsError

from mldiagnostics_cli.exit_codes import FAILED, PARTIAL
from mldiagnostics_cli.output import is_terminal, note

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from mldiagnostics.store import Store


PARALLEL_DELETES = 32
"""Requests to a bucket at a time, as many as the read model has."""

T = TypeVar("T")


def can_confirm() -> bool:
    """Return whether somebody at a terminal can answer a question."""
    return sys.stdin is not None and sys.stdin.isatty() and is_terminal()


def confirm(names: str, question: str, *, flag: str = "--yes") -> None:
    """Ask whether to delete.

    Raises:
        ConfigurationError: Nobody can answer; `flag` confirms too.
        Abort: The user declines.
    """
    if not can_confirm():
        raise ConfigurationError(f"{names}: not deleted, as there is no terminal to confirm it; pass {flag}")
    click.confirm(question, abort=True)


def delete_files(store: Store, keys: Iterable[str], *, last: Sequence[str]) -> None:
    """Delete files of a store, those of `last` after the others and in order.

    So an interrupted deletion can be repeated.
    """
    with ThreadPoolExecutor(PARALLEL_DELETES) as workers:
        list(workers.map(store.delete, [key for key in keys if key not in last]))
    for key in last:
        store.delete(key)


def delete_each(chosen: Iterable[T], delete: Callable[[T], None], *, place: Callable[[T], str]) -> list[T]:
    """Delete objects, and return those that are wholly deleted; notes name the others."""
    deleted = []
    for each in chosen:
        try:
            delete(each)
        except MLDiagnosticsError as error:
            note(f"mldiag: {place(each)}: not wholly deleted: {error}; run the command again")
        else:
            deleted.append(each)
    return deleted


def finish(chosen: Sequence[T], deleted: Sequence[T], *, dry_run: bool) -> None:
    """End the command with the exit code of a deletion."""
    if dry_run:
        note("Nothing was deleted: --dry-run.")
    elif len(deleted) < len(chosen):
        raise click.exceptions.Exit(PARTIAL if deleted else FAILED)
