"""What shows in a partition that one transactional id alone writes: answers not to be believed.

Nobody else adds to it, so the next record lies right behind the end that was told: unless a leader
told it that was frozen, and does not know that another one leads since. And whoever begins finds
nothing open there: unless a broker takes for ended what it has left open.
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
    """Raise BrokerError where a record was written elsewhere than at the end that was told.

    Before its transaction is committed: what was read up to that end was not all.
    """
    if found != end:
        raise BrokerError(
            f"{alone} ends at {found}, and who was asked said at {end}",
            done=False,
        )


async def end_what_hangs(
    broker: Broker, producer: Producer, alone: TopicPartition, others: Iterable[TopicPartition]
) -> int:
    """Abort what is open in ``alone``, and of the same transaction in others; return where it ends.

    Kafka 4.3 and 4.4 pass over partitions without a leader when a transaction ends (KAFKA-20734): a
    broker that is alone and is killed between the decision and its markers writes none. Readers
    wait in front of such records, and the marker of the next transaction of the same id decides
    them, too. A commit that was looked for, not found, and sent again would then be there twice.

    producer: new, so that nothing of its id is open by right. others: wherever else its
    transactions write. Raises BrokerError.
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
