"""Connections to the brokers of one cluster, with the metadata of its topics."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from ripple.connectors.kafka import private
from ripple.connectors.kafka.error_mapping import NO_TOPIC, PASSING, is_passing, refusal, words
from ripple.connectors.kafka.private_connecting import Client
from ripple.connectors.kafka.settings import Security
from ripple.connectors.kafka.tokens import TokenError, Tokens, tokens_of
from ripple.core.extras import needed
from ripple.world.broker import AnotherTopicError, BrokerError, NoTopicError, TopicPartition

with needed("kafka", "a kafka: URI"):
    from aiokafka import TopicPartition as KafkaPartition
    from aiokafka import errors
    from aiokafka.abc import AbstractTokenProvider

if TYPE_CHECKING:
    from ripple.connectors.kafka.private import Fetched

T = TypeVar("T")

REQUEST_S = 15.0
PATIENCE_S = 15.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 1.0
_POLICY = "cleanup.policy"


class _Provider(AbstractTokenProvider):  # type: ignore[misc]
    """Tokens as aiokafka asks for them, at each connection."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def token(self) -> str:
        try:
            return await asyncio.to_thread(self._tokens.token)
        except TokenError as error:
            raise errors.KafkaConnectionError(str(error)) from error


class KafkaClient:
    """Asks brokers. Errors that pass are waited for, up to PATIENCE_S.

    A topic keeps its first known id: for a recreated one of the same name AnotherTopicError is
    raised, and its records are not read. All methods but ``close`` raise BrokerError, and
    NoTopicError.
    """

    def __init__(self, brokers: str, security: Security, *, keeps_ids: bool = True) -> None:
        """Take the brokers that are asked first, as ``host:port``, separated by commas.

        keeps_ids: whether topics must keep their ids; else their names alone count.
        """
        self.brokers = brokers
        self._security = security
        self._client: Client | None = None
        self._topics: set[str] = set()
        self._keeps_ids = keeps_ids
        self._ids: dict[str, bytes] = {}
        self._awaited: set[str] = set()

    async def open(self) -> None:
        """Connect. Raises BrokerError that says for each broker why it could not."""
        arguments = {
            **self._security.arguments(),
            "client_id": "ripple",
            "request_timeout_ms": int(REQUEST_S * 1000),
        }
        if self._security.tokens is not None:
            arguments["sasl_oauth_token_provider"] = _Provider(tokens_of(self._security.tokens))
        client = Client(arguments, self.brokers)
        try:
            await client.bootstrap()
        except errors.KafkaError as error:
            await client.close()
            why = await private.why_not(client.hosts, arguments)
            raise BrokerError(f"cannot reach Kafka: {why}", done=False) from error
        except BaseException:
            await client.close()
            raise
        if self._security.tokens is not None and not client.cluster.brokers():
            # The answer to a token that is no good is one to a request that was not sent.
            await client.close()
            raise BrokerError(
                f"cannot reach Kafka: {self.brokers}: SASL Authentication failed: the token was "
                "refused",
                done=False,
            )
        self._client = client

    async def close(self) -> None:
        """Let go of the connections; closing twice is allowed."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def partitions(self, topic: str) -> int:
        """Return how many a topic has. Raises NoTopicError."""

        async def ask() -> int:
            await self._learn_topics([topic])
            found = self.open_client.cluster.partitions_for_topic(topic)
            if not found:
                raise errors.LeaderNotAvailableError
            return len(found)

        return await self._patiently(f"topic {topic!r}", ask)

    async def cluster_id(self) -> str:
        """Return the cluster's id; the brokers' names if it has none."""

        async def ask() -> str:
            return await private.cluster_id(self.open_client) or self.brokers

        return await self._patiently("the cluster", ask)

    async def is_compacted(self, topic: str) -> bool:
        """Return whether replaced records are removed; False without the right to ask."""
        from ripple.connectors.kafka import private_writing  # noqa: PLC0415 - for versions alone

        async def ask() -> bool:
            node = await private_writing.controller(self.open_client)
            found = await private_writing.configs(self.open_client, node, topic, [_POLICY])
            return "compact" in found.get(_POLICY, "")

        return await self._patiently(f"topic {topic!r}", ask)

    def await_topic(self, topic: str) -> None:
        """Wait from now on for a topic that a broker does not know.

        It is there: brokers hear of a new one each in their own time, and any of them is asked.
        """
        self._awaited.add(topic)

    async def learn(self, places: Sequence[TopicPartition]) -> None:
        """Refresh the leaders of partitions. Raises NoTopicError and aiokafka's errors."""
        await self._learn_topics(sorted({place.topic for place in places}))
        for place in places:
            known = self.open_client.cluster.partitions_for_topic(place.topic)
            if known and place.partition not in known:
                raise NoTopicError(
                    f"{self.brokers}: topic {place.topic!r} has {len(known)} partitions, and none "
                    f"with the number {place.partition}"
                )

    def leader(self, place: TopicPartition) -> int | None:
        """Return the node that leads a partition, None if it is not known."""
        found = self.open_client.cluster.leader_for_partition(KafkaPartition(*place))
        return None if found is None or found < 0 else int(found)

    def topic_id(self, topic: str) -> str:
        """Return the lasting id of a topic, "" where brokers do not tell."""
        return self._ids.get(topic, b"").hex()

    async def earliest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset that may still be there, by partition."""
        return await self._offsets(places, private.EARLIEST, 0)

    async def since(
        self, places: Sequence[TopicPartition], time_ms: int
    ) -> dict[TopicPartition, int]:
        """Return the first offset of a record that was written at a time or later, by partition.

        time_ms: of the records' own timestamps. -1 where there is none.
        """
        return await self._offsets(places, time_ms, private.COMMITTED)

    async def ends(
        self, places: Sequence[TopicPartition], *, committed: bool = True
    ) -> dict[TopicPartition, int]:
        """Return, by partition, the offset before which a reader sees everything now.

        committed: whether records count only as far as no transaction before them is open.
        """
        return await self._offsets(places, private.LATEST, private.COMMITTED * committed)

    async def fetch(
        self,
        node: int,
        wanted: Mapping[TopicPartition, int],
        *,
        wait_ms: int,
        bytes_max: int,
        partition_bytes_max: int,
    ) -> list[Fetched]:
        """Return the committed records at offsets; raises aiokafka's errors."""
        return await private.fetch(
            self.open_client,
            node,
            wanted,
            self._ids,
            wait_ms=wait_ms,
            bytes_max=bytes_max,
            partition_bytes_max=partition_bytes_max,
        )

    @property
    def open_client(self) -> Client:
        """The connections, for senders of requests. Raises BrokerError once it is closed."""
        if self._client is None:
            raise BrokerError(f"the connection to {self.brokers} is closed", done=False)
        return self._client

    async def topic_errors(self, topics: Sequence[str]) -> dict[str, int]:
        """Look up the leaders of topics' partitions; return an error by topic, 0 for none.

        All topics that were found before are asked for with them: an answer replaces the metadata
        of all others.
        """
        asked = sorted({*topics, *self._topics})
        known, ids = await private.metadata(self.open_client, asked)
        self._know(ids)
        self._topics = {topic for topic, code in known.items() if code != NO_TOPIC}
        return {topic: known.get(topic, NO_TOPIC) for topic in topics}

    def _know(self, ids: Mapping[str, bytes]) -> None:
        """Take the ids of topics. Raises AnotherTopicError for a recreated topic."""
        if not self._keeps_ids:
            return
        for topic, found in ids.items():
            first = self._ids.setdefault(topic, found)
            if found != first:
                raise AnotherTopicError(
                    f"{self.brokers}: topic {topic!r} was recreated: it has the id {found.hex()}, "
                    f"and had {first.hex()} as it was opened"
                )

    async def _learn_topics(self, topics: Sequence[str]) -> None:
        for topic, code in (await self.topic_errors(topics)).items():
            if code == NO_TOPIC:
                why = NoTopicError(f"{self.brokers} has no topic {topic!r}")
                if topic not in self._awaited:
                    raise why
                raise errors.UnknownTopicOrPartitionError from why
            if code and not is_passing(code):
                raise refusal(code, f"topic {topic!r}")

    async def _offsets(
        self, places: Sequence[TopicPartition], when: int, isolation: int
    ) -> dict[TopicPartition, int]:
        found: dict[TopicPartition, int] = {}

        async def ask() -> dict[TopicPartition, int]:
            left = [place for place in places if place not in found]
            if any(self.leader(place) is None for place in left):
                await self.learn(left)
            by_node: dict[int, list[TopicPartition]] = {}
            for place in left:
                node = self.leader(place)
                if node is None:
                    raise errors.LeaderNotAvailableError
                by_node.setdefault(node, []).append(place)
            stale = False
            for node, led in by_node.items():
                answers = await private.offsets(self.open_client, node, led, when, isolation)
                for place in led:
                    code, offset = answers[place]
                    if not code:
                        found[place] = offset
                    elif not is_passing(code):
                        raise refusal(code, f"offsets of {place}")
                    else:
                        stale = True
            if stale:
                await self.learn(left)
                raise errors.NotLeaderForPartitionError
            return found

        return await self._patiently("offsets", ask)

    async def _patiently(self, what: str, ask: Callable[[], Awaitable[T]]) -> T:
        loop = asyncio.get_running_loop()
        until, pause_s = loop.time() + PATIENCE_S, FIRST_PAUSE_S
        while True:
            try:
                return await ask()
            except PASSING as error:
                if loop.time() + pause_s > until:
                    if isinstance(error.__cause__, NoTopicError):
                        raise error.__cause__ from None
                    why = f"{self.brokers}: {what}: {words(error)}"
                    raise BrokerError(why, done=False) from error
            except errors.KafkaError as error:
                raise BrokerError(f"{self.brokers}: {what}: {error}", done=False) from error
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
