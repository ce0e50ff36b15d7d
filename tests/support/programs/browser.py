"""A real browser for tests of pages: the system's Chromium or Chrome, else Playwright's own.

PYTHONPATH=e2e:tests python -m support.programs.browser    install one: with apt as root, or with Playwright
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from cluster import ambient

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Chromium loads the lists below its address bar with each window, also without a screen: half of the cost of a page.
UNSEEN = ("WebUIOmniboxPopup", "WebUIOmniboxAimPopup")
# Those that Playwright disables: Chromium reads the last list alone.
DISABLED = (
    "AimEnabled",
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "LensOverlay",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)
ARGUMENTS = ("--disable-gpu", f"--disable-features={','.join((*DISABLED, *UNSEEN))}")
REMEDY = "no Chromium on this machine; run `make unit`, or install one"


def executable() -> Path | None:
    """Return the program of a browser, or None."""
    for name in NAMES:
        if path := shutil.which(name):
            return Path(path)
    folder = Path(ambient.environment().get("PLAYWRIGHT_BROWSERS_PATH") or ambient.home() / ".cache/ms-playwright")
    return next(iter(sorted(folder.glob("chromium-*/chrome-linux*/chrome"))), None)


def install() -> Path | None:
    """Install a browser where there is none, in minutes; return None if no way works."""
    if browser := executable():
        return browser
    ways = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    if os.geteuid() == 0 and shutil.which("apt-get"):
        ways = [["apt-get", "install", "-y", "-q", "--no-install-recommends", "chromium"], *ways]
    for command in ways:
        subprocess.run(command, check=False)
        if browser := executable():
            return browser
    return None


if __name__ == "__main__":
    print(install() or REMEDY)
