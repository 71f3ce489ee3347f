"""A run that shows itself while it goes on."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Any

from tests.cli.processes import RIPPLE, ROOT, ripple
from tests.dashboard.running import PIPELINE, Feed
from tests.dashboard.running import ripple as must
from tests.patience import PATIENCE_S


def asked(url: str, what: str) -> Any:
    with urllib.request.urlopen(f"{url}api/{what}", timeout=10) as answer:
        return json.load(answer)


def test_a_run_shows_what_it_does_and_ends_as_before(tmp_path: Path) -> None:
    must("log", "create", tmp_path / "trades")
    feed = Feed(tmp_path / "trades", 2000.0)
    feed.start()
    said = tmp_path / "said"
    with said.open("w") as to:
        process = subprocess.Popen(
            [
                *(*RIPPLE, "run", str(PIPELINE), "--source", f"log:{tmp_path / 'trades'}"),
                *("--sink", f"vwap=log:{tmp_path / 'vwap'}", "--follow", "--dashboard", "0"),
                *("--checkpoint-dir", str(tmp_path / "state"), "--checkpoint-interval", "1s"),
            ],
            cwd=ROOT,
            stderr=to,
        )
    try:
        until_s = time.monotonic() + PATIENCE_S
        while (found := re.search(r"the dashboard at (http://\S+)", said.read_text())) is None:
            assert process.poll() is None, said.read_text()
            assert time.monotonic() < until_s
            time.sleep(0.05)
        url, snapshot = found[1], {}
        while time.monotonic() < until_s:
            snapshot = asked(url, "snapshot")
            checkpoints = asked(url, "checkpoints")["checkpoints"]
            if snapshot["totals"]["events"]["applied"] > 3000 and checkpoints:
                break
            time.sleep(0.3)
        assert snapshot["verdict"]["text"] == "market is computed here."
        (partition,) = snapshot["partitions"]
        assert partition["events"] > 3000
        assert partition["live"]
        assert [one["name"] for one in snapshot["pipeline"]["nodes"]][:2] == [
            "trades",
            "round-lots",
        ]
        assert checkpoints[0]["partition"] == 0
        assert snapshot["timeline"]
    finally:
        feed.end()
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 130, said.read_text()


def test_a_run_that_ends_soon_shows_nothing(tmp_path: Path) -> None:
    refused = ripple("run", PIPELINE, "--source", "synthetic:10", "--sink", "vwap=-", "--dashboard")
    assert refused.code == 1
    assert "--dashboard needs --checkpoint-dir" in refused.err
