"""Topics that some brokers do not know yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ripple.connectors.kafka import client as client_module
from ripple.connectors.kafka import private
from ripple.connectors.kafka.client import KafkaClient
from ripple.connectors.kafka.error_mapping import NO_TOPIC
from ripple.connectors.kafka.settings import Security
from ripple.world.broker import AnotherTopicError, NoTopicError

if TYPE_CHECKING:
    from collections.abc import Sequence

MADE = "made"


class Asked(KafkaClient):
    """Asks brokers of which the first ones have not heard of the topic."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, ignorant: int) -> None:
        super().__init__("there:9092", Security())
        self.asked = 0
        cluster = SimpleNamespace(partitions_for_topic=lambda _: {0, 1})
        self._client: Any = SimpleNamespace(cluster=cluster)

        async def metadata(
            _: object, topics: Sequence[str]
        ) -> tuple[dict[str, int], dict[str, bytes]]:
            self.asked += 1
            codes = dict.fromkeys(topics, NO_TOPIC if self.asked <= ignorant else 0)
            return codes, dict.fromkeys(topics, self.id)

        self.id = bytes(15) + b"1"

        monkeypatch.setattr(private, "metadata", metadata)
        monkeypatch.setattr(client_module, "FIRST_PAUSE_S", 0.001)


async def test_a_topic_that_was_made_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Asked(monkeypatch, ignorant=2)
    client.await_topic(MADE)
    assert await client.partitions(MADE) == 2
    assert client.asked == 3


async def test_missing_topic_that_was_not_made_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Asked(monkeypatch, ignorant=1)
    client.await_topic(MADE)
    with pytest.raises(NoTopicError, match="has no topic 'other'"):
        await client.partitions("other")
    assert client.asked == 1


async def test_deleted_topic_is_reported_as_deleted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "PATIENCE_S", 0.02)
    client = Asked(monkeypatch, ignorant=10**6)
    client.await_topic(MADE)
    with pytest.raises(NoTopicError, match="has no topic 'made'"):
        await client.partitions(MADE)
    assert client.asked > 1


async def test_recreated_topic_is_detected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = Asked(monkeypatch, ignorant=0)
    await client.partitions(MADE)
    assert client.topic_id(MADE) == client.id.hex()
    client.id = bytes(15) + b"2"
    with pytest.raises(AnotherTopicError, match="recreated"):
        await client.partitions(MADE)
