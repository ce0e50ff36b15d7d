"""`mldiag profiles delete` and `prune`: all files of sessions."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from mldiagnostics.errors import ConfigurationError
from mldiagnostics.layout import CAPTURE_RECORD, PROFILE_DIR
from mldiagnostics.locations import is_on_volume
from mldiagnostics.store import open_store

from mldiagnostics_cli.commands.options import OutputFormat
from mldiagnostics_cli.deletion import confirm, delete_each, delete_files, finish
from mldiagnostics_cli.output import note, show_rows
from mldiagnostics_cli.profiles.listing import columns
from mldiagnostics_cli.profiles.references import find_session, find_sessions, opened
from mldiagnostics_cli.profiles.retention import expired
from mldiagnostics_cli.values import size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mldiagnostics.runs import SessionRow

    from mldiagnostics_cli.commands.source_options import SourceChoice


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
        names = ", ".join(row.name for row in rows)
        confirm(names, f"Delete {names} ({size(sum(row.bytes for row in rows))})?")
    deleted = rows if dry_run else delete_each(rows, _delete, place=lambda row: row.url)
    show_rows(deleted, columns(time.time()), output, name=lambda row: row.url, document=lambda row: row.to_json())
    finish(rows, deleted, dry_run=dry_run)


def _delete(row: SessionRow) -> None:
    """Delete the files of a session, with XProf's caches. Raises `StoreError`."""
    root = row.url.removesuffix(f"/{PROFILE_DIR}/{row.name}")
    store = open_store(root)  # of the log directory: it removes the directory of the session with its last file
    keys = [entry.key for entry in store.list(f"{PROFILE_DIR}/{row.name}")]
    delete_files(store, keys, last=[key for key in keys if key.endswith(f"/{CAPTURE_RECORD}")])
