"""Values that a shell completes: runs, groups, tags, metrics, sessions, schedules.

They are those of the place that the options name.

A completion prints nothing but its values: a place that is missing, rejects the user or is slow has none.
"""

from __future__ import annotations

import contextlib
import re
import threading
from collections import Counter
from typing import TYPE_CHECKING, Final

from click.shell_completion import CompletionItem

from mldiagnostics_cli.commands.cluster_options import chosen_cluster
from mldiagnostics_cli.commands.source_options import SourceChoice
from mldiagnostics_cli.values import short_id

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import click
    from mldiagnostics.runs import RunRow

    from mldiagnostics_cli.runs.source import RunSource


LIMIT_S: Final = 3.0
"""A user who presses Tab waits no longer for a bucket or a cluster."""

_WORD = re.compile(r"[\w.@%+=,/-]+")
"""Values that every shell takes as one word without quotes."""


def complete_runs(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return names of runs, and ids where a name has several runs or is not one word, or where an id is begun."""
    return _matching(_from_source(context, lambda source: _run_values(_rows(source), incomplete)), incomplete)


def complete_sources(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return runs, and leave files to the shell; click's script for bash forgets what comes before the files."""
    return [CompletionItem(incomplete, type="file"), *complete_runs(context, parameter, incomplete)]


def complete_groups(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the groups of the runs."""
    return _matching(_from_source(context, lambda source: ((row.run_group, "") for row in _rows(source))), incomplete)


def complete_tags(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the tags of the runs."""
    tags = _from_source(context, lambda source: ((tag, "") for row in _rows(source) for tag in row.tags))
    return _matching(tags, incomplete)


def complete_metrics(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the metrics of the runs of the command line."""
    given = context.params.get("run") or context.args  # click has not parsed them where the option lacks its value
    named = [given] if isinstance(given, str) else list(given)
    rank = context.params.get("rank") or 0

    def metrics(source: RunSource) -> Iterator[tuple[str, str]]:
        for run in named:
            yield from ((curve.metric, "") for curve in source.curves(source.find(run), None, rank=rank))

    return _matching(_from_source(context, metrics), incomplete)


def complete_schedules(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the schedules of the namespace."""

    def schedules() -> Iterator[tuple[str, str]]:
        from mldiagnostics_cli.schedules.requests import list_all

        for each in list_all(chosen_cluster(context.params))[0]:
            yield each["metadata"]["name"], (each.get("status") or {}).get("schedule") or ""

    return _matching(_in_time(schedules), incomplete)


def complete_triggers(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the kinds of triggers."""
    from mldiagnostics_api.schedules.triggers import TriggerType

    return _matching({str(each): "" for each in TriggerType}, incomplete)


def complete_sessions(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return runs, and after a run and a slash its sessions."""
    run, slash, _ = incomplete.rpartition("/")

    def sessions(source: RunSource) -> Iterator[tuple[str, str]]:
        if not slash:
            return _run_values(_rows(source), incomplete)
        return ((f"{run}/{profile.name}", profile.kind) for profile in source.sessions(source.find(run)))

    return _matching(_from_source(context, sessions), incomplete)


def _rows(source: RunSource) -> list[RunRow]:
    from mldiagnostics.runs.run_filter import RunFilter

    return source.rows(RunFilter())


def _run_values(rows: Sequence[RunRow], incomplete: str) -> Iterator[tuple[str, str]]:
    names = Counter(row.name for row in rows)
    for row in rows:
        is_name = names[row.name] == 1 and _WORD.fullmatch(row.name)
        if is_name:
            yield row.name, f"{row.phase} {short_id(row.run_id)}"
        if not is_name or (incomplete and row.run_id.startswith(incomplete)):
            yield short_id(row.run_id), f"{row.phase} {row.name}"


def _from_source(context: click.Context, values_of: Callable[[RunSource], Iterable[tuple[str, str]]]) -> dict[str, str]:
    """Return values of the source that the options name, as `_in_time` does."""

    def values() -> Iterator[tuple[str, str]]:
        from mldiagnostics_cli.runs.opening import open_source

        with open_source(_choice(context)) as source:
            yield from values_of(source)

    return _in_time(values)


def _in_time(values: Callable[[], Iterable[tuple[str, str]]]) -> dict[str, str]:
    """Return values with their descriptions; none after an error or the time limit."""
    found: dict[str, str] = {}

    def read() -> None:
        with contextlib.suppress(Exception):
            found.update(values())

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(LIMIT_S)
    return dict(found)


def _choice(context: click.Context) -> SourceChoice:
    return SourceChoice(storage=context.params.get("storage"), cluster=chosen_cluster(context.params))


def _matching(values: dict[str, str], incomplete: str) -> list[CompletionItem]:
    return [
        CompletionItem(value, help=described.strip() or None)
        for value, described in values.items()
        if value.startswith(incomplete) and _WORD.fullmatch(value)
    ]
