"""A run that shows itself while it goes on."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cli.processes import RIPPLE, ROOT, ripple
from tests.client.dashboard.browser import SIZE, browser, page_is_there
from tests.client.dashboard.running import PIPELINE, Feed
from tests.client.dashboard.running import ripple as must
from tests.patience import PATIENCE_S
from tests.services.missing import MissingError, skip

PATIENCE_MS = 1000 * PATIENCE_S


def asked(url: str, what: str) -> Any:
    with urllib.request.urlopen(f"{url}api/{what}", timeout=10) as answer:
        return json.load(answer)


@contextmanager
def shown(folder: Path) -> Iterator[str]:
    """Start a run over trades that keep coming; yield where its dashboard is."""
    must("log", "create", "--schema", "trade", folder / "trades")
    feed = Feed(folder / "trades", 2000.0)
    feed.start()
    said = folder / "said"
    with said.open("w") as to:
        process = subprocess.Popen(
            [
                *(*RIPPLE, "run", str(PIPELINE), "--source", f"log:{folder / 'trades'}"),
                *("--sink", f"vwap=log:{folder / 'vwap'}", "--follow", "--dashboard", "0"),
                *("--checkpoint-dir", str(folder / "state"), "--checkpoint-interval", "1s"),
            ],
            cwd=ROOT,
            stderr=to,
        )
    try:
        until_s = time.monotonic() + PATIENCE_S
        while (found := re.search(r"the dashboard at (http://\S+?/)", said.read_text())) is None:
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < until_s
            time.sleep(0.05)
        yield found[1]
    finally:
        feed.end()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130, said.read_text()


def test_a_run_shows_what_it_does_and_ends_as_before(tmp_path: Path) -> None:
    with shown(tmp_path) as url:
        until_s, snapshot, letters = time.monotonic() + PATIENCE_S, dict[str, Any](), None
        while time.monotonic() < until_s:
            snapshot = asked(url, "snapshot")
            checkpoints = asked(url, "checkpoints")["checkpoints"]
            letters = asked(url, "letters")
            applied = snapshot["totals"]["events"]["applied"]
            if applied > 3000 and checkpoints and letters["total"]:
                break
            time.sleep(0.3)
        assert snapshot["verdict"]["text"] == "market is running here."
        (partition,) = snapshot["partitions"]
        assert partition["events"] > 3000
        assert partition["live"]
        assert [one["name"] for one in snapshot["pipeline"]["nodes"]][:2] == [
            "trades",
            "round-lots",
        ]
        assert checkpoints[0]["partition"] == 0
        assert snapshot["timeline"]
        assert letters["store"] == str(tmp_path / "state")
        assert letters["total"] == sum(one["count"] for one in letters["causes"]) > 0
        assert letters["letters"][0]["input"] == "trades"
        assert asked(url, "letters?partition=1")["total"] == 0


@pytest.mark.services
def test_page_of_a_run_says_which_views_need_a_cluster(tmp_path: Path) -> None:
    """Nothing is asked for in vain, and what goes from stage to stage is not spoken of."""
    try:
        page_is_there()
        with browser() as chrome, shown(tmp_path) as url:
            page, said = chrome.new_context(viewport=SIZE).new_page(), list[str]()
            page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
            page.on("pageerror", lambda error: said.append(f"error: {error}"))
            page.set_default_timeout(PATIENCE_MS)
            page.goto(url)
            for view in ("outputs", "explore", "query"):
                page.goto(f"{url}#/{view}")
                page.get_by_text("the rows of this run are in its sinks").wait_for()
                assert page.get_by_role("heading", level=2).inner_text().lower() == view
            assert page.get_by_role("button", name="Run query", exact=True).count() == 0
            page.goto(f"{url}#/pipeline")
            page.get_by_text("windows held").wait_for()
            assert page.get_by_text("sent ").count() == 0
            page.goto(f"{url}#/letters")
            page.locator("main ol.ranked li").first.wait_for()
            assert said == []
    except MissingError as error:
        skip(error)


def test_a_run_that_ends_soon_shows_nothing(tmp_path: Path) -> None:
    refused = ripple("run", PIPELINE, "--source", "synthetic:10", "--sink", "vwap=-", "--dashboard")
    assert refused.code == 1
    assert "--dashboard needs --checkpoint-dir" in refused.err


def test_a_port_that_is_taken_is_named_with_its_flag(tmp_path: Path) -> None:
    must("log", "create", "--schema", "trade", tmp_path / "trades")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        refused = ripple(
            *("run", PIPELINE, "--source", f"log:{tmp_path / 'trades'}", "--sink", "vwap=-"),
            *("--checkpoint-dir", tmp_path / "state", "--follow", "--dashboard", port),
        )
    assert refused.code == 1
    assert f"--dashboard: cannot listen on 127.0.0.1:{port}: Address" in refused.err
    assert "--dashboard PORT" in refused.err
