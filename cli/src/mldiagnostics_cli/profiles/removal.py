"""`mldiag profiles delete` and `prune`: all files of sessions."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import click
from mldiagnostics.errors import ConfigurationError, StoreError
from mldiagnostics.layout import CAPTURE_RECORD, PROFILE_DIR
from mldiagnostics.locations import is_on_volume
from mldiagnostics.store import open_store

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.exit_codes import FAILED, PARTIAL
from mldiagnostics_cli.output import is_terminal, note, show_rows
from mldiagnostics_cli.profiles.listing import columns
from mldiagnostics_cli.profiles.references import find_session, find_sessions, opened
from mldiagnostics_cli.profiles.retention import expired
from mldiagnostics_cli.values import size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.runs import SessionRow

    from mldiagnostics_cli.commands.source_options import SourceChoice

__all__ = ["delete_sessions", "prune_sessions"]

PARALLEL_DELETES = 32
"""Requests to a bucket at a time, as many as the read model has."""


def delete_sessions(
    choice: SourceChoice, references: Sequence[str], output: OutputFormat, *, yes: bool, dry_run: bool
) -> None:
    """Delete sessions after a confirmation, and print which.

    Raises:
        ConfigurationError: A session does not exist, or nobody can confirm. Nothing is deleted then.
    """
    with opened(choice, references) as source:
        rows = {row.url: row for row in (find_session(source, reference) for reference in references)}
    _delete_all(list(rows.values()), output, yes=yes, dry_run=dry_run)


def prune_sessions(
    choice: SourceChoice,
    references: Sequence[str],
    output: OutputFormat,
    *,
    keep: int | None,
    older_than_s: float | None,
    yes: bool,
    dry_run: bool,
) -> None:
    """Delete the sessions of runs and log directories that are too many or too old.

    Raises:
        ConfigurationError: A source does not exist, neither limit is given, or nobody can confirm. Nothing is deleted
            then.
    """
    if keep is None and older_than_s is None:
        raise ConfigurationError("prune: neither --keep nor --older-than is given; pass one of them")
    rows: dict[str, SessionRow] = {}
    with opened(choice, references) as source:
        for reference in references:
            found = expired(find_sessions(source, reference), keep=keep, older_than_s=older_than_s, now=time.time())
            rows |= {row.url: row for row in found}
    if not rows and output in {OutputFormat.TABLE, OutputFormat.WIDE}:
        note("No profile sessions to delete.")
        return
    _delete_all(list(rows.values()), output, yes=yes, dry_run=dry_run)


def _delete_all(rows: Sequence[SessionRow], output: OutputFormat, *, yes: bool, dry_run: bool) -> None:
    if on_volume := next((row for row in rows if is_on_volume(row.url)), None):
        raise ConfigurationError(
            f"{on_volume.url}: lies on the operator's volume, which only the operator writes; "
            "set spec.retention of the MLRun, or delete the run with its artifacts"
        )
    if rows and not dry_run and not yes:
        _confirm(rows)
    deleted = rows if dry_run else [row for row in rows if _delete(row)]
    show_rows(deleted, columns(time.time()), output, name=lambda row: row.url, document=lambda row: row.to_json())
    if dry_run:
        note("Nothing was deleted: --dry-run.")
    elif len(deleted) < len(rows):
        raise click.exceptions.Exit(PARTIAL if deleted else FAILED)


def _confirm(rows: Sequence[SessionRow]) -> None:
    names = ", ".join(row.name for row in rows)
    if not (sys.stdin is not None and sys.stdin.isatty() and is_terminal()):
        raise ConfigurationError(f"{names}: not deleted, as there is no terminal to confirm it; pass --yes")
    click.confirm(f"Delete {names} ({size(sum(row.bytes for row in rows))})?", abort=True)


def _delete(row: SessionRow) -> bool:
    """Delete the files of a session, with XProf's caches.

    Its record is the last one, so that a deletion can be repeated.
    """
    root = row.url.removesuffix(f"/{PROFILE_DIR}/{row.name}")
    store = open_store(root)  # of the log directory: it removes the directory of the session with its last file
    try:
        keys = sorted((entry.key for entry in store.list(f"{PROFILE_DIR}/{row.name}")), key=_is_record)
        with ThreadPoolExecutor(PARALLEL_DELETES) as workers:
            list(workers.map(store.delete, [key for key in keys if not _is_record(key)]))
        for key in filter(_is_record, keys):
            store.delete(key)
    except StoreError as error:
        note(f"mldiag: {row.url}: not wholly deleted: {error}; run the command again")
        return False
    return True


def _is_record(key: str) -> bool:
    return key.endswith(f"/{CAPTURE_RECORD}")
