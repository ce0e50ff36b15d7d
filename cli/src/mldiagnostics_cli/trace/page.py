"""A page that holds a trace and hands it to Perfetto; pure.

Protocol: https://perfetto.dev/docs/visualization/deep-linking-to-perfetto-ui: the page sends `PING` to the window until
it answers `PONG`, then the trace. The trace stays in the browser.
"""

from __future__ import annotations

from base64 import b64encode
from html import escape
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


VIEWER: Final = "https://ui.perfetto.dev"

_HEAD: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1rem/1.5 system-ui, sans-serif; margin: 3rem auto; max-width: 40rem; padding: 0 1rem; }}
h1 {{ font-size: 1.3rem; overflow-wrap: anywhere; }}
button {{ font: inherit; padding: .4rem 1rem; }}
</style></head><body><main>
<h1>{title}</h1>
<p>{summary}</p>
<p><button id="open" type="button">Open in Perfetto</button> <button id="save" type="button">Save the trace</button></p>
<p id="state" role="status"></p>
</main><script type="application/gzip" id="trace">"""

_FOOT: Final = """</script><script>
"use strict";
const viewer = "{viewer}", title = document.title, state = document.getElementById("state");
const bytes = Uint8Array.from(atob(document.getElementById("trace").textContent), (sign) => sign.charCodeAt(0));
document.getElementById("open").addEventListener("click", () => {{
  const opened = open(viewer);
  if (!opened) {{ state.textContent = "The browser blocked the window: allow windows of this page."; return; }}
  state.textContent = "Waiting for " + viewer + " …";
  const asking = setInterval(() => opened.postMessage("PING", viewer), 200);
  addEventListener("message", function answered(event) {{
    if (event.source !== opened || event.data !== "PONG") return;
    removeEventListener("message", answered);
    clearInterval(asking);
    opened.postMessage({{ perfetto: {{ buffer: bytes.slice().buffer, title, fileName: title + ".json.gz" }} }}, viewer);
    state.textContent = "The trace is in the window of Perfetto. It is not uploaded.";
  }});
}});
document.getElementById("save").addEventListener("click", () => {{
  const url = URL.createObjectURL(new Blob([bytes], {{ type: "application/gzip" }}));
  Object.assign(document.createElement("a"), {{ href: url, download: title + ".json.gz" }}).click();
  setTimeout(() => URL.revokeObjectURL(url), 60000);
}});
</script></body></html>
"""


def page(title: str, compressed: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the page of a trace.

    Args:
        title: Name of the trace.
        compressed: The trace with gzip, in pieces.
    """
    summary = f"A trace of logs and runs, inside this page. The button opens {VIEWER}, which shows it in this browser."
    yield _HEAD.format(title=escape(title), summary=summary).encode()
    rest = b""
    for piece in compressed:
        whole = rest + piece
        end = len(whole) - len(whole) % 3  # base64 of pieces can be joined only without padding
        rest = whole[end:]
        yield b64encode(whole[:end])
    yield b64encode(rest)
    yield _FOOT.format(viewer=VIEWER).encode()
