"""Originals of dead letters: a batch of one record, in the brokers' format."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.inputs import Original
from ripple.connectors.kafka.batches import ProducerId, batches
from ripple.connectors.kafka.errors import DamagedError
from ripple.connectors.kafka.record_batches import BATCH_BYTES_MAX, decoded
from ripple.core.errors import InputError
from ripple.world.broker import Records, TopicPartition

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_NOBODY = ProducerId(-1, -1)


class Kept(NamedTuple):
    """A record that was kept, as columns of one row, and the place that it was read from."""

    place: TopicPartition
    records: Records


def original_of(place: TopicPartition, records: Records, row: int) -> Original:
    """Return a row of a fetch."""
    one = at_rows(records, slice(row, row + 1))
    ((_, body, head),) = batches(one, place, BATCH_BYTES_MAX, "none")
    return Original(str(place), head.with_body(body, _NOBODY, -1, is_transactional=False))


def kept_of(original: Original) -> Kept:
    """Return the argument of ``original_of``. Raises InputError for a text of another origin."""
    topic, _, partition = original.place.rpartition("/")
    try:
        (read,) = decoded(original.data, 0, (), headers=True)
        return Kept(TopicPartition(topic, int(partition)), read.records)
    except (DamagedError, ValueError) as error:
        raise InputError(f"the record cannot be read: {error}") from error


def at_rows(records: Records, rows: slice, times: npt.NDArray[np.int64] | None = None) -> Records:
    """Return rows that follow each other. times: others than their own."""
    return Records(
        records.keys[rows],
        records.values[rows],
        records.timestamps_ms[rows] if times is None else times,
        None if records.headers is None else records.headers[rows],
    )
