"""The reference page of a process's metrics."""

from typing import Final

from prometheus_client import CollectorRegistry

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_SUFFIXES: Final = {"counter": "_total", "info": "_info"}


def reference(registry: CollectorRegistry, *, title: str, module: str, notes: str) -> str:
    """Return the reference page as Markdown; `notes` follow the first sentence."""
    rows = [
        f"| `{metric.name}{_SUFFIXES.get(metric.type, '')}` | {metric.type} | {metric.documentation} |"
        for metric in sorted(registry.collect(), key=lambda metric: metric.name)
        if metric.name.startswith("mldiagnostics_")
    ]
    return "\n".join(
        [
            f"# {title}",
            "",
            f"Written by `python -m {module}`; do not edit. {notes}",
            "",
            "| metric | type | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )
