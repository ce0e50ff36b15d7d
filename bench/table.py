"""Figures as rows of a table, and the file in which the last ones are kept."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[1] / "docs/benchmarks.md"
HEAD = """# Benchmarks

Every figure comes from one run of the command above its table, beside the peers and the floor that it is to be
compared with; machines differ, so read the ratios. The text between the markers is written by that command.
"""


@dataclass(frozen=True)
class Section:
    """One table: its cells are ready for readers, `notes` say under which conditions it was measured."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: str

    def markdown(self) -> str:
        """Return the section as it stands in the file, between its markers."""
        lines = ("| " + " | ".join(row) + " |" for row in (self.columns, ["---"] * len(self.columns), *self.rows))
        table = "\n".join(lines)
        body = f"## {self.title}\n\n`python -m bench {self.name}`\n\n{table}\n\n{self.notes}"
        return f"<!-- {self.name} -->\n{body}\n<!-- /{self.name} -->\n"


def keep(section: Section, file: Path = FILE) -> None:
    """Replace the section's part of the file, or append it."""
    text = file.read_text() if file.exists() else HEAD
    old = re.compile(rf"<!-- {section.name} -->.*<!-- /{section.name} -->\n", re.DOTALL)
    new = section.markdown()
    file.write_text(old.sub(lambda _: new, text) if old.search(text) else f"{text}\n{new}")
