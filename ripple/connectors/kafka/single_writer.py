"""Detects wrong answers of brokers in a partition with a single transactional writer.

There the next record is directly after the reported end, unless the report came from a frozen
leader that is unaware of its successor. And a new producer finds no open transaction, unless a
broker takes one for ended that it has left open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.world.broker import BrokerError, Records
from ripple.world.together import together

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.world.broker import Broker, Producer, TopicPartition

ROUNDS_MAX = 5  # the second one waits until the first one's markers are written


def check_right_behind(alone: TopicPartition, end: int, found: int) -> None:
    """Raise BrokerError if a record was not written at the reported end.

    Called before its transaction is committed: the records read up to that end were not all.
    """
    if found != end:
        raise BrokerError(
            f"{alone} ends at {found}, and the broker reported {end}",
            done=False,
        )


async def end_what_hangs(
    broker: Broker, producer: Producer, alone: TopicPartition, others: Iterable[TopicPartition]
) -> int:
    """Abort an open transaction in ``alone``, and its part in others; return the end.

    Kafka 4.3 and 4.4 skip partitions without a leader when a transaction ends (KAFKA-20734): a
    single broker that is killed between the decision and its markers writes none. Readers wait
    before such records, and the marker of the next transaction of the same id decides them, too. A
    commit that was looked for, not found, and sent again would then be stored twice.

    producer: new, so that no transaction of its id is open by right. others: the other partitions
    of its transactions. Raises BrokerError.
    """
    nothing = dict.fromkeys([*others, alone], Records.of([]))
    for _ in range(ROUNDS_MAX):
        decided, written = await together(
            broker.ends([alone]), broker.ends([alone], committed=False)
        )
        if decided == written:
            return written[alone]
        producer.begin()
        await producer.send_all(nothing)
        await producer.abort()
    raise BrokerError(f"{alone}: a transaction is open there, and was not ended", done=False)
