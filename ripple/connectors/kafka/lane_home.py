"""Brokers whose topics are lanes between stages; see ``ripple.task.repartition``."""

from __future__ import annotations

import logging
from typing import NamedTuple

from ripple.connectors.kafka.broker import KafkaBroker
from ripple.connectors.kafka.settings import Security, security_given
from ripple.connectors.kafka.uri import PREFIX, KafkaUri
from ripple.core.errors import InputError
from ripple.core.setting import SettingsError

_ANY_TOPIC = "lanes"

_log = logging.getLogger("ripple.kafka")


class KafkaLanes(NamedTuple):
    """A LaneHome. brokers: ``host:port``, separated by commas."""

    brokers: str
    security: Security

    @property
    def name(self) -> str:
        """The brokers, for people."""
        return f"{PREFIX}{self.brokers}"

    def place(self, topic: str) -> str:
        """Return the place of a topic there."""
        return f"{PREFIX}{self.brokers}/{topic}"

    def broker(self) -> KafkaBroker:
        """Return a connection, which is made when something is asked first."""
        return KafkaBroker(self.brokers, self.security, warn=_log.warning)


def open_lanes(path: str) -> KafkaLanes:
    """Return the brokers of lanes, named directly or by the URI of a topic. Raises InputError."""
    named = path if not path or "/" in path or ":" not in path else f"{path}/{_ANY_TOPIC}"
    try:
        return KafkaLanes(KafkaUri.parse(named or _ANY_TOPIC).brokers, security_given())
    except SettingsError as error:
        raise InputError(f"no lanes can be at {PREFIX}{path}: {error}") from error
