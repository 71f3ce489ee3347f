"""A partition's life in small: ``python -m tests.recovery.mortal FOLDER HOW``.

It reads the topic ``ticks`` in FOLDER through a pipeline that dies of one record, HOW the test
likes. Its state is gone with the process; the rows are printed when the topic's end is reached.
"""

from __future__ import annotations

import os
import signal
import sys

import numpy as np
import pyarrow as pa

import ripple as rp
from ripple.connectors.base import Marker
from ripple.connectors.log_source import LogSource
from ripple.engine import Engine
from ripple.log import Topic
from ripple.plan import Plan
from ripple.recovery.dead_letters import DeadLetterLog, letters_path
from ripple.recovery.in_flight import InFlight, in_flight_path, part_of, set_aside
from ripple.recovery.letter import refused
from ripple.world import LiveClock, LiveDisk

POISON = -1
BATCH_ROWS = 10


@rp.record(version=1)
class Tick:
    symbol: str
    size: int
    at_ns: int


def plan_of(how: str) -> Plan:
    def fragile(columns: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        if POISON in columns["size"]:
            if how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if how == "exit":
                os._exit(3)
            raise ValueError(how)
        return columns

    return (
        rp.Pipeline("mortal")
        .source("ticks", Tick, time="at_ns")
        .derive("check", share=100 // rp.col("size"))
        .map("fragile", fragile, into=Tick, batch=True)
        .partition("symbols", key="symbol")
        .fold("totals", size=rp.sum("size"), ticks=rp.count())
        .sink("sizes")
        .plan()
    )


def live(folder: str, how: str) -> pa.RecordBatch:
    """Apply the whole topic, as a life does that finds no checkpoint; return the rows."""
    disk = LiveDisk(folder)
    plan = plan_of(how)
    name, version = plan.source.name, plan.topology_hash
    engine = Engine(plan)
    in_flight = InFlight(disk, in_flight_path("mortal"), version=version)
    letters = DeadLetterLog(
        disk, letters_path("mortal"), pipeline="mortal", version=version, clock=LiveClock()
    )
    letters.begin({name: 0})
    source = LogSource(Topic.open(disk, "ticks"), 0, name=name, batch_rows=BATCH_ROWS)
    rows = []
    for given in source.batches():
        assert not isinstance(given, Marker)
        batch = set_aside(given, in_flight.quarantined(name))
        rejected = list(batch.rejected)
        for piece in in_flight.pieces(name, batch.first_offset, batch.next_offset):
            in_flight.begin(name, piece.first_offset, piece.next_offset)
            part = part_of(batch, piece)
            failed = engine.apply(name, part.records, part.next_offset, part.offsets())
            rejected += refused(part, failed)
        in_flight.stabilizing(engine.cut)
        rows.append(engine.stabilize().outputs["sizes"])
        in_flight.idle()
        letters.write(name, rejected, given)
        letters.sync()
    in_flight.close()
    letters.close()
    return rows[-1]


if __name__ == "__main__":
    sys.stdout.write(f"{live(*sys.argv[1:]).to_pylist()}\n")
