"""Logs of trades for backfills."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.csv

from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.pipeline.file import load_plan
from ripple.spark.backfill.receipt import Receipt
from tests.cli.processes import RIPPLE, run
from tests.spark.backfilled import backfilled
from tests.spark.logs import topic_of

SOURCE = """
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int = rp.field(gt=0)
    t: rp.Timestamp

def trades(name):
    return rp.Pipeline(name).source("trades", Trade, time="t", out_of_order="2s").partition(
        "by-symbol", key="symbol")

ends = dict(vwap=rp.vwap("price", "size"), n=rp.count(), first=rp.first("price"),
            last=rp.last("price"), middle=rp.median("price"))
running = trades("running").fold("rows", **ends).sink("out")
minutes = trades("minutes").window("m", rp.Tumbling("60s"), lateness="5s").fold(
    "rows", **ends).sink("out")
sessions = trades("sessions").window("s", rp.Session("3s"), lateness="5s").fold(
    "rows", **ends).sink("out")
total = trades("total").fold("rows", **ends).partition("all", key=()).fold(
    "total", volume=rp.sum("n"), vwap=rp.mean("vwap")).sink("out")
counted = trades("counted").window("m", rp.Tumbling("60s"), trigger=rp.OnCount(3)).fold(
    "rows", n=rp.count()).sink("out")
"""
SECOND = 1_000_000_000
BEGIN = 1_700_000_000 * SECOND


def trades(count: int = 900) -> list[dict[str, Any]]:
    """Return trades whose times rise, many of one time, some a second late."""
    chance, now, found = Random(5), BEGIN, []
    for _ in range(count):
        now += chance.choice((0, 0, SECOND // 2))
        found.append(
            {
                "symbol": f"S{chance.randrange(7)}",
                "price": float(chance.randrange(100, 200)),
                "size": chance.randrange(1, 9),
                "t": now - chance.choice((0, 0, 0, SECOND)),
            }
        )
    return found


TRADES = trades()
UNTIL = TRADES[600]["t"] + 2 * SECOND


class Place:
    """A folder with a pipeline, the whole log, and a log and files that meet at UNTIL."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self.folder = folder
        self.file = folder / "p.py"
        self.file.write_text(SOURCE)
        plan = load_plan(f"{self.file}:running")
        self.schema = pa.schema(arrow_fields(plan.source.fields))
        history = [one for one in TRADES if one["t"] < UNTIL]
        live = [one for one in TRADES[500:] if one["t"] >= UNTIL]
        overlap = [one for one in TRADES[500:] if one["t"] < UNTIL]
        ordered = sorted(history, key=lambda one: int(one["t"]))
        self.write({"a.csv": ordered[300:], "b.csv": ordered[:120], "c.csv": ordered[120:300]})
        key = ("symbol",)
        self.whole = topic_of(
            folder / "whole", plan, ordered + live, partitions=partitions, key=key
        )
        self.live = topic_of(folder / "live", plan, overlap + live, partitions=partitions, key=key)

    def write(self, files: dict[str, list[dict[str, Any]]]) -> None:
        (self.folder / "history").mkdir(exist_ok=True)
        for name, rows in files.items():
            table = pa.Table.from_pylist(rows, self.schema)
            options = pa.csv.WriteOptions(include_header=False)
            pa.csv.write_csv(table, self.folder / "history" / name, options)

    def backfilled(self, name: str, until_ns: int = UNTIL, **options: Any) -> Receipt:
        history = f"csv:{self.folder}/history"
        return backfilled(
            f"{self.file}:{name}", history, self.live, self.folder / "store", until_ns, **options
        )

    def digest(self, name: str, source: str, store: str) -> str:
        sink = f"log:{self.folder}/out-{store}/x"
        ended = run(
            RIPPLE, "run", f"{self.file}:{name}", "--source", source, "--sink", sink,
            "--checkpoint-dir", self.folder / store,
        )  # fmt: skip
        assert ended.code == 0, ended.err
        (line,) = [one for one in ended.err.splitlines() if one.startswith("Digest")]
        shown = run(RIPPLE, "log", "table", sink)
        return "\n".join([line, *sorted(shown.out.splitlines())])
