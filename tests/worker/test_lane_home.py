"""The location of lanes follows from the URIs, unless it is configured."""

from __future__ import annotations

import pytest

from ripple.core.errors import InputError
from ripple.core.setting import SettingsError
from worker.engine.lane_home import lane_home

TOPIC = "kafka:b1:9092,b2:9092/trades?key=symbol"


@pytest.mark.parametrize(
    ("said", "places", "brokers"),
    [
        ("", [TOPIC, "log:d/out"], "b1:9092,b2:9092"),
        ("", ["log:d/in", "log:d/out", "kafka:b3:1/out"], "b3:1"),
        ("", ["log:d/in", "log:d/out"], None),
        ("/shared/lanes", [TOPIC], None),
        ("lanes", [TOPIC], None),
        ("kafka:b3:1,b4:1", [TOPIC], "b3:1,b4:1"),
        ("kafka:b3:1/any", ["log:d/in"], "b3:1"),
    ],
)
def test_lanes_are_where_somebody_says_or_topics_are(
    said: str, places: list[str], brokers: str | None
) -> None:
    home = lane_home(said, places)
    assert (home and home.name) == (brokers and f"kafka:{brokers}")
    if home is not None:
        assert home.place("p.records") == f"kafka:{brokers}/p.records"


def test_uri_without_lanes_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RIPPLE_KAFKA_BROKERS", raising=False)
    with pytest.raises(SettingsError, match=r"lanes is 'nats:h:4222/x': .* or in kafka:BROKERS"):
        lane_home("nats:h:4222/x", [TOPIC])
    with pytest.raises(InputError, match="names no broker"):
        lane_home("kafka:", [TOPIC])
    with pytest.raises(InputError, match="is not the address of a broker"):
        lane_home("kafka:b 1:9", [TOPIC])
