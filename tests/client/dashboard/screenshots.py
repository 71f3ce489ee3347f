"""The pictures of the documentation: ``make screenshots``; names of views: only those."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from tests.cli.processes import ROOT
from tests.client.dashboard.browser import browser, page_is_there
from tests.client.dashboard.running import running
from tests.deploy.tools import of_python

PILLOW = "pillow==13.0.0"
FOLDER = ROOT / "docs/images"
SIZE = {"width": 1360, "height": 850}
# How long charts collect lines before they are shown.
WARM_MS = 75_000
SETTLED_MS = 3_500
# How long the lines of an output are drawn, which begin when somebody looks.
DRAWN_MS = 45_000
SQL = """SELECT venue, count(DISTINCT symbol) AS symbols, sum(volume) AS volume
FROM vwap GROUP BY venue ORDER BY volume DESC"""
EXPLORED = {
    "settings": True,
    "group_by": ["venue"],
    "split_by": ["liquid"],
    "columns": ["volume", "trades", "vwap"],
    "aggregates": {"vwap": "avg"},
}
VIEWS = {
    "overview": "overview",
    "pipeline": "pipeline",
    "partitions": "partitions?partition=3",
    "outputs": "outputs?output=vwap&by=volume&down=1",
    "lines": "outputs?output=venue-volume&mode=lines&by=mean",
    "explore": "explore?output=vwap",
    "query": f"query?{urlencode({'sql': SQL})}",
    "letters": "letters",
}


def main() -> None:
    page_is_there()
    sys.path.append(str(of_python(PILLOW)))
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        running(Path(folder), 1500.0) as (_, url),
        browser() as chrome,
    ):
        pages = {scheme: _open(chrome, scheme, url) for scheme in ("light", "dark")}
        pages["light"].wait_for_timeout(WARM_MS)
        for name in sys.argv[1:] or VIEWS:
            for scheme, page in pages.items():
                page.goto(f"{url}#/{VIEWS[name]}")
                _ready(page, name)
                page.wait_for_timeout(SETTLED_MS)
                path = FOLDER / f"dashboard-{name}-{scheme}.png"
                page.screenshot(path=str(path))
                _shrink(path)
                sys.stdout.write(f"{path.relative_to(ROOT)} {path.stat().st_size}\n")


def _ready(page: Any, name: str) -> None:
    """Wait for what takes a while to come."""
    if name == "outputs":
        page.get_by_role("group", name="Rows").wait_for()
    elif name == "lines":
        page.locator(".uplot").first.wait_for()
        page.wait_for_timeout(DRAWN_MS)
    elif name == "pipeline":
        page.get_by_text("wasted").nth(1).wait_for()
    elif name == "explore":
        page.evaluate("kept => localStorage.setItem('explore vwap', kept)", json.dumps(EXPLORED))
        page.reload()
        page.frame_locator("iframe.explore").get_by_text("NYSE").first.wait_for()
    elif name == "query":
        page.get_by_role("button", name="Run query", exact=True).click()
        page.get_by_role("group", name="Result").wait_for()


def _shrink(path: Path) -> None:
    """Leave as many colours as flat areas and letters have: a third of the bytes."""
    from PIL import Image

    full = Image.open(path).convert("RGB")
    method, dither = Image.Quantize.MAXCOVERAGE, Image.Dither.NONE
    full.quantize(200, method=method, dither=dither).save(path, optimize=True)


def _open(chrome: Any, scheme: str, url: str) -> Any:
    page = chrome.new_context(viewport=SIZE, color_scheme=scheme).new_page()
    page.goto(url)
    page.get_by_text("partitions are computed").first.wait_for(timeout=90_000)
    return page


if __name__ == "__main__":
    main()
