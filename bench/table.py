"""Tables of figures, and docs/benchmarks.md with the last ones."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).parents[1] / "docs/benchmarks.md"
HEAD = """# Benchmarks

Every figure comes from one run of the command above its table, together with the peers and the floor to compare with.
Machines differ, so compare ratios. The command writes the text between the markers.
"""


@dataclass(frozen=True)
class Section:
    """One table with formatted cells; `notes` describe the conditions of the measurement."""

    name: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: str

    def markdown(self) -> str:
        """Return the section as in the file, between its markers."""
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
