"""Pages in a browser that may not go elsewhere, fail or exclude anyone.

A page is checked when its test ends: errors of the console, requests to other hosts, and violations of WCAG by axe.
Interfaces of this machine may change meanwhile, as clusters run beside: Chromium then ends requests, also to 127.0.0.1.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict
from urllib.parse import urlsplit

from playwright.async_api import Error

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, ConsoleMessage, Page, Route

AXE = Path(__file__).parents[3] / "view/web/node_modules/axe-core/axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]

WIDER_FONT = """
const sheet = new CSSStyleSheet();
sheet.replaceSync("* { letter-spacing: .1em !important }");
document.adoptedStyleSheets.push(sheet);
"""
BEYOND_THE_SCREEN = """
() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  const all = [...document.body.querySelectorAll("*")];
  const contents = (each) => each.getBoundingClientRect().left + each.scrollWidth;
  const right = (each) => Math.max(each.getBoundingClientRect().right, contents(each));
  const beyond = all.filter((each) => right(each) > width + .5).reverse();
  return [`${document.documentElement.scrollWidth} > ${width}`, ...beyond.map((each) => each.outerHTML.slice(0, 120))];
}
"""

NETWORK_CHANGED = "net::ERR_NETWORK_CHANGED"
DEADLINE_S = 120
"""Time for anything that a page shows: other tests may have the processor meanwhile."""
SHOWN_CHARS = 2000
TRIES = 5

ColorScheme = Literal["light", "dark"]


class _Violation(TypedDict):
    id: str
    help: str
    nodes: list[dict[str, Any]]


async def visit(page: Page, url: str) -> None:
    """Open a URL, again if the network changes meanwhile."""
    for _ in range(TRIES):
        if await _has_opened(page, url):
            return
    await page.goto(url)


async def _has_opened(page: Page, url: str) -> bool:
    try:
        await page.goto(url)
    except Error as error:
        if NETWORK_CHANGED not in error.message:
            raise
        return False
    return True


async def _let_pass(route: Route) -> None:
    """Send a request on, unless Playwright has: it does so when a route of a test expires at that moment."""
    try:
        await route.continue_()
    except Error as failure:
        if "already handled" not in failure.message:
            raise


class CheckedPages:
    """Opens pages of servers on this machine; `check` fails if one of them did something wrong."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[BrowserContext] = []
        self._wrong: list[str] = []
        self._lost: list[str] = []

    async def open(self, url: str, *, width: int = 1000, scheme: ColorScheme = "light") -> Page:
        """Open a URL in a context of its own, without the network but for its host."""
        context = await self._browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce", locale="en-GB"
        )
        context.set_default_timeout(1000 * DEADLINE_S)
        self._contexts.append(context)
        host = urlsplit(url).netloc

        async def decide(route: Route) -> None:
            if urlsplit(route.request.url).netloc == host:
                await _let_pass(route)
                return
            self._wrong.append(f"request to another host: {route.request.url}")
            await route.abort()

        await context.route("**/*", decide)
        page = await context.new_page()
        page.on("pageerror", lambda error: self._wrong.append(f"exception: {error.stack or error.message}"))
        page.on("console", self._check_message)
        page.on("requestfailed", lambda request: self._lost.append(f"{request.url}: {request.failure}"))
        await visit(page, url)
        return page

    def _check_message(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and NETWORK_CHANGED not in message.text:
            self._wrong.append(f"console: {message.text} at {message.location}")

    def expect_errors(self) -> list[str]:
        """Return the errors so far and forget them: for tests that cause some."""
        errors, self._wrong = self._wrong, []
        return errors

    async def check_access(self, page: Page) -> None:
        """Fail if the page, as it is now, violates a rule of WCAG 2.2 AA."""
        await page.evaluate(AXE.read_text())
        options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
        violations: list[_Violation] = await page.evaluate(f"axe.run({json.dumps(options)}).then((r) => r.violations)")
        assert not violations, "\n".join(
            f"{each['id']}: {each['help']}\n  {node['html']}\n  {node.get('failureSummary', '')}"
            for each in violations
            for node in each["nodes"][:3]
        )

    async def check_width(self, page: Page) -> None:
        """Fail if the page scrolls sideways, in this machine's font or in a wider one."""
        for prepare in ("() => {}", WIDER_FONT):
            await page.evaluate(prepare)
            assert not (beyond := await page.evaluate(BEYOND_THE_SCREEN)), "\n".join(beyond[:12])

    async def close(self, page: Page) -> None:
        """Check what everyone must be able to read and reach on a page, and close it."""
        await self.check_access(page)
        await self.check_width(page)
        await page.close()

    async def check(self) -> None:
        """Check all open pages, and close them."""
        try:
            for page in (page for context in self._contexts for page in context.pages):
                print(page.url, (await page.inner_text("body"))[:SHOWN_CHARS], sep="\n")
            print(*self._lost, sep="\n")  # pytest shows both after a failure
            assert not self._wrong, "\n".join(self._wrong)
            for context in self._contexts:
                for page in context.pages:
                    await self.close(page)
        finally:
            for context in self._contexts:
                await context.close()
