"""Files of a run that wait on this machine for its storage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mldiagnostics.spool.directory import FILES, files_below, read_description
from mldiagnostics.spool.places import directories, roots
from mldiagnostics.text.counts import counted

if TYPE_CHECKING:
    from mldiagnostics.runs.row import RunRow


def waiting_files(run: RunRow) -> str:
    """Return a note about the spooled files of a run; empty without any.

    Facts of a run lack what waits: records in the spool of another machine are not known here.
    """
    count, places = 0, []
    for folder in [folder for root in roots() for folder in directories(root)]:
        for path in directories(folder):
            description = read_description(path)
            if description is not None and description.origin.run_id == run.run_id:
                count += sum(1 for _ in files_below(path / FILES))
                places.append(str(path))
    if not count:
        return ""
    upload = f"python -m mldiagnostics.upload {places[0]}" if len(places) == 1 else "python -m mldiagnostics.upload"
    waits = f"{counted(count, 'file')} of this run {'waits' if count == 1 else 'wait'}"
    return f"{waits} for {run.storage} in the spool; run `{upload}`"
