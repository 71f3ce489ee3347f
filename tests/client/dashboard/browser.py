"""A real browser without a screen: Debian's Chromium, driven by playwright of PyPI."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ripple.client.dashboard.assets import fetch as fetch_assets
from ripple.client.dashboard.assets import install, missing
from tests.deploy.tools import of_python
from tests.services.cache import fetch, kept, needed
from tests.services.missing import MissingError

PLAYWRIGHT = "playwright==1.65.2"
# What the page asks for first is among its fonts, so that pictures are alike everywhere.
PACKAGES = ("chromium", "fonts-inter", "fonts-jetbrains-mono")
SIZE = {"width": 1440, "height": 900}


def chromium() -> str:
    """Return where Chromium is; Debian's package is installed where we may. Raises MissingError."""
    found = shutil.which("chromium") or shutil.which("google-chrome")
    if found is not None:
        return found
    apt = needed("apt-get", "Chromium")
    if os.geteuid() != 0:
        raise MissingError(f"Chromium is not installed: apt-get install {' '.join(PACKAGES)}")
    command = [apt, "install", "--yes", "--quiet", "--no-install-recommends", *PACKAGES]
    fetch([apt, "update", "--quiet"], Path.cwd(), "the list of Debian's packages")
    fetch(command, Path.cwd(), "Chromium")
    return needed("chromium", "the browser")


def axe() -> str:
    """Return the program that looks for what keeps people out of a page. Raises MissingError."""

    def get(folder: Path) -> None:
        install(needed("npm", "axe-core"), folder)

    return (kept("axe-core-4.14.1", get) / "node_modules/axe-core/axe.min.js").read_text()


def page_is_there() -> None:
    """Fetch what the page takes from others. Raises MissingError."""
    if missing():
        needed("npm", "the dashboard's page")
        fetch_assets()


@contextmanager
def browser() -> Iterator[Any]:
    """Start one. Raises MissingError."""
    program, packages = chromium(), of_python(PLAYWRIGHT)
    sys.path.append(str(packages))
    try:
        from playwright.sync_api import sync_playwright

        with sync_playwright() as started:
            running = started.chromium.launch(
                executable_path=program, args=["--no-sandbox", "--force-color-profile=srgb"]
            )
            try:
                yield running
            finally:
                running.close()
    finally:
        sys.path.remove(str(packages))
