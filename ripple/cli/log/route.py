"""Routes records to topics by a field's value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.record_shape import value_type
from ripple.core.errors import InputError
from ripple.model.schema.logical.columns import stored
from ripple.storage.log import Topic
from ripple.storage.log_uri import LogUri
from ripple.world import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class Routes:
    """Topics by a field's value; the first topic takes all other records."""

    def __init__(self, topic: Topic, given: Sequence[str]) -> None:
        """Open the topics. given: ``FIELD=VALUE:DIR/TOPIC`` each. Raises InputError."""
        self.topics = [topic]
        self._routes: list[tuple[str, pa.Scalar, int]] = []
        numbers: dict[str, int] = {}
        for text in given:
            field, value, place = _parsed(topic, text)
            if place not in numbers:
                numbers[place] = len(self.topics)
                self.topics.append(_like(topic, place))
            self._routes.append((field, value, numbers[place]))

    def divided(self, records: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield each topic's number with its records, in their order."""
        left = records
        for field, value, number in self._routes:
            fits = pc.fill_null(pc.equal(left.column(field), value), False)
            found = left.filter(fits)
            if found.num_rows:
                yield number, found
            left = left.filter(pc.invert(fits))
        if left.num_rows or not self._routes:
            yield 0, left


def _parsed(topic: Topic, text: str) -> tuple[str, pa.Scalar, str]:
    name, _, rest = text.partition("=")
    value, colon, place = rest.partition(":")
    fields = {field.name: field for field in topic.schema.fields}
    if not (colon and place) or name not in fields:
        there = ", ".join(fields)
        raise InputError(f"--route {text}: it is FIELD=VALUE:DIR/TOPIC, of the fields {there}")
    kind, _ = value_type(fields[name])
    try:
        found = stored(pa.array([value]), fields[name].type)[0]
        return name, found.cast(kind), place
    except pa.ArrowInvalid as error:
        raise InputError(f"--route {text}: {name} is {kind}: {error}") from error


def _like(topic: Topic, text: str) -> Topic:
    place = LogUri.parse(text)
    found = Topic.open(LiveDisk(place.folder, make=False), place.topic)
    if place.partition is not None or found.schema != topic.schema:
        raise InputError(f"--route to {text}: it must be a whole topic of {topic.schema.name}")
    return found
