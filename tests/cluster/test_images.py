"""Archives of images: of several checkouts, and no more than a few."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cluster import images
from hypothesis import given
from hypothesis import strategies as st

if TYPE_CHECKING:
    from pathlib import Path

archives = st.dictionaries(st.from_regex(r"[a-f]{1,3}", fullmatch=True), st.floats(0, 1e9), max_size=12)


@given(used=archives, newest=st.from_regex(r"[a-f]{1,3}", fullmatch=True))
def test_the_archives_that_were_used_last_stay(used: dict[str, float], newest: str) -> None:
    removed = images.outdated(used, newest)
    assert len(removed) == max(0, len({newest, *used}) - images.ARCHIVES_KEPT)
    assert newest not in removed
    stayed = [used[name] for name in used if name not in removed and name != newest]
    assert all(used[name] <= time for name in removed for time in stayed)


class Loads:
    """A cluster that notes what is loaded into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.names: list[str] = []

    def load_image(self, archive: Path) -> None:
        self.names.append(archive.name)


def test_an_image_is_loaded_again_after_another_of_its_name(tmp_path: Path) -> None:
    cluster: Any = Loads(tmp_path)
    first, second = "operator-0.1.0-aaaaaaaaaaaa.tar", "operator-0.1.0-bbbbbbbbbbbb.tar"
    for name in (first, first, second, second, "jobset-0.12.0.tar", first, "jobset-0.12.0.tar"):
        images.load(tmp_path / name, cluster)
    assert cluster.names == [first, second, "jobset-0.12.0.tar", first]
