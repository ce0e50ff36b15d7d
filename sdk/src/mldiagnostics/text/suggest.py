"""Suggest the name that was probably meant by an unknown one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def unknown_parameters(function: str, unknown: Iterable[str], known: Iterable[str]) -> str:
    """Return a message about parameters that `function` does not have and ignores.

    >>> unknown_parameters("xprof", ["step"], ["run", "steps"])
    "xprof: unknown parameter 'step' is ignored; did you mean 'steps'?"
    """
    names, known = sorted(unknown), list(known)
    meant = {match: None for name in names if (match := closest(name, known))}
    problem = f"parameter {names[0]!r} is" if len(names) == 1 else f"parameters {_quoted(names)} are"
    hint = f"did you mean {_quoted(meant)}?" if meant else f"the parameters are {', '.join(known) or 'none'}"
    return f"{function}: unknown {problem} ignored; {hint}"


def closest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar to `name`, empty if none is."""
    from difflib import get_close_matches  # noqa: PLC0415 - loaded for mistakes only

    return next(iter(get_close_matches(name, list(known), n=1, cutoff=0.5)), "")


def parameters(function: Callable[..., Any]) -> list[str]:
    """Return the names of a function's parameters, without `self` and `*args`."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [name for name in names if name not in {"self", "cls"}]


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
