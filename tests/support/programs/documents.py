"""Pages of the documentation: their blocks run in order in one folder, as a reader runs them.

A block of Markdown is one of these:

* a file: its fence has `title="train.py"`;
* commands: its language is `console`; a line `$ command` runs, and the lines after it are its output. Numbers, times,
  ids and bars of the output may differ, `…` stands for any text, and a line `…` for any lines;
* a drawing: its language is `text`;
* one that does not run: the comment `<!-- not run: reason -->` stands above it.

The comment `<!-- exits with 137 -->` above commands names another exit status than 0. The comment
`<!-- environment: NAME -->` of a page names the packages of its programs, or `cluster`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from uuid import uuid4

from support.suite.isolation import of_programs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_FENCE: Final = re.compile(
    r"^(?:<!-- (?P<note>[^>]*) -->\n)?```(?P<language>\w*)(?: title=\"(?P<title>[^\"]+)\")?\n(?P<text>.*?)^```$",
    re.DOTALL | re.MULTILINE,
)
_ENVIRONMENT: Final = re.compile(r"^<!-- environment: (?P<name>[\w-]+) -->$", re.MULTILINE)
_ANY: Final = "…"
_VARIABLE: Final = (
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ][\d:.]+Z?|\b\d\d:\d\d(:\d\d)?\b"), "<time>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)[0-9a-f]{8,64}\b"), "<id>"),
    (re.compile(r"\b(\d[\d.,]* (h|min|s|ms|us|µs|d) ?)+(?=\s|$|[,;:)])"), "<length> "),
    (re.compile(r"\d[\d.,]* ([KMG]i)?B\b"), "<size>"),
    (re.compile(r"[▀-▟⠀-⣿]+"), ""),
    (re.compile(r"-?\d[\d.,]*"), "<number>"),
    (re.compile(r"\s+"), " "),
)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of a page."""

    language: str
    title: str
    text: str
    note: str
    line: int

    @property
    def reason(self) -> str:
        """Why it does not run; empty if it does."""
        return self.note.removeprefix("not run: ") if self.note.startswith("not run: ") else ""

    @property
    def exit_status(self) -> int:
        """Exit status of its commands."""
        return int(self.note.removeprefix("exits with ")) if self.note.startswith("exits with ") else 0

    def commands(self) -> Iterator[tuple[str, list[str]]]:
        """Yield each command with the lines of its output."""
        command, output = "", list[str]()
        for line in self.text.replace("\\\n", "").splitlines():
            if line.startswith("$ "):
                if command:
                    yield command, output
                command, output = line.removeprefix("$ "), []
            else:
                output.append(line)
        if command:
            yield command, output


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    return [
        Block(
            language=match["language"],
            title=match["title"] or "",
            text=match["text"],
            note=match["note"] or "",
            line=page.count("\n", 0, match.start()) + 1,
        )
        for match in _FENCE.finditer(page)
    ]


def environment(page: str) -> str:
    """Return the name of the environment that a page needs; empty for that of the tests."""
    match = _ENVIRONMENT.search(page)
    return match["name"] if match else ""


def run_page(page: Path, shell: Shell, folder: Path) -> None:
    """Run all blocks of a page; raise AssertionError at the first difference.

    Args:
        page: The Markdown file.
        shell: Runs its commands.
        folder: Directory of the shell, for its files.
    """
    for block in blocks(page.read_text()):
        place = f"{page.name}:{block.line}"
        if block.reason or block.language == "text":
            continue
        if block.title:
            (folder / block.title).write_text(block.text)
            continue
        assert block.language == "console", f"{place}: neither a file nor commands; say why it does not run"
        for command, expected in block.commands():
            shown, status = shell.run(command)
            assert status == block.exit_status, f"{place}: {command}: exits with {status}: {shown}"
            if expected:
                problem = differing(shown, expected)
                assert not problem, f"{place}: {command}: lacks {problem!r}:\n{shown}"


def differing(shown: str, expected: list[str]) -> str:
    """Return the first expected line that the output lacks at its place; empty if it has all."""
    lines = [normal for line in shown.splitlines() if (normal := _normal(line))]
    position, may_skip = 0, False
    for line in expected:
        normal = _normal(line)
        if normal == _ANY:
            may_skip = True
        elif normal:
            pattern = re.compile(".*".join(map(re.escape, normal.split(_ANY))))
            following = range(position, len(lines) if may_skip else min(position + 1, len(lines)))
            matching = next((place for place in following if pattern.fullmatch(lines[place])), None)
            if matching is None:
                return line
            position, may_skip = matching + 1, False
    return "" if may_skip or position == len(lines) else f"nothing after its end; but it has {lines[position]!r}"


def _normal(line: str) -> str:
    for pattern, shown in _VARIABLE:
        line = pattern.sub(shown, line)
    return line.strip()


class Shell:
    """One bash in a folder, as in a terminal: variables and the directory stay from command to command."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            ["bash", "--norc"],
            cwd=folder,
            env={**of_programs(), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, command: str) -> tuple[str, int]:
        """Run a command; return its output with its errors, and its exit status."""
        stdin, stdout, mark = self._process.stdin, self._process.stdout, uuid4().hex
        assert stdin is not None
        assert stdout is not None
        stdin.write(f"{command}\nstatus=$?; echo; echo {mark} $status\n")
        stdin.flush()
        lines = list[str]()
        for line in stdout:
            if line.startswith(mark):
                return "".join(lines), int(line.split()[1])
            lines.append(line)
        raise AssertionError(f"{command}: the shell ended: {''.join(lines)}")

    def close(self) -> None:
        """End it with the programs that it runs in the background."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
