import asyncio
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from io import StringIO

import pytest
from mldiagnostics_kube.process import logs


@pytest.fixture
def lines() -> Iterator[StringIO]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    stream = StringIO()
    logs.configure("INFO", stream)
    yield stream
    logging.captureWarnings(capture=False)
    root.handlers[:], level = before
    root.setLevel(level)


def read(stream: StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_line_is_json_and_its_time_has_a_zone(lines: StringIO) -> None:
    logging.getLogger("x.y").warning("%s of %d", "one", 3, extra={"reason": "Busy"})
    (line,) = read(lines)
    assert (line["severity"], line["logger"], line["message"], line["reason"]) == ("WARNING", "x.y", "one of 3", "Busy")
    assert datetime.fromisoformat(str(line["time"])).tzinfo is not None


def test_the_named_values_of_a_message_are_fields(lines: StringIO) -> None:
    with logs.about(namespace="ml", object="outer"):
        fields = {"object": "lease-1", "seconds": 2.5, "error": ValueError("x"), "name": "y"}
        logging.getLogger("x").warning("%(object)s: %(error)s (%(name)s) after %(seconds)g s", fields)
    (line,) = read(lines)
    assert line["message"] == "lease-1: x (y) after 2.5 s"
    assert (line["object"], line["seconds"], line["error"]) == ("lease-1", 2.5, "x")
    assert (line["namespace"], line["logger"]) == ("ml", "x"), "fields of the record itself stay"


async def test_fields_are_added_in_the_block_and_its_tasks_only(lines: StringIO) -> None:
    async def capture(name: str) -> None:
        with logs.about(object=name, namespace="ml"):
            await asyncio.gather(*(asyncio.to_thread(part, n) for n in range(2)))

    def part(_: int) -> None:
        with logs.about(session="s"):
            logging.getLogger("x").info("part")

    await asyncio.gather(capture("a"), capture("b"))
    logging.getLogger("x").info("outside")
    *inside, outside = read(lines)
    assert sorted(str(line["object"]) for line in inside) == ["a", "a", "b", "b"]
    assert all((line["namespace"], line["session"]) == ("ml", "s") for line in inside)
    assert "object" not in outside


def test_a_traceback_is_part_of_the_line(lines: StringIO) -> None:
    try:
        int("told")
    except ValueError:
        logging.getLogger("x").exception("failed")
    (line,) = read(lines)
    assert "ValueError: invalid literal" in str(line["exc_info"])


def test_only_warnings_of_libraries_are_logged(lines: StringIO) -> None:
    for name in ("kopf.objects", "grpc._cython", "aiohttp.access"):
        logging.getLogger(name).info("chatter")
        logging.getLogger(name).warning("news")
    assert [line["message"] for line in read(lines)] == ["news"] * 3


def test_python_warnings_are_logged_as_lines() -> None:
    code = "import warnings; from mldiagnostics_kube.process import logs; logs.configure('INFO'); warnings.warn('odd')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "odd" in json.loads(done.stdout)["message"]
    assert not done.stderr
