"""Gather the pages of the site: `python docs/generate/site.py FOLDER`.

Pages link to files of the repository, such as examples. The site has pages of these too, as it works without a network.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FILES = "repository"
"""Folder of the pages of files, in the site."""
PICTURES = {".png", ".svg"}
_LINK = re.compile(r"\]\((?!\w+:)([^)#\s]+)(#[^)\s]*)?\)")


class BrokenLink(Exception):
    """A page links to a file that does not exist."""


class Site:
    """The pages of the site, each made from a file or a folder of the repository.

    Args:
        folder: Folder of the pages, which does not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._pages = {ROOT / "README.md": folder / "index.md"}
        self._pages |= {page: folder / page.relative_to(DOCS) for page in DOCS.rglob("*.md")}

    def gather(self) -> None:
        """Write all pages, also those of files that only pages link to.

        Raises:
            BrokenLink: A linked file does not exist.
        """
        waiting = [*self._pages]
        while waiting:
            source = waiting.pop()
            before = len(self._pages)
            page = self._pages[source]
            page.parent.mkdir(parents=True, exist_ok=True)
            if source.suffix in PICTURES:
                page.write_bytes(source.read_bytes())
            else:
                page.write_text(self._text(source))
            waiting += [*self._pages][before:]

    def _text(self, source: Path) -> str:
        if source.suffix == ".md":
            return _LINK.sub(lambda link: self._linked(link, source), source.read_text())
        files = sorted(each for each in source.iterdir() if each.is_file()) if source.is_dir() else [source]
        parts = [f"# {source.relative_to(ROOT)}\n"]
        for file in files:
            heading = f"\n## {file.name}\n" if source.is_dir() else ""
            parts.append(f"{heading}\n````{file.suffix.removeprefix('.')}\n{file.read_text().rstrip()}\n````\n")
        return "".join(parts)

    def _linked(self, link: re.Match[str], source: Path) -> str:
        """Return a link of a page as it is in the site."""
        target = (source.parent / link[1]).resolve()
        if not target.exists():
            raise BrokenLink(f"{source.relative_to(ROOT)}: {link[1]}: no such file")
        page = self._page_of(target)
        up = "../" * (len(self._pages[source].relative_to(self._folder).parts) - 1)
        return f"]({up}{page.relative_to(self._folder)}{link[2] or ''})"

    def _page_of(self, target: Path) -> Path:
        if target in self._pages:
            return self._pages[target]
        if target.suffix in PICTURES and target.is_relative_to(DOCS):
            return self._pages.setdefault(target, self._folder / target.relative_to(DOCS))
        if target.is_dir() and target.is_relative_to(DOCS):
            return self._folder / "index.md"
        # The generator leaves out files of hidden folders.
        path = self._folder / FILES / Path(*(part.lstrip(".") for part in target.relative_to(ROOT).parts))
        page = path if target.suffix == ".md" else path / "index.md" if target.is_dir() else Path(f"{path}.md")
        return self._pages.setdefault(target, page)


if __name__ == "__main__":
    Site(Path(sys.argv[1])).gather()
