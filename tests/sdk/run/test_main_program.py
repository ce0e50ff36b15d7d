"""The end of a program by its frame, compared with the exception that ended it."""

from __future__ import annotations

from typing import Any

import pytest
from mldiagnostics.run.main_program import raised_exit

READABLE = ["1", "status", "0", "None", "'no data'", "-1", "300", "True", ""]
COMPUTED = ["len('x')", "1 if __name__ else 0", "f'{__name__}'", "[]"]
OTHERS = ["raise ValueError(1)", "[][0]", "raise", "sys.exit(1)", "error = SystemExit(1); raise error", "stop(1)"]


def end_of(source: str) -> tuple[BaseException, tuple[object, ...]]:
    code = compile(source, "program", "exec")
    names: dict[str, Any] = {"__name__": "program", "status": 3, "sys": __import__("sys")}
    exec("def stop(code): raise SystemExit(code)", names)  # noqa: S102 - the sources above
    with pytest.raises(BaseException) as ended:  # noqa: PT011 - SystemExit is one
        exec(code, names)  # noqa: S102 - the same
    [frame] = [each for each in ended.traceback if each.frame.raw.f_code is code]
    return ended.value, raised_exit(code, frame.frame.raw.f_lasti, names)


@pytest.mark.parametrize("argument", READABLE)
def test_the_argument_of_a_raised_exit_is_read(argument: str) -> None:
    error, (read,) = end_of(f"for number in range(3):\n if number:\n  raise SystemExit({argument})")
    assert isinstance(error, SystemExit)
    assert read == error.code


def test_an_exit_may_be_raised_as_a_class() -> None:
    assert end_of("raise SystemExit")[1] == (None,)


@pytest.mark.parametrize("statement", [f"raise SystemExit({argument})" for argument in COMPUTED] + OTHERS)
def test_any_other_end_is_unknown(statement: str) -> None:
    assert end_of(statement)[1] == ()
