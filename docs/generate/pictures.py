"""Make the pictures of the documentation from a real run: `make pictures`.

The run is that of the first tutorial: its program trains, is killed, and trains again. The view is opened in a browser
without a network, in a light and a dark form; commands are drawn as they print in a terminal.
"""

import asyncio
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal

from mldiagnostics_view.server import serving
from mldiagnostics_view.settings import Settings
from playwright.async_api import Page, ViewportSize, async_playwright
from rich.console import Console
from rich.terminal_theme import DEFAULT_TERMINAL_THEME, DIMMED_MONOKAI, TerminalTheme
from rich.text import Text
from support.programs.browser import ARGUMENTS, REMEDY, executable
from support.programs.documents import blocks
from support.programs.xprof_server import xprof_server

DOCS: Final = Path(__file__).parents[1]
PICTURES: Final = DOCS / "pictures"
TUTORIAL: Final = DOCS / "tutorials/laptop.md"
RUN: Final = "first"
DIRECTORY: Final = "first-run"
SESSION: Final = "a0-s100"
SIZE: Final = ViewportSize(width=1000, height=640)
COLUMNS: Final = 110
PARTS: Final = {
    "curves": ("nav.tabs a[data-part=curves]", "figure.curve canvas"),
    "goodput": ("nav.tabs a[data-part=goodput]", "text=By cause"),
    "verdict": (f"a:has-text('{SESSION}')", "ul.findings"),
}
"""Parts of the page of a run: the link to each, and an element that it has once it is complete."""
COMMANDS: Final = {"goodput": ("goodput", RUN), "diagnose": ("diagnose", RUN)}
Form = Literal["light", "dark"]
THEMES: Final[dict[Form, TerminalTheme]] = {"light": DEFAULT_TERMINAL_THEME, "dark": DIMMED_MONOKAI}
_FONT: Final = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Rich's fonts come from the network; a picture uses those of its reader."""


def main() -> None:
    """Train, then draw."""
    browser = executable()
    if browser is None:
        sys.exit(REMEDY)
    with tempfile.TemporaryDirectory(prefix="pictures-") as name:
        folder = Path(name)
        train(folder)
        for command, arguments in COMMANDS.items():
            draw_terminal(command, arguments, folder)
        asyncio.run(draw_pages(folder / "mldiagnostics", browser))
        with xprof_server("--logdir", str(folder / "mldiagnostics" / DIRECTORY)) as address:
            asyncio.run(draw_xprof(address, browser))


def train(folder: Path) -> None:
    """Run the program of the tutorial twice; the first time it is killed."""
    (program,) = (block for block in blocks(TUTORIAL.read_text()) if block.title == "train.py")
    (folder / program.title).write_text(program.text)
    for variables in ({"CRASH_AT": "96"}, {}):
        environment = {**os.environ, **variables, "JAX_PLATFORMS": "cpu"}
        subprocess.run([sys.executable, program.title], cwd=folder, env=environment, check=not variables)


def draw_terminal(name: str, arguments: tuple[str, ...], folder: Path) -> None:
    """Draw a command of `mldiag` with its output."""
    shown = subprocess.run(
        [Path(sys.executable).with_name("mldiag"), *arguments],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(COLUMNS), "FORCE_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for form, theme in THEMES.items():
        console = Console(record=True, width=COLUMNS, file=io.StringIO())
        console.print(f"$ mldiag {' '.join(arguments)}", style="bold")
        console.print(Text.from_ansi(shown))
        drawn = console.export_svg(title="mldiag", theme=theme)
        (PICTURES / f"terminal-{name}-{form}.svg").write_text(_FONT.sub("", drawn))


async def draw_pages(root: Path, browser: Path) -> None:
    """Draw the pages of the view."""
    async with serving(Settings(roots=(str(root),), port=0)) as url:
        for form in THEMES:
            async with opened(browser, form) as page:
                await page.goto(url)
                await page.wait_for_selector("tbody a")
                await page.screenshot(path=PICTURES / f"view-runs-{form}.png")
                await page.locator("tbody a").first.click()
                for part, (link, content) in PARTS.items():
                    await page.locator(link).first.click()
                    await page.wait_for_selector(content)
                    await page.screenshot(path=PICTURES / f"view-{part}-{form}.png")


async def draw_xprof(address: str, browser: Path) -> None:
    """Draw the profile in XProf, which has a light form only."""
    async with opened(browser, "light") as page:
        async with page.expect_response(lambda response: "resolution=" in response.url):  # the events that it draws
            await page.goto(f"{address}/?run={SESSION}&tool=trace_viewer@")
        await page.wait_for_load_state("networkidle")
        await page.screenshot(path=PICTURES / "xprof.png")


@asynccontextmanager
async def opened(browser: Path, form: Form) -> AsyncIterator[Page]:
    """Open a page of a browser, in a light or dark form."""
    async with async_playwright() as playwright:
        program = await playwright.chromium.launch(executable_path=browser, args=ARGUMENTS)
        try:
            context = await program.new_context(viewport=SIZE, color_scheme=form)
            yield await context.new_page()
        finally:
            await program.close()


if __name__ == "__main__":
    main()
