"""Ends what a broker has left open of a transaction that it takes for ended.

Kafka 4.3 and 4.4 pass over partitions without a leader when a transaction ends (KAFKA-20734): a
broker that is alone and is killed between the decision and its markers writes none. Readers wait in
front of such records, and the marker of the next transaction of the same id decides them, too. A
commit that was looked for, not found, and sent again would then be there twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.kafka.together import together
from ripple.world.broker import BrokerError, Records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.world.broker import Broker, Place, Producer

ROUNDS_MAX = 5  # the second one waits until the first one's markers are written


async def end_what_hangs(
    broker: Broker, producer: Producer, alone: Place, others: Iterable[Place]
) -> int:
    """Abort what is open in ``alone``, and of the same transaction in others; return where it ends.

    producer: new, so that nothing of its id is open by right. alone: a partition that nobody writes
    but its id. others: wherever else its transactions write. Raises BrokerError.
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
