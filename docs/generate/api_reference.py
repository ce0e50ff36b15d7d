"""Write a reference page from signatures and docstrings: `python docs/generate/api_reference.py sdk|goodput-api`."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import griffe
from mldiagnostics.metric_types import UNITS

ROOT = Path(__file__).parents[2]
PACKAGE = "mldiagnostics"
WIDTH = 100
# They take what a program passes by mistake, and warn.
_VARIADIC = {griffe.ParameterKind.var_positional, griffe.ParameterKind.var_keyword}


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, its introduction, and the objects below it by their import path inside the package."""

    title: str
    introduction: str
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """A reference page."""

    title: str
    sections: tuple[Section, ...]


PAGES = {
    "sdk": Page(
        "SDK reference",
        (
            Section("Runs", "Start a run, and the methods of a started run.", ("machinelearning_run", "MLRun")),
            Section("Metrics", "Functions of `mldiagnostics.metrics`.", ("metrics.record", "metrics.record_metrics")),
            Section("Known metrics", "Any other name has the unit `1`.", ("metric_types.MetricType",)),
            Section("Profiles", "", ("xprof",)),
            Section("Captures", "Needs the extra `capture`.", ("capture.capture",)),
            Section("Read runs", "Functions and rows of `mldiagnostics.runs`.", ("runs",)),
            Section("Storage", "", ("open_store",)),
            Section(
                "Enumerations",
                "Parameters take a member or its text.",
                (
                    "Framework", "ServingEngine", "AcceleratorOrchestrator", "ApplicationFramework", "RlOrchestrator",
                    "RunPhase", "AcceleratorType",
                ),
            ),
            Section("Errors", "", ("errors",)),
        ),
    ),
    "goodput-api": Page(
        "Goodput reference",
        (
            Section("Record", "", ("goodput.GoodputRecorder",)),
            Section("Compute", "", ("goodput.GoodputCalculator", "goodput.GoodputCache")),
            Section("Monitor", "", ("compat.monitoring.GoodputMonitor", "goodput.google_cloud.GCPOptions")),
            Section(
                "Values",
                "",
                (
                    "goodput.GoodputType", "goodput.BadputType", "goodput.MetricType", "goodput.IntervalMetricType",
                    "goodput.WorkloadMetricDetails", "goodput.IntervalWorkloadMetricDetails",
                    "goodput.GoodputInfo", "goodput.StepInfo",
                ),
            ),
            Section(
                "Functions",
                "",
                (
                    "goodput.compute_ideal_step_time", "goodput.get_extra_time_from_anomalous_steps",
                    "goodput.get_timestamp_from_log_entry",
                ),
            ),
            Section(
                "Checkpoints",
                "",
                ("goodput.CheckpointBadputCalculator", "goodput.CheckpointLoggerOptions"),
            ),
        ),
    ),
}  # fmt: skip
MEMBERS = {"MLRun": ("run_id", "configs", "closed", "step", "on_step", "on_close", "publish", "close")}
"""Class -> the members that programs use, where others serve only this package."""


def render(name: str) -> Iterator[str]:
    """Yield the lines of a page.

    Args:
        name: A key of `PAGES`.

    Raises:
        KeyError: a path of the page names no object.
    """
    package = griffe.load(PACKAGE, search_paths=[ROOT / "sdk/src"], docstring_parser="google", resolve_aliases=True)
    page = PAGES[name]
    yield f"# {page.title}\n"
    yield f"Written by `python docs/generate/api_reference.py {name}`; do not edit.\n"
    for section in page.sections:
        yield f"## {section.title}\n"
        if section.introduction:
            yield f"{section.introduction}\n"
        for path in section.paths:
            yield from _object(_resolved(package, path), f"{PACKAGE}.{path}")


def _resolved(scope: Any, path: str) -> Any:
    """Return the object at a path, through re-exports and through names for a class, such as `xprof`."""
    member = scope[path]
    target = member.final_target if member.is_alias else member
    if isinstance(target, griffe.Attribute) and target.parent and str(target.value) in target.parent.members:
        return _resolved(target.parent, str(target.value))
    return target


def _object(what: griffe.Object, path: str) -> Iterator[str]:
    if isinstance(what, griffe.Module):
        yield from _module(what, path)
    elif isinstance(what, griffe.Class):
        yield from _class(what, path)
    elif isinstance(what, griffe.Function):
        yield from _function(what, f"### `{path}`", path)


def _module(module: griffe.Module, path: str) -> Iterator[str]:
    own = [name for name, each in module.members.items() if not each.is_alias]
    names = [str(name).strip("'\"") for name in module.exports or own]
    objects = {name: _resolved(module, name) for name in names if not name.startswith("_")}
    classes = {name: each for name, each in objects.items() if isinstance(each, griffe.Class)}
    if not any(isinstance(each, griffe.Function) for each in objects.values()):
        yield "| class | raised or used when |\n|---|---|"
        yield from (f"| `{name}` | {_summary(each)} |" for name, each in classes.items() if each.docstring)
        yield ""
        return
    for name, each in objects.items():
        if each.docstring:
            yield from _object(each, f"{path}.{name}")


def _class(what: griffe.Class, path: str) -> Iterator[str]:
    yield f"### `{path}`\n"
    if "__init__" in what.members:
        yield f"```python\n{_signature(what, what.name)}\n```\n"
    yield from _docstring(what)
    listed = MEMBERS.get(what.name, what.all_members)
    own: list[Any] = [what.all_members[name] for name in listed if not name.startswith("_")]
    members = [each.final_target if each.is_alias else each for each in own]  # inherited ones are aliases
    if _is_enumeration(what):
        yield from _enumeration([each for each in members if isinstance(each, griffe.Attribute)])
        return
    attributes = [
        each for each in members if isinstance(each, griffe.Attribute) and (each.docstring or each.annotation)
    ]
    if attributes:
        yield "| attribute | type | meaning |\n|---|---|---|"
        yield from (f"| `{each.name}` | {_code(each.annotation)} | {_summary(each)} |" for each in attributes)
        yield ""
    for each in members:
        if isinstance(each, griffe.Function) and each.docstring:
            yield from _function(each, f"#### `{what.name}.{each.name}`", f"{each.name}")


def _enumeration(members: list[griffe.Attribute]) -> Iterator[str]:
    values = [str(each.value).strip("'\"") for each in members]
    unit = UNITS.keys() >= set(values)
    yield (
        "| member | value | unit | meaning |\n|---|---|---|---|"
        if unit
        else "| member | value | meaning |\n|---|---|---|"
    )
    for each, value in zip(members, values, strict=True):
        yield f"| `{each.name}` | `{value}` |" + (f" `{UNITS[value]}` |" if unit else "") + f" {_summary(each)} |"
    yield ""


def _function(what: griffe.Function, heading: str, path: str) -> Iterator[str]:
    yield f"{heading}\n"
    yield f"```python\n{_signature(what, path.removeprefix(f'{PACKAGE}.'))}\n```\n"
    yield from _docstring(what)


def _signature(what: griffe.Function | griffe.Class, path: str) -> str:
    """Return the call with its defaults; a long one has a line for each parameter."""
    parameters, starred = [], False
    for each in what.parameters:
        if each.kind is griffe.ParameterKind.keyword_only and not starred:
            parameters.append("*")
        starred |= each.kind in {griffe.ParameterKind.keyword_only, griffe.ParameterKind.var_positional}
        if each.name not in {"self", "cls"} and each.kind not in _VARIADIC:
            parameters.append(each.name + (f"={each.default}" if each.default is not None else ""))
    returns = f" -> {what.returns}" if isinstance(what, griffe.Function) and what.returns else ""
    line = f"{path}({', '.join(parameters)}){returns}"
    return (
        line if len(line) <= WIDTH else f"{path}(\n" + "".join(f"    {each},\n" for each in parameters) + f"){returns}"
    )


def _docstring(what: griffe.Object) -> Iterator[str]:
    for section in what.docstring.parsed if what.docstring else ():
        if (renderer := _RENDERERS.get(section.kind)) is not None:
            yield from renderer(section)


def _parameters(section: Any) -> Iterator[str]:
    yield "| parameter | type | default | meaning |\n|---|---|---|---|"
    for each in section.value:
        default = f"`{each.default}`" if each.default is not None else "required"
        yield f"| `{each.name}` | {_code(each.annotation)} | {default} | {_line(each.description)} |"
    yield ""


def _raises(section: Any) -> Iterator[str]:
    yield "**Raises**\n"
    yield from (f"* `{each.annotation}`: {_line(each.description)}" for each in section.value)
    yield ""


def _attributes(section: Any) -> Iterator[str]:
    yield from (f"* `{each.name}`: {_line(each.description)}" for each in section.value)
    yield ""


def _examples(section: Any) -> Iterator[str]:
    for kind, text in section.value:
        is_code = kind is griffe.DocstringSectionKind.examples
        yield f"```python\n{text}\n```\n" if is_code else f"{text}\n"


def _results(word: str) -> Callable[[Any], Iterator[str]]:
    return lambda section: iter([f"**{word}** " + "; ".join(_line(each.description) for each in section.value) + "\n"])


_RENDERERS: dict[griffe.DocstringSectionKind, Callable[[Any], Iterator[str]]] = {
    griffe.DocstringSectionKind.text: lambda section: iter([f"{section.value}\n"]),
    griffe.DocstringSectionKind.parameters: _parameters,
    griffe.DocstringSectionKind.returns: _results("Returns"),
    griffe.DocstringSectionKind.yields: _results("Yields"),
    griffe.DocstringSectionKind.raises: _raises,
    griffe.DocstringSectionKind.attributes: _attributes,
    griffe.DocstringSectionKind.examples: _examples,
    griffe.DocstringSectionKind.admonition: lambda section: iter(
        [f"**{section.title}**\n\n```python\n{section.value.description}\n```\n"]
    ),
}


def _is_enumeration(what: griffe.Class) -> bool:
    return any(str(base).rpartition(".")[2] in {"Enum", "StrEnum", "IntEnum"} for base in what.bases)


def _summary(what: griffe.Object) -> str:
    return _line(what.docstring.value.split("\n\n")[0]) if what.docstring else ""


def _line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _code(annotation: object) -> str:
    return f"`{annotation}`".replace("|", "\\|") if annotation else ""


def main(names: list[str]) -> int:
    """Print a page; return 2 if it is unknown."""
    if len(names) != 1 or names[0] not in PAGES:
        print(f"usage: api_reference.py {'|'.join(PAGES)}", file=sys.stderr)
        return 2
    print("\n".join(render(names[0])).rstrip())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
