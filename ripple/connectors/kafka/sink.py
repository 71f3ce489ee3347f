"""One output of a one-shot run as records of a topic: appended, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.contract import BasicSink
from ripple.connectors.kafka.rows import divided, joined
from ripple.core.errors import OutputError
from ripple.world.broker import BrokerError, Records, TopicPartition

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.connectors.background import Background
    from ripple.connectors.contract import Commit
    from ripple.connectors.kafka.broker import KafkaBroker
    from ripple.connectors.kafka.producer import KafkaProducer
    from ripple.connectors.kafka.topic_target import TopicTarget
    from ripple.world.ports import Clock

RECORDS_AT_ONCE = 1 << 14
APPENDED = "each record once; rows of a failed run stay"


class KafkaSink(BasicSink):
    """Appends to a topic without transactions, in good time or when it commits."""

    def __init__(
        self,
        name: str,
        broker: KafkaBroker,
        written: TopicTarget,
        clock: Clock,
        background: Background,
    ) -> None:
        """Connect, and make the topic if there is none. Raises OutputError."""
        self.name = name
        self.promise = APPENDED
        self._broker = broker
        self._written = written
        self._clock = clock
        self._background = background
        self._waiting: dict[int, list[Records]] = {}
        self._count = 0
        try:
            self._partitions, self._producer = background.call(self._opened())
        except BrokerError as error:
            self.close()
            raise OutputError(f"cannot write {name}: {error}") from error
        except BaseException:
            self.close()
            raise

    async def _opened(self) -> tuple[int, KafkaProducer]:
        written = self._written
        await self._broker.make(written.topic, 1, has_keys=written.rows.has_keys)
        partitions = await self._broker.partitions(self._written.topic)
        return partitions, await self._broker.plain_producer()

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Take changes, and send them once a batch is full."""
        records = self._written.rows.of(changes, self._clock.now_ns() // 1_000_000)
        for number, part in divided(records, self._partitions):
            self._waiting.setdefault(number, []).append(part)
        self._count += len(records)
        if self._count >= RECORDS_AT_ONCE:
            self._send()

    def commit(self, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Send the rest: the brokers have it when this returns."""
        self._send()

    def close(self) -> None:
        """Release the connections; unsent changes are discarded."""
        self._waiting = {}
        background, self._background = self._background, None  # type: ignore[assignment]
        if background is not None:
            background.call(self._broker.close())
            background.close()

    def _send(self) -> None:
        waiting, self._waiting, self._count = self._waiting, {}, 0
        try:
            self._background.call(self._sent(waiting))
        except BrokerError as error:
            raise OutputError(f"cannot write {self.name}: {error}") from error

    async def _sent(self, waiting: dict[int, list[Records]]) -> None:
        for number, parts in waiting.items():
            await self._producer.send(TopicPartition(self._written.topic, number), joined(parts))
