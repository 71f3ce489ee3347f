"""The requests of producers that aiokafka has are what they were."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.protocol.admin import (
    CreateTopicsRequest,
    DeleteRecordsRequest,
    DescribeConfigsRequest,
)
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
)

WHO = ["transactional_id", "producer_id", "producer_epoch"]


@pytest.mark.parametrize(
    ("request_type", "wanted"),
    [
        (InitProducerIdRequest, ["transactional_id", "transaction_timeout_ms"]),
        (AddPartitionsToTxnRequest, [*WHO, "topics"]),
        (AddOffsetsToTxnRequest, [*WHO, "group_id"]),
        (
            TxnOffsetCommitRequest,
            ["transactional_id", "group_id", "producer_id", "producer_epoch", "topics"],
        ),
        (EndTxnRequest, [*WHO, "transaction_result"]),
        (ProduceRequest, ["transactional_id", "required_acks", "timeout", "topics"]),
        (CreateTopicsRequest, ["create_topic_requests", "timeout", "validate_only"]),
        (DeleteRecordsRequest, ["topics", "timeout_ms", "tags"]),
        (DescribeConfigsRequest, ["resources", "include_synonyms"]),
        (OffsetFetchRequest, ["consumer_group", "partitions"]),
    ],
)
def test_arguments_of_requests_are_unchanged(request_type: Any, wanted: list[str]) -> None:
    assert list(inspect.signature(request_type).parameters) == wanted


def test_connections_to_coordinators_are_unchanged() -> None:
    assert {group.name for group in ConnectionGroup} >= {"DEFAULT", "COORDINATION"}
    assert (CoordinationType.GROUP, CoordinationType.TRANSACTION) == (0, 1)
    assert {"node_id", "request", "group"} <= {*inspect.signature(AIOKafkaClient.send).parameters}
    assert list(inspect.signature(AIOKafkaClient.coordinator_lookup).parameters) == [
        *("self", "coordinator_type", "coordinator_key")
    ]
