"""Topics that are read, opened as places of the connector."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from ripple.connectors.log.places import check_divided
from ripple.errors import InputError
from ripple.kafka.client import KafkaClient
from ripple.kafka.dividing import check_division, sampled_keys
from ripple.kafka.inputs import KafkaInputs
from ripple.kafka.place import PREFIX, KafkaPlace
from ripple.kafka.reading import KafkaReading
from ripple.kafka.settings import security_given
from ripple.kafka.source import KafkaSource
from ripple.kafka.values.formats import DEFAULT, values_of
from ripple.settings import SettingsError
from ripple.world.broker import BrokerError, Place

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, TypeVar

    from ripple.connectors.connector import Reading
    from ripple.kafka.settings import Security
    from ripple.kafka.values.contract import Values

    T = TypeVar("T")

OPTIONS = ("format", "key", "partition")

_log = logging.getLogger("ripple.kafka")
_counts: dict[tuple[str, str], int] = {}
_divided: set[tuple[str, str]] = set()


def open_source(path: str, reading: Reading) -> KafkaSource:
    """Return one partition up to its present end.

    Raises InputError when there is no such broker, topic or partition, or several to choose from.
    """
    place, security, values = _opened(path, reading)
    count = _count(place, security)
    number = _partition(place, count)
    if number is None and count > 1:
        raise InputError(
            f"cannot read {place}: choose one of its {count} partitions, as in {PREFIX}{path}"
            f"{'&' if place.options else '?'}partition=0, or read all of them with --checkpoint-dir"
        )
    return KafkaSource(
        KafkaReading(place.brokers, security, tell=_log.warning),
        Place(place.topic, number or 0),
        values,
        name=reading.name,
        batch_rows=reading.batch_rows,
    )


def open_inputs(path: str, reading: Reading) -> KafkaInputs:
    """Return all partitions of a part, or the one that is named; raises as ``open_source`` does."""
    place, security, values = _opened(path, reading)
    count = _count(place, security)
    number = _partition(place, count)
    if number is not None or count == 1:
        partitions = {reading.name: Place(place.topic, number or 0)}
    else:
        partitions = {f"{reading.name}/{each}": Place(place.topic, each) for each in range(count)}
    key = _key(place, reading)
    if key:
        _check_key(place, security, count)
    if reading.part is not None:
        part, of = reading.part
        check_divided(str(place), len(partitions), of)
        partitions = dict(list(partitions.items())[part::of])
    return KafkaInputs(
        KafkaReading(place.brokers, security, tell=_log.warning),
        partitions,
        values,
        reading.batch_rows,
        follow=reading.follow,
        keyed_by=key,
    )


def _opened(path: str, reading: Reading) -> tuple[KafkaPlace, Security, Values]:
    try:
        place = KafkaPlace.parse(path)
        security = security_given()
    except SettingsError as error:
        raise InputError(f"cannot read {PREFIX}{path}: {error}") from error
    for option in place.options:
        if option not in OPTIONS:
            raise InputError(
                f"cannot read {place}: it says {option}, and there are {', '.join(OPTIONS)}"
            )
    return place, security, values_of(place.options.get("format", DEFAULT), reading.shape)


def _partition(place: KafkaPlace, count: int) -> int | None:
    said = place.options.get("partition")
    if said is None:
        return None
    if not (said.isascii() and said.isdigit() and len(said) < 7 and int(said) < count):
        raise InputError(f"cannot read {place}: it has {count} partitions, and none {said!r}")
    return int(said)


def _key(place: KafkaPlace, reading: Reading) -> tuple[str, ...] | None:
    """Return the fields by which records are said to be divided."""
    said = place.options.get("key")
    if said is None:
        return None
    fields = tuple(said.split(",")) if said else ()
    known = [member.name for member in reading.shape.schema.fields]
    for field in fields:
        if field not in known:
            raise InputError(f"{place} says key={said}, and the fields are {', '.join(known)}")
    return fields


def _check_key(place: KafkaPlace, security: Security, count: int) -> None:
    """Raise InputError where records are not divided as the place says; a process asks once."""
    asked = (place.brokers, place.topic)
    if count == 1 or asked in _divided:
        return
    try:
        keys = _in_a_thread(_sampled(place, security, count))
    except (BrokerError, SettingsError) as error:
        raise InputError(f"cannot read {place}: {error}") from error
    check_division(str(place), keys, count)
    _divided.add(asked)


async def _sampled(place: KafkaPlace, security: Security, count: int) -> list[tuple[bytes, int]]:
    reader = KafkaReading(place.brokers, security)
    await reader.open()
    try:
        return await sampled_keys(reader, place.topic, count)
    finally:
        await reader.close()


def _count(place: KafkaPlace, security: Security) -> int:
    """Return how many partitions a topic has; a process asks once."""
    asked = (place.brokers, place.topic)
    if asked not in _counts:
        try:
            _counts[asked] = _in_a_thread(_partitions(place, security))
        except (BrokerError, SettingsError) as error:
            raise InputError(f"cannot read {place}: {error}") from error
    return _counts[asked]


async def _partitions(place: KafkaPlace, security: Security) -> int:
    client = KafkaClient(place.brokers, security)
    await client.open()
    try:
        return await client.partitions(place.topic)
    finally:
        await client.close()


def _in_a_thread(asked: Coroutine[Any, Any, T]) -> T:
    """Run in an event loop of its own, also where one is running already."""
    results: list[T] = []
    failures: list[BaseException] = []

    def run() -> None:
        try:
            results.append(asyncio.run(asked))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=run, name="kafka")
    thread.start()
    thread.join()
    if failures:
        raise failures[0]
    return results[0]
