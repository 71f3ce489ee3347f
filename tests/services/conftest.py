"""Services that tests share: started for the first test that asks, stopped after the last."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka.client import AIOKafkaClient

from tests.services import spark_session
from tests.services.kafka import Broker
from tests.services.missing import MissingError, skip
from tests.services.s3 import ObjectServer, S3Proxy

NAMEABLE = {code: "-" for code in range(128) if not chr(code).isalnum()}


@pytest.fixture(autouse=True)
def collected() -> Iterator[None]:
    """Let what a test has left open be told with it, and not with whoever is next."""
    yield
    gc.collect()


@pytest.fixture(autouse=True, scope="session")
def let_go() -> Iterator[None]:
    """Close the sockets of the tests' own clients where a broker ended the connection.

    aiokafka forgets one whose end was read and not acted on yet, and nobody closes it then. The
    clients of Ripple have a way of their own, which this leaves alone.
    """
    found = AIOKafkaClient._get_conn

    async def closing(client: Any, node: Any, **how: Any) -> Any:
        held = client._conns.get((node, how.get("group", 0)))
        if held is not None and not held.connected():
            held.close()
        return await found(client, node, **how)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(AIOKafkaClient, "_get_conn", closing)
        yield


@pytest.fixture(scope="session")
def quick_jvms() -> Iterator[None]:
    """Let what starts Spark start it with an archive of its classes."""
    pytest.importorskip("pyspark")
    try:
        options = spark_session.options()
    except MissingError as error:
        skip(error)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SPARK_SUBMIT_OPTS", options)
        yield


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker for all tests: each makes topics and groups of its own, and none kills it."""
    try:
        broker = Broker(tmp_path_factory.mktemp("broker") / "kafka")
    except MissingError as error:
        skip(error)
    with broker:
        yield broker


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A name for the test's topic, and for its group: nobody else has it."""
    return f"{request.node.name}-{id(request)}".translate(NAMEABLE)


@pytest.fixture
def s3_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectServer]:
    """A store of the test's own with an empty ``bucket``, which the environment leads to."""
    try:
        server = S3Proxy(tmp_path / "s3")
    except MissingError as error:
        skip(error)
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    with server:
        server.make_bucket("bucket")
        yield server
