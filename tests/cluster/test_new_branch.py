"""A cluster of real processes that is started again with a branch more."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.processes import ripple as command
from tests.cluster.cluster import ripple, table

pytestmark = pytest.mark.services

CODE = """
import ripple as rp

trades = rp.Pipeline("shop").source("trades", rp.Tick)
keyed = trades.partition("by-time", key="timestamp_ns")
pipeline = kept = keyed.fold("kept", n=rp.count()).sink("kept-out")
"""
MORE = """
bars = keyed.window("w", rp.Tumbling("1s")).fold("bars", n=rp.count()).sink("bars-out")
some = trades.filter("some", rp.col("timestamp_ns") % 2 == 0).sink("some-out")
pipeline = kept.also(bars).also(some)
"""
BEFORE, AFTER = ("kept-out",), ("kept-out", "bars-out", "some-out")


def test_it_has_the_tables_of_a_run_that_went_the_same_way(tmp_path: Path) -> None:
    file, log = tmp_path / "shop.py", tmp_path / "trades"
    file.write_text(CODE)
    given = ("--schema", file, "--partitions", 4, "--key", "timestamp_ns")
    ripple("log", "create", log, *given)
    flags = ("--workers", 2, "--until-end", "--free-ports")
    for code, outputs, first in ((CODE, BEFORE, 0), (CODE + MORE, AFTER, 2_000)):
        file.write_text(code)
        times = "".join(f"{(at // 3) * 7_000_000}\n" for at in range(first, first + 2_000))
        assert command("log", "append", log, "-", given=times).code == 0
        for place in ("many", "one"):
            sinks = [f"--sink={one}=log:{tmp_path / place / one}" for one in outputs]
            into = (file, "--source", f"log:{log}", *sinks)
            if place == "one":
                ripple("run", *into, "--checkpoint-dir", tmp_path / "state")
            else:
                ripple("cluster", "up", *into, "--dir", tmp_path / "dir", *flags)
    for output in AFTER:
        assert table(tmp_path / "many" / output).rows
        assert table(tmp_path / "many" / output) == table(tmp_path / "one" / output), output
