"""The broker port over its own connection: topics, readers, transactional producers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ripple.connectors.kafka import private_writing as private
from ripple.connectors.kafka.batches import ProducerId
from ripple.connectors.kafka.consumer import KafkaConsumer
from ripple.connectors.kafka.error_mapping import (
    PASSING,
    THERE,
    TWICE,
    EndingError,
    passes,
    refusal,
    words,
)
from ripple.connectors.kafka.producer import KafkaProducer
from ripple.connectors.kafka.reader import KafkaReader
from ripple.core.errors import OutputError
from ripple.core.extras import needed
from ripple.world.broker import BrokerError, NoTopicError, TopicPartition

with needed("kafka", "a kafka: URI"):
    from aiokafka import errors
    from aiokafka.client import AIOKafkaClient

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ripple.connectors.kafka.batches import Compression
    from ripple.connectors.kafka.settings import Security

BATCH_BYTES_DEFAULT = 1 << 20
# A batch is also one request, which brokers limit by themselves.
BATCH_BYTES_MAX = 16 << 20
CUTS_CONFIG = {"cleanup.policy": "compact"}
LANES_CONFIG = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}

# A transaction that is open for longer is ended by the broker, and its producer fenced.
TRANSACTION_MS = 60_000
PATIENCE_S = 20.0
PAUSE_S, PAUSE_S_MAX = 0.01, 0.5


class KafkaBroker(KafkaReader):
    """A Broker; it connects at the first request.

    compression: of written records.
    """

    def __init__(
        self,
        brokers: str,
        security: Security,
        *,
        compression: Compression = "none",
        keeps_ids: bool = True,
        warn: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(brokers, security, keeps_ids=keeps_ids, warn=warn)
        self._compression: Compression = compression
        self._is_connected = False
        self._bytes_max: dict[str, int] = {}
        self._coordinators: dict[tuple[Any, str], int] = {}
        self._is_stale = False

    async def connected(self) -> None:
        """Connect, unless that was done. Raises BrokerError."""
        if not self._is_connected:
            await self.open()
            self._is_connected = True

    async def close(self) -> None:
        """Let go of the connections; closing twice is allowed."""
        self._is_connected = False
        await super().close()

    async def partitions(self, topic: str) -> int:
        """Return how many a topic has. Raises NoTopicError."""
        await self.connected()
        return await super().partitions(topic)

    async def earliest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset that may still be there, by partition."""
        await self.connected()
        return await super().earliest(places)

    async def ends(
        self, places: Sequence[TopicPartition], *, committed: bool = True
    ) -> dict[TopicPartition, int]:
        """Return, by partition, the offset before which a reader sees everything; see Broker."""
        await self.connected()
        return await super().ends(places, committed=committed)

    def consumer(self, *, ahead: bool = True) -> KafkaConsumer:
        """Return a reader with headers; the client is connected."""
        return KafkaConsumer(self._client, headers=True, ahead=ahead, warn=self._warn)

    async def make(
        self,
        topic: str,
        partitions: int,
        *,
        is_compacted: bool = False,
        is_kept: bool = False,
        has_keys: bool = True,
    ) -> None:
        """Create a topic unless it exists; see Broker.

        Also fetches the metadata that writers need, so that no transaction waits for it.
        """
        configs = CUTS_CONFIG if is_compacted else LANES_CONFIG if is_kept else {}
        await self._make(topic, partitions, configs)
        self._client.await_topic(topic)
        if configs:
            await self._check_configs(topic, configs)
        if not has_keys:
            await self._check_takes_no_key(topic)
        await self.partitions(topic)
        await self.batch_bytes_max(topic)

    async def _make(self, topic: str, partitions: int, configs: Mapping[str, str]) -> None:
        await self.connected()
        client = self.open_client

        async def ask() -> int:
            if not (await self._client.topic_errors([topic]))[topic]:
                return 0
            node = await private.controller(client)
            code = await private.make_topic(client, node, topic, partitions, configs)
            return 0 if code == THERE else code

        await self.until_done(f"topic {topic!r} cannot be made", ask)

    async def _configs(self, topic: str, names: Collection[str]) -> dict[str, str]:
        """Return a topic's configuration; empty without the right to ask."""
        found: dict[str, str] = {}

        async def ask() -> int:
            node = await private.controller(self.open_client)
            found.update(await private.configs(self.open_client, node, topic, [*names]))
            return 0

        await self.until_done(f"how topic {topic!r} is set", ask)
        return found

    async def _check_takes_no_key(self, topic: str) -> None:
        """Raise OutputError for a compacted topic, which takes no record without a key."""
        found = await self._configs(topic, ["cleanup.policy"])
        if "compact" in found.get("cleanup.policy", ""):
            raise OutputError(
                f"topic {topic} is compacted and takes no record without a key: say "
                ".sink(..., key='FIELD'), and it keeps the newest event of each key; or write to "
                "another topic, which keeps them all"
            )

    async def _check_configs(self, topic: str, wanted: Mapping[str, str]) -> None:
        """Raise OutputError for an existing topic that would lose records."""
        found = await self._configs(topic, wanted)
        wrong = [name for name, value in found.items() if value != wanted[name]]
        if wrong:
            said = ", ".join(f"{name}={found[name]}" for name in wrong)
            must = ",".join(f"{name}={wanted[name]}" for name in wrong)
            raise OutputError(
                f"topic {topic} has {said}, so that records in it would be removed that are needed:"
                f" kafka-configs.sh --bootstrap-server {self._client.brokers} --alter "
                f"--topic {topic} --add-config {must}"
            )

    async def remove_before(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Delete the records before these offsets."""
        await self.connected()
        left = dict(offsets)

        async def ask() -> int:
            led: dict[int, dict[TopicPartition, int]] = {}
            for place, offset in left.items():
                led.setdefault(await self.leader(place), {})[place] = offset
            for node, places in led.items():
                code = await private.remove_records(self.open_client, node, places)
                if code:
                    return code
                for place in places:
                    del left[place]
            return 0

        await self.until_done(f"records of {len(offsets)} partitions", ask)

    async def read_by(self, group: str) -> dict[TopicPartition, int]:
        """Return the committed offsets of a group."""
        await self.connected()
        found: dict[TopicPartition, int] = {}

        async def ask() -> int:
            node = await self.coordinator(private.GROUPS, group)
            code, offsets = await private.offsets_of(self.open_client, node, group)
            found.update({TopicPartition(*place): offset for place, offset in offsets.items()})
            return code

        await self.until_done(f"group {group!r}", ask)
        return found

    async def prepare(self, name: str, group: str | None) -> None:
        """Find the coordinators of an id and a group, and connect; see Broker."""
        await self.connected()
        asked = [(private.TRANSACTIONS, name)]
        if group is not None:
            asked.append((private.GROUPS, group))

        async def ask() -> int:
            for kind, key in asked:
                await private.meet(self.open_client, await self.coordinator(kind, key))
            return 0

        await self.until_done(f"transactions of {name!r}", ask)

    async def producer(self, name: str) -> KafkaProducer:
        """Return a producer of this id; all before it are fenced; see Broker."""
        return await self._producer(name)

    async def plain_producer(self) -> KafkaProducer:
        """Return an idempotent producer without transactions."""
        return await self._producer(None)

    async def _producer(self, name: str | None) -> KafkaProducer:
        await self.connected()
        found: list[int] = []

        async def ask() -> int:
            client = self.open_client
            if name is None:
                node = await private.controller(client)
            else:
                node = await self.coordinator(private.TRANSACTIONS, name)
            code, *found[:] = await private.begin_producer(client, node, name, TRANSACTION_MS)
            return code

        await self.until_done(f"transactions of {name!r}", ask)
        return KafkaProducer(self, name, ProducerId(*found), self._compression)

    # --- for producers ---

    @property
    def open_client(self) -> AIOKafkaClient:
        """The connection. Raises BrokerError once it is closed."""
        return self._client.open_client

    async def coordinator(self, kind: Any, key: str) -> int:
        """Return the coordinator of transactions, or of a group; raises aiokafka's errors."""
        found: int | None = self._coordinators.get((kind, key))
        if found is None:
            found = await private.coordinator(self.open_client, kind, key)
            self._coordinators[kind, key] = found
        return found

    async def leader(self, place: TopicPartition) -> int:
        """Return a partition's leader; raises NoTopicError and aiokafka's errors."""
        found = None if self._is_stale else self._client.leader(place)
        if found is None:
            await self._client.learn([place])
            self._is_stale = False
            found = self._client.leader(place)
            if found is None:
                raise errors.LeaderNotAvailableError
        return found

    async def learn_place(self, place: TopicPartition) -> None:
        """Raise NoTopicError unless the partition exists; one with a leader does."""
        is_known = self._client.leader(place) is not None
        if not is_known and not 0 <= place.partition < await self.partitions(place.topic):
            await self._client.learn([place])

    async def batch_bytes_max(self, topic: str) -> int:
        """Return how large a batch of a topic may be. Raises NoTopicError and BrokerError."""
        if topic not in self._bytes_max:
            await self.partitions(topic)
            client = self.open_client

            async def ask() -> int:
                node = await private.controller(client)
                limit = await private.batch_bytes_max(client, node, topic)
                self._bytes_max[topic] = min(limit or BATCH_BYTES_DEFAULT, BATCH_BYTES_MAX)
                return 0

            await self.until_done(f"what topic {topic!r} takes", ask)
        return self._bytes_max[topic]

    def forget(self) -> None:
        """Look up leaders and coordinators again."""
        self._coordinators.clear()
        self._is_stale = True

    async def until_done(self, what: str, ask: Callable[[], Awaitable[int]]) -> None:
        """Repeat an idempotent request until the broker has done it.

        Raises FencedError, NoTopicError, TooLargeError and BrokerError.
        """
        loop = asyncio.get_running_loop()
        until, pause_s = loop.time() + PATIENCE_S, PAUSE_S
        while True:
            why = await _why_not(what, ask)
            if why is None:
                return
            if not isinstance(why, EndingError):
                self.forget()
            if loop.time() + pause_s > until:
                if isinstance(why, BrokerError):
                    raise why
                raise BrokerError(f"{what}: {words(why)}", done=None) from why
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, PAUSE_S_MAX)


async def _why_not(what: str, ask: Callable[[], Awaitable[int]]) -> Exception | None:
    """Ask once; return why it is not done yet, None if it is. Raises permanent errors."""
    try:
        code = await ask()
        if not code or code == TWICE:
            return None
        why = refusal(code, what)
        if not passes(code):
            raise why
    except PASSING as error:
        return error.__cause__ if isinstance(error.__cause__, NoTopicError) else error
    except errors.BrokerResponseError as error:
        why = refusal(error.errno, what)
        if not passes(error.errno):
            raise why from error
    except errors.KafkaError as error:
        raise BrokerError(f"{what}: {error}", done=None) from error
    return why
