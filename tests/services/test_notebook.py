"""Ripple in a real notebook: Jupyter, a kernel, and a browser without a screen."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.client.dashboard.browser import browser
from tests.deploy.tools import of_python
from tests.patience import PATIENCE_S, until
from tests.services.missing import MissingError, skip
from tests.services.server import free_port

pytestmark = pytest.mark.services

NEEDED = ("notebook==7.6.5", "anywidget==0.11.0")
TABLE = """import threading
import ripple as rp

@rp.record
class Trade:
    symbol: str
    price: float
    at: rp.Timestamp

pipeline = (
    rp.Pipeline("prices").source("trades", Trade)
    .partition("by-symbol", key="symbol").fold("last", price=rp.last("price")).sink("out")
)
table = rp.LiveTable(line="price")
stream = rp.Stream(Trade)
running = threading.Thread(target=lambda: rp.run(pipeline, source=stream, sink=table))
running.start()
table"""
PUSHED = """for at, (symbol, price) in enumerate([("AAPL", 150.25), ("<MSFT>", 410.0)]):
    stream.push({"symbol": symbol, "price": price, "at": at})"""
CHANGED = """stream.push({"symbol": "AAPL", "price": 151.5, "at": 3})"""
ENDED = """stream.close()
running.join()"""
LOOKS = 200  # at a cell, a tenth of a second apart, before its key counts as lost


def test_a_live_table_shows_rows_as_they_change(tmp_path: Path) -> None:
    try:
        packages = [of_python(name) for name in NEEDED]
        with (
            jupyter(tmp_path, packages, [TABLE, PUSHED, CHANGED, ENDED]) as url,
            browser() as chrome,
        ):
            page = chrome.new_page()
            page.set_default_timeout(PATIENCE_S * 1000)
            page.goto(url)
            page.locator(".jp-CodeCell").nth(3).wait_for()
            page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()
            run_cell(page, 0)
            run_cell(page, 1)
            table = page.locator(".ripple-live table")
            for price in ("150.25", "410"):
                table.get_by_text(price, exact=True).wait_for()
            assert table.locator("td").all_inner_texts() == ["<MSFT>", "410", "AAPL", "150.25"]
            run_cell(page, 2)
            table.get_by_text("151.5", exact=True).wait_for()
            assert page.locator(".ripple-live polyline").count() == 2
            run_cell(page, 3)
            page.get_by_text("2 rows, 3 changes, ended").wait_for()
    except MissingError as error:
        skip(error)


def run_cell(page: Any, number: int) -> None:
    """Select a cell, run it, and wait until it has run.

    A key is lost that comes before the editor listens, or before the kernel is connected: the cell
    has no number and no star then, and is asked again.
    """
    cell = page.locator(".jp-CodeCell").nth(number)
    prompt = cell.locator(".jp-InputPrompt")

    def is_asked() -> bool:
        cell.locator(".cm-content").click()
        page.keyboard.press("Shift+Enter")
        for _ in range(LOOKS):
            if re.search(r"\[(\*|\d+)\]", prompt.inner_text()):
                return True
            page.wait_for_timeout(100)
        return False

    until(is_asked, lambda: page.locator(".jp-Notebook").inner_text())
    prompt.get_by_text(re.compile(r"\[\d+\]:")).wait_for()


@contextmanager
def jupyter(folder: Path, packages: list[Path], cells: list[str]) -> Iterator[str]:
    """Serve a notebook of these cells, with a kernel that has Ripple."""
    notebook = {
        "nbformat": 4, "nbformat_minor": 5,
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python"}},
        "cells": [
            {"id": f"cell-{at}", "cell_type": "code", "metadata": {}, "execution_count": None,
             "outputs": [], "source": cell}
            for at, cell in enumerate(cells)
        ],
    }  # fmt: skip
    (folder / "live.ipynb").write_text(json.dumps(notebook))
    port = free_port()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, packages)),
        "JUPYTER_PATH": os.pathsep.join(str(one / "share/jupyter") for one in packages),
        "JUPYTERLAB_DIR": str(packages[0] / "share/jupyter/lab"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_DATA_DIR": str(folder / "data"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "IPYTHONDIR": str(folder / "ipython"),
    }
    command = [
        sys.executable, "-m", "notebook", "--no-browser", "--allow-root", "--ip=127.0.0.1",
        f"--port={port}", "--IdentityProvider.token=secret", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    log = folder / "jupyter.log"
    with log.open("w") as told:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=told, stderr=told)
        try:
            until(lambda: _answers(port) or process.poll() is not None, log.read_text)
            assert process.poll() is None, log.read_text()
            yield f"http://127.0.0.1:{port}/notebooks/live.ipynb?token=secret"
        finally:
            process.terminate()
            process.wait()


def _answers(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api", timeout=5):
            return True
    except OSError:
        return False
