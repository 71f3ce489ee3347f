"""Opens topics for reading, for the connector."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from ripple.connectors.background import Background
from ripple.connectors.formats.formats import DEFAULT, values_of
from ripple.connectors.formats.record_keys import KEY_FORMS
from ripple.connectors.formats.table_changes import TableValues
from ripple.connectors.kafka.growth import Growth
from ripple.connectors.kafka.inputs import KafkaInputs
from ripple.connectors.kafka.partitioner_check import check_division, sampled_keys
from ripple.connectors.kafka.reader import KafkaReader
from ripple.connectors.kafka.registry import registry_given
from ripple.connectors.kafka.settings import security_given
from ripple.connectors.kafka.uri import PARTITION, PARTITIONS, PREFIX, SUBJECT, KafkaUri
from ripple.connectors.log.opening import check_divided
from ripple.core.errors import InputError
from ripple.core.setting import SettingsError
from ripple.world.broker import BrokerError, NoTopicError, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from ripple.connectors.connector import Reading
    from ripple.connectors.formats.contract import Values
    from ripple.connectors.formats.record_keys import KeyForm
    from ripple.connectors.kafka.settings import Security
    from ripple.connectors.record_shape import RecordShape

T = TypeVar("T")

KEY_FORMAT = "key_format"
OPTIONS = ("format", "key", KEY_FORMAT, PARTITION, PARTITIONS, SUBJECT)
_AVRO, _WORDS = "avro", {"json": "JSON", "avro": "Avro"}
OF_PROTOBUF = ("message", "descriptors")

_log = logging.getLogger("ripple.kafka")


def open_inputs(path: str, reading: Reading) -> KafkaInputs:
    """Return all partitions of a part, or the named one; inputs of one-shot runs end.

    Raises InputError when there is no such broker, topic or partition, or several to choose from.
    """
    place, security, values = _opened(path, reading)
    count = _wanted(place, _count(place, security))
    if reading.needs_all:
        _check_kept(place, security, reading.name)
    number = _partition(place, count)
    if number is None and count > 1 and reading.one_shot and not reading.whole:
        raise InputError(
            f"cannot read {place}: choose one of its {count} partitions, as in {PREFIX}{path}"
            f"{'&' if place.options else '?'}partition=0, or read all of them with --checkpoint-dir"
        )
    if number is not None or count == 1:
        partitions = {reading.name: TopicPartition(place.topic, number or 0)}
    else:
        partitions = {
            f"{reading.name}/{each}": TopicPartition(place.topic, each) for each in range(count)
        }
    key = _key(place, reading)
    if key and number is None:
        _check_key(place, security, count)
    if reading.part is not None:
        part, of = reading.part
        check_divided(str(place), len(partitions), of)
        partitions = dict(list(partitions.items())[part::of])
    # Headers cost little unless they are used.
    reader = KafkaReader(place.brokers, security, headers=True, warn=_log.warning)
    is_first = reading.part is None or reading.part[0] == 0  # of all of a cluster's
    is_whole = is_first and place.options.keys().isdisjoint((PARTITION, PARTITIONS))
    return KafkaInputs(
        reader,
        partitions,
        values,
        reading.batch_rows,
        follow=reading.follow,
        keyed_by=key,
        growth=Growth(reader, place.topic, count, _log.warning) if is_whole else None,
    )


def check(path: str) -> str:
    """Connect, and describe the topic; raises InputError."""
    place, security = _parsed(path)

    async def asked(reader: KafkaReader) -> int:
        try:
            return await reader.partitions(place.topic)
        except NoTopicError:
            return 0

    count = _asked(place, security, asked)
    if not count:
        return f"Kafka answers at {place.brokers}; there is no topic {place.topic} yet"
    count = _wanted(place, count)
    number = _partition(place, count)
    return f"a topic of {count} partitions" if number is None else f"partition {number} of {count}"


def identity(path: str) -> str:
    """Return a topic's identity: its cluster and name, independent of the brokers in the URI."""
    place, security = _parsed(path)
    cluster = _asked(place, security, lambda reader: reader.cluster_id())
    said = "".join(f" {name}={value}" for name, value in sorted(place.options.items()))
    return f"topic {place.topic} of Kafka cluster {cluster}{said}"


def _parsed(path: str) -> tuple[KafkaUri, Security]:
    try:
        return KafkaUri.parse(path), security_given()
    except SettingsError as error:
        raise InputError(f"cannot read {PREFIX}{path}: {error}") from error


def _opened(path: str, reading: Reading) -> tuple[KafkaUri, Security, Values]:
    place, security = _parsed(path)
    try:
        form = place.options.get("format", DEFAULT)
        place.check_options((*OPTIONS, *(OF_PROTOBUF if form == "protobuf" else ())))
        key_form = _key_form(place, reading, form)
    except InputError as error:
        raise InputError(f"cannot read {place}: {error}") from error
    try:
        if key_form is None:
            values = values_of(form, reading.shape, registry_given, place.subject, place.options)
        else:
            values = _table_values(form, key_form, place, reading.shape)
    except SettingsError as error:
        raise InputError(f"cannot read {place}: {error}") from error
    return place, security, values


def _table_values(form: str, key_form: KeyForm, place: KafkaUri, shape: RecordShape) -> Values:
    """Return the format of a table's records: values, and keys."""
    assert shape.table is not None, "events have no keys"
    keys = envelopes = None
    is_avro = bool(shape.table.format) and form == _AVRO
    if is_avro or key_form == _AVRO:
        from ripple.connectors.formats.avro_objects import AvroObjects  # noqa: PLC0415 - needs an extra

        registry = registry_given()
        if is_avro:
            rows = AvroObjects(registry, shape)
            rows.check(place.subject)
            envelopes = rows.read
        if key_form == _AVRO:
            keys = AvroObjects(registry).read
    form = DEFAULT if is_avro else form
    values = values_of(form, shape, registry_given, place.subject, place.options)
    return TableValues(values, shape.table, key_form, keys=keys, envelopes=envelopes)


def _key_form(place: KafkaUri, reading: Reading, form: str) -> KeyForm | None:
    """Return the form of the record keys of a table, None for events."""
    said, table = place.options.get(KEY_FORMAT), reading.shape.table
    if table is None:
        if said is not None:
            raise InputError(
                f"{KEY_FORMAT}={said} says how record keys name the rows of a table, and "
                f"{reading.name} are events, of which no keys are read: leave it out"
            )
        return None
    if table.format and form not in (DEFAULT, _AVRO):
        raise InputError(
            f"envelopes of Debezium are read as JSON or Avro, not as {form}: let Debezium write "
            "JSON (JsonConverter), and leave format= out, or Avro (AvroConverter), for format=avro"
        )
    if said is None:
        said = ("avro" if form == _AVRO else "json") if table.format else "bytes"
    if said in ("json", _AVRO) and "key" in place.options:
        raise InputError(
            f"record keys are {_WORDS[said]}, and lie where murmur2 puts their bytes, not where it "
            f"puts the fields in key={place.options['key']}: leave key= out, and records stay "
            "where they are"
        )
    for known in KEY_FORMS:
        if said == known:
            return known
    raise InputError(f"there is no {KEY_FORMAT} {said!r}: there are {', '.join(KEY_FORMS)}")


def _partition(place: KafkaUri, count: int) -> int | None:
    said = place.options.get(PARTITION)
    if said is None:
        return None
    if not (said.isascii() and said.isdigit() and len(said) < 7 and int(said) < count):
        raise InputError(f"cannot read {place}: it has {count} partitions, and none {said!r}")
    return int(said)


def _wanted(place: KafkaUri, count: int) -> int:
    """Return how many of a topic's partitions are read, from the first one on."""
    said = place.options.get(PARTITIONS)
    if said is None:
        return count
    if not (said.isascii() and said.isdigit() and len(said) < 7 and 0 < int(said) <= count):
        raise InputError(f"cannot read {place}: it has {count} partitions, and not {said!r}")
    return int(said)


def _key(place: KafkaUri, reading: Reading) -> tuple[str, ...] | None:
    """Return the fields by which records are said to be divided."""
    said = place.options.get("key")
    if said is None:
        return None
    fields = tuple(said.split(",")) if said else ()
    known = [member.name for member in reading.shape.schema.fields]
    for name in fields:
        if name not in known:
            raise InputError(f"{place} says key={said}, and the fields are {', '.join(known)}")
    return fields


def _check_key(place: KafkaUri, security: Security, count: int) -> None:
    """Raise InputError where records are not divided as the place says."""
    if count > 1 and not _known.is_divided(place):
        keys = _asked(place, security, lambda reader: sampled_keys(reader, place.topic, count))
        check_division(str(place), keys, count)
        _known.divided.add((place.brokers, place.topic))


def _check_kept(place: KafkaUri, security: Security, name: str) -> None:
    """Raise InputError for a topic of which replaced records are removed."""
    if _asked(place, security, lambda reader: reader.is_compacted(place.topic)):
        raise InputError(
            f"cannot read {place} as the versions of {name!r}: the topic is compacted, and "
            "compaction has removed versions that a replay would need: write them to a topic with "
            "cleanup.policy=delete, or use the table as it is, without .versions(...)"
        )


def _count(place: KafkaUri, security: Security) -> int:
    """Return how many partitions a topic has."""
    topic = (place.brokers, place.topic)
    if topic not in _known.counts:
        _known.counts[topic] = _asked(
            place, security, lambda reader: reader.partitions(place.topic)
        )
    return _known.counts[topic]


@dataclass
class _Known:
    """The process's metadata of topics, by brokers and topic; it asks once.

    counts: their numbers of partitions, on which the inputs of one run must agree. divided: those
    with records partitioned by their keys.
    """

    counts: dict[tuple[str, str], int] = field(default_factory=dict)
    divided: set[tuple[str, str]] = field(default_factory=set)

    def is_divided(self, place: KafkaUri) -> bool:
        return (place.brokers, place.topic) in self.divided


_known = _Known()


def _asked(
    place: KafkaUri, security: Security, ask: Callable[[KafkaReader], Coroutine[Any, Any, T]]
) -> T:
    """Return the brokers' metadata, over a connection of its own. Raises InputError."""

    async def answer() -> T:
        reader = KafkaReader(place.brokers, security)
        await reader.open()
        try:
            return await ask(reader)
        finally:
            await reader.close()

    try:
        with Background() as background:
            return background.call(answer())
    except (BrokerError, SettingsError) as error:
        raise InputError(f"cannot read {place}: {error}") from error
