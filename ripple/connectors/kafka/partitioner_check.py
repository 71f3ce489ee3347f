"""Detects, by a sample, the hash by which records are partitioned."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ripple.core.errors import InputError
from ripple.core.hashing import partition_of
from ripple.world.broker import TopicPartition

if TYPE_CHECKING:
    from ripple.connectors.kafka.inputs import Reader

SAMPLE_ROWS = 100  # of a partition, the newest
SAMPLE_S = 5.0


def check_division(where: str, keys: Sequence[tuple[bytes, int]], partitions: int) -> None:
    """Raise InputError unless keys, given with their partitions, lie where murmur2 puts them.

    librdkafka chooses partitions by CRC-32, unless it is told otherwise.
    """
    wrong = [pair for pair in keys if partition_of(pair[0], partitions) != pair[1]]
    if not wrong:
        return
    key, found = wrong[0]
    is_crc = all(zlib.crc32(key) % partitions == number for key, number in keys)
    by = "CRC-32 of it (librdkafka's default)" if is_crc else "something else than murmur2"
    raise InputError(
        f"{where} says by which key its records are divided, and the key {key!r:.60} lies in "
        f"partition {found}, where {by} puts it: murmur2, which Ripple goes by, puts it in "
        f"{partition_of(key, partitions)}. Leave out key=, and records change partition where they "
        "must, or let its producers use murmur2 (partitioner=murmur2_random)"
    )


async def sampled_keys(reader: Reader, topic: str, partitions: int) -> list[tuple[bytes, int]]:
    """Return the keys of some of the newest records, with their partitions; raises BrokerError."""
    places = [TopicPartition(topic, number) for number in range(partitions)]
    first, end = await reader.earliest(places), await reader.ends(places)
    keys: list[tuple[bytes, int]] = []
    for place in places:
        start = max(first[place], end[place] - SAMPLE_ROWS)
        if start == end[place]:
            continue
        consumer = reader.consumer(ahead=False)
        try:
            consumer.assign({place: start})
            read = (await consumer.read(records_max=SAMPLE_ROWS, wait_s=SAMPLE_S)).get(place)
        finally:
            await consumer.close()
        if read is not None:
            found = read.records.keys.drop_null().to_pylist()
            keys += [(key, place.partition) for key in found if key]
    return keys
