"""Keep Python's bytecode for the many interpreters that tests and measurements start."""

from collections.abc import MutableMapping
from pathlib import Path

FOLDER = Path(__file__).parents[3] / ".tools/bytecode"


def keep_bytecode(environment: MutableMapping[str, str]) -> None:
    """Let Python keep its bytecode outside the sources where it may not keep it beside them."""
    if environment.pop("PYTHONDONTWRITEBYTECODE", ""):
        environment["PYTHONPYCACHEPREFIX"] = str(FOLDER)
