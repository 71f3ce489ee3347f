"""URIs of Kafka, as users write them: ``kafka:[BROKERS/]TOPIC[?OPTION=VALUE&...]``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple
from urllib.parse import parse_qsl

from ripple.connectors.kafka.settings import BROKERS_VARIABLE, brokers_given
from ripple.core.errors import InputError

PREFIX = "kafka:"
PARTITION = "partition"  # the option that names one of a topic
PARTITIONS = "partitions"  # the option that says how many of a topic, from its first one on
SUBJECT = "subject"  # the option that names what a registry has its schemas under
FORM = "kafka:[BROKER:PORT,.../]TOPIC[?format=json]"

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_BROKER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")


class KafkaUri(NamedTuple):
    """A topic, the brokers to ask first, and the options of its records.

    brokers: ``host:port``, separated by commas. options: the text after the question mark.
    """

    brokers: str
    topic: str
    options: Mapping[str, str] = MappingProxyType({})

    @classmethod
    def parse(cls, text: str) -> KafkaUri:
        """Return the place, with or without ``kafka:`` before it. Raises InputError."""
        path, _, query = text.removeprefix(PREFIX).partition("?")
        brokers, slash, topic = path.rpartition("/")
        if not slash:
            brokers = brokers_given()
        name = f"{PREFIX}{path}"
        if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise InputError(f"cannot tell which topic {name!r} is: it must be {FORM}")
        if not brokers:
            raise InputError(
                f"{name!r} names no broker, as in {PREFIX}127.0.0.1:9092/{topic}, and there is no "
                f"{BROKERS_VARIABLE}"
            )
        if topic.isdigit() and "/" in brokers:
            raise InputError(
                f"{name!r}: a partition is named after the topic, as in "
                f"{PREFIX}{brokers}?partition={topic}"
            )
        for broker in brokers.split(","):
            if not _BROKER.fullmatch(broker):
                user, _, host = broker.rpartition("@")
                shown = f"***@{host}" if user else broker  # it may say a password, too
                raise InputError(
                    f"{shown!r} is not the address of a broker: it must be HOST:PORT, as in "
                    f"{PREFIX}HOST:PORT/TOPIC"
                )
        options: dict[str, str] = {}
        for option, value in parse_qsl(query, keep_blank_values=True):
            if option in options:
                raise InputError(f"{name!r} says {option} twice")
            options[option] = value
        if query and not options:
            raise InputError(f"cannot read {query!r}, after {name}: it must be OPTION=VALUE")
        return cls(brokers, topic, MappingProxyType(options))

    def check_options(self, known: Sequence[str]) -> None:
        """Raise InputError for unknown options of records."""
        for option in self.options:
            if option not in known:
                raise InputError(f"it says {option}, and there are {', '.join(known)}")

    @property
    def subject(self) -> str:
        """Return the subject under which a registry has the schemas of values."""
        return self.options.get(SUBJECT) or f"{self.topic}-value"

    def __str__(self) -> str:
        return f"{PREFIX}{self.brokers}/{self.topic}"
