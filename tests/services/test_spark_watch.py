"""A watch as a process of its own, beside a run that goes on writing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path

from ripple.model.pipeline.file import load_plan
from tests import patience
from tests.patience import PATIENCE_S
from tests.services.family import below, until_gone
from tests.services.package import ROOT
from tests.services.server import free_port
from tests.services.test_spark import file, pytestmark, trades
from tests.services.test_spark_validate import falsified
from tests.spark.logs import append, topic_of

__all__ = ["file", "pytestmark"]


def begun(folder: Path, name: str, *words: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    with (folder / name).open("wb") as said:
        command = [sys.executable, "-m", "ripple.cli.main", *words]
        return subprocess.Popen(command, env=environment, stdout=said, stderr=said)


def until(there: Callable[[], object], said: Path) -> None:
    patience.until(there, said.read_text, 2 * PATIENCE_S)  # of all that Spark is


def test_a_watch_sees_what_a_live_run_writes_and_ends_in_a_line(file: Path, tmp_path: Path) -> None:
    whole, given, port = f"{file}:whole", trades(1000), free_port()
    place = topic_of(tmp_path / "lg", load_plan(whole), given[:500], partitions=2, key=("symbol",))
    out, said = f"log:{tmp_path}/lg/out", tmp_path / "watch"
    kept = ("--checkpoint-dir", f"{tmp_path}/kept", "--commit-interval", "50ms")
    live = begun(tmp_path, "run", "run", whole, "--source", place, "--sink", out, *kept, "-f")
    try:
        until(lambda: list(tmp_path.glob("lg/out/*/*.log")), tmp_path / "run")
        watching = ("spark", "validate", whole, "--source", place, "--against", out, "--watch",
                    "--master", "local[1]", "--pause", "200ms", "--sample", "100%")  # fmt: skip
        watch = begun(tmp_path, "watch", *watching, "--metrics", f":{port}")
        until(lambda: said.read_text().count("all equal") > 1, said)
        append(place, whole, given[500:])
        rounds = said.read_text().count("all equal")
        until(lambda: said.read_text().count("all equal") > rounds + 3, said)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
            page = answer.read().decode()
        assert 'ripple_validate_differences_total{pipeline="trades"} 0.0' in page
        family = below(watch.pid)
        watch.terminate()
        assert watch.wait(PATIENCE_S) == 0, said.read_text()
    finally:
        live.send_signal(signal.SIGINT)
        assert live.wait(PATIENCE_S) == 128 + signal.SIGINT
    until_gone(family, PATIENCE_S)
    *lines, last = said.read_text().splitlines()
    assert all(re.search(r": part 1 of 1: \d+ compared, all equal$", line) for line in lines), lines
    assert last == "ripple: stopped by SIGTERM"
    row = falsified(out, "top")
    watch = begun(tmp_path, "watch", *watching, "--rounds", "1")
    assert watch.wait(2 * PATIENCE_S) == 1, said.read_text()
    assert f"key ({row['symbol']!r},)" in said.read_text()
    assert "1 differ" in said.read_text()
