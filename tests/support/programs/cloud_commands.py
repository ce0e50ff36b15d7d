"""Commands of clouds in the pages, and the flags that the clouds' own programs document for them.

PYTHONPATH=e2e:tests python -m support.programs.cloud_commands    record the flags, with gcloud and aws on the PATH
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Final

from support.programs.documents import blocks

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).parents[3]
RECORDED: Final = ROOT / "tests/docs/cloud_commands.json"
PROGRAMS: Final = ("gcloud", "aws")
"""Azure's `az` has no record: it is not to be had without its own installer."""
_LINE: Final = re.compile(rf"\$ ((?:{'|'.join(PROGRAMS)}) [^\n|]*)")
_FLAG: Final = re.compile(r"--[a-z][a-z0-9]*(?:-[a-z0-9]+)*")
_NAME: Final = re.compile(r"^NAME\s+(gcloud [a-z -]+?) - ", re.MULTILINE)
"""The name of a command in its help text; gcloud shows that also if arguments follow the command."""
_WORD: Final = re.compile(r"[a-z][a-z0-9-]*")


def cloud_lines() -> Iterator[tuple[str, list[str]]]:
    """Yield the words of each command of a cloud, with its place."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        for block in blocks(page.read_text()):
            for line in _LINE.findall(block.text.replace("\\\n", "")):
                yield f"{page.relative_to(ROOT)}:{block.line}", shlex.split(line, comments=True)


def flags_in(words: list[str]) -> set[str]:
    """Return the flags of a command, without their values."""
    return {match[0] for word in words if (match := _FLAG.match(word))}


def _record() -> None:
    commands = {" ".join(_command(words)) for _, words in cloud_lines()}
    flags = {command: sorted(set(_FLAG.findall(_help(command.split())))) for command in sorted(commands)}
    RECORDED.write_text(json.dumps(flags, indent=1) + "\n")


def _command(words: list[str]) -> list[str]:
    """Return the words of a command that are not its arguments: the longest ones that have a help text."""
    names = []
    for word in words:
        if not _WORD.fullmatch(word):
            break
        names.append(word)
    while not (text := _help(names)):
        names.pop()
    named = _NAME.search(text)
    return named[1].split() if named else names


def _help(command: list[str]) -> str:
    program = shutil.which(command[0])
    if program is None:
        raise SystemExit(f"{command[0]}: is not installed; install it to record its flags")
    option = ["--help"] if command[0] == "gcloud" else ["help"]
    environment = {"PATH": "/usr/bin:/bin", "PAGER": "cat", "AWS_PAGER": "cat", "HOME": "/tmp", "TERM": "dumb"}
    done = subprocess.run(
        [program, *command[1:], *option], env=environment, capture_output=True, text=True, check=False
    )
    return re.sub(r".\x08", "", done.stdout) if done.returncode == 0 else ""


if __name__ == "__main__":
    _record()
