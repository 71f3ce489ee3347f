"""Checkpoints and dead letters of a store, for the page; read-only."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ripple.client.dashboard.contract import AskedError
from ripple.connectors.dead_letter import text_of
from ripple.storage.checkpoint import CheckpointError, Checkpoints, partitions
from ripple.storage.fenced import DamagedError
from ripple.task.dead_letters.log import letters_in
from ripple.task.dead_letters.queue import with_letters

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from ripple.client.dashboard.contract import Values
    from ripple.connectors.letter import Letter
    from ripple.storage.checkpoint import Checkpoint
    from ripple.task.dead_letters.log import Found
    from ripple.world.ports import ObjectStore

LETTERS_SHOWN_MAX = 200
DAMAGE_SHOWN_MAX = 20
RAW_CHARACTERS_MAX = 500


async def checkpoints_of(store: ObjectStore, now_ns: int) -> Values:
    """Return the checkpoints in effect, of every partition, newest first."""
    rows = []
    for pipeline, partition in await partitions(store):
        try:
            listed = await Checkpoints(store, pipeline, partition).list()
        except (CheckpointError, DamagedError) as error:
            rows.append({"pipeline": pipeline, "partition": partition, "damage": str(error)})
            continue
        by_name = {one.name: one for one in listed}
        for position, one in enumerate(listed):
            rows.append(_checkpoint(one, by_name, now_ns) | {"is_newest": position == 0})
    return {"checkpoints": rows}


def _checkpoint(one: Checkpoint, by_name: Mapping[str, Checkpoint], now_ns: int) -> Values:
    chain, bottom = 0, one
    while bottom.base is not None and bottom.base in by_name:
        chain, bottom = chain + 1, by_name[bottom.base]
    return {
        "pipeline": one.pipeline,
        "partition": one.partition,
        "name": one.name,
        "epoch": one.epoch,
        "stage": one.stage,
        "written_ms": one.written_ns // 1_000_000,
        "age_s": max(0.0, (now_ns - one.written_ns) / 1e9),
        "bytes": one.length_bytes,
        "rows": one.rows,
        "base": one.base,
        "chain": chain,
        # As text: offsets and watermarks may exceed a browser's numbers.
        "cut": {name: str(offset) for name, offset in one.cut.items()},
        "watermarks_ns": {name: str(ns) for name, ns in one.watermarks_ns.items()},
        "digests": {name: f"{digest:016x}" for name, (digest, _) in one.digests.items()},
        "topology": one.topology_hash,
    }


async def letters_of(store: ObjectStore, asked: Mapping[str, str], place: str) -> Values:
    """Return the newest letters of all partitions, and their counts by cause.

    asked: ``cause``, a part of a cause; ``partition``. place: the store's URI, for commands.
    """
    wanted = asked.get("partition", "")
    if wanted and not (wanted.isascii() and wanted.isdigit()):
        raise AskedError("partition is not a number")
    found: list[tuple[int, Letter]] = []
    damage: list[str] = []
    causes: Counter[str] = Counter()
    async for partition, kept in _letters(store, int(wanted) if wanted else None):
        damage += kept.damage
        for letter in kept.letters:
            causes[letter.cause] += 1
            if asked.get("cause", "") in letter.cause:
                found.append((partition, letter))
    found.sort(key=lambda one: -one[1].written_ns)
    return {
        "total": sum(causes.values()),
        "chosen": len(found),
        "causes": [{"cause": cause, "count": count} for cause, count in causes.most_common(50)],
        "letters": [_letter(partition, one) for partition, one in found[:LETTERS_SHOWN_MAX]],
        "damage": damage[:DAMAGE_SHOWN_MAX],
        "store": place,
    }


async def _letters(store: ObjectStore, wanted: int | None) -> AsyncIterator[tuple[int, Found]]:
    """Yield partitions with their letters."""
    for pipeline, partition in await with_letters(store):
        if wanted in (None, partition):
            yield partition, await letters_in(store, pipeline, partition)


def _letter(partition: int, one: Letter) -> Values:
    text = text_of(one.raw)
    return {
        "pipeline": one.pipeline,
        "partition": partition,
        "input": one.input,
        "offset": str(one.offset),
        "line": one.line_number,
        "cause": one.cause,
        "written_ms": one.written_ns // 1_000_000,
        "raw": (one.raw.hex(" ") if text is None else text)[:RAW_CHARACTERS_MAX],
        "is_text": text is not None,
        "can_be_retried": one.can_be_retried,
    }
