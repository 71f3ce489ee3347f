"""A backfill without Spark: the jobs one after the other, and the sort that Spark would do."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pyarrow as pa

from ripple.spark.backfill.adopting import Adopting
from ripple.spark.backfill.fingerprint import fingerprint
from ripple.spark.backfill.given import history_at
from ripple.spark.backfill.history import ORDER, readings_of
from ripple.spark.backfill.live import Live
from ripple.spark.backfill.receipt import Receipt
from ripple.spark.backfill.shelf import Shelf
from ripple.spark.packets import packets_in
from ripple.spark.parcel import Parcel
from ripple.storage.checkpoint.origin import Origin, begin


def backfilled(
    file: str,
    history: str | dict[str, str],
    live: str | dict[str, str],
    store: Path,
    until_ns: int,
    *,
    partitions: int | None = None,
    identity: tuple[str, ...] = (),
    adopts: bool = True,
) -> Receipt:
    """Return the receipt; adopts: whether partitions are let begin from it."""
    parcel = Parcel.of(file, lambda plan: b"", has_markers=True, has_tables=True)
    plan = parcel.plan()
    log, source = Live.at(live, plan, until_ns, partitions), history_at(history, plan, live)
    shelf = Shelf(str(store), plan.name, fingerprint(plan, source, log, identity))
    packets = [
        packet
        for one in readings_of(parcel, source, log, identity, frozenset(), shelf=shelf)
        for packet in one.run()
    ]
    adopting = Adopting(parcel, log, shelf, bool(identity))
    found: list[pa.RecordBatch] = []
    if packets:
        rows = pa.Table.from_batches([packet.rows() for packet in packets])
        rows = rows.sort_by([(name, "ascending") for name in ORDER])
        found += adopting(rows.to_batches(max_chunksize=17))
    parts = [dict(packet.about) for packet in packets_in(found)]
    there = {part["partition"] for part in parts}
    parts += [adopting.part(one, ()) for one in range(log.partitions) if one not in there]
    receipt = Receipt(
        plan.name,
        plan.topology_hash,
        "",
        history,
        live,
        until_ns,
        str(store),
        shelf.backfill,
        identity,
        False,
        tuple(asyncio.run(shelf.all("file-"))),
        tuple(sorted(parts, key=lambda part: int(part["partition"]))),
    )
    if adopts:
        asyncio.run(_adopt(shelf, receipt))
    return receipt


async def _adopt(shelf: Shelf, receipt: Receipt) -> Origin:
    async with shelf.opened() as store:
        origin = Origin(receipt.backfill, receipt.checkpoints)
        return await begin(store, receipt.pipeline, origin)
