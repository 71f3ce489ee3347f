"""Services that tests share: started for the first test that asks, stopped after the last."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services.kafka import Broker
from tests.services.missing import MissingError, skip

NAMEABLE = {code: "-" for code in range(128) if not chr(code).isalnum()}


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
