"""Sources in the program itself: tables, frames, lists, iterators and streams."""

from __future__ import annotations

from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from inspect import isasyncgenfunction, isgeneratorfunction
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.lazy_frames import lazy_batches
from ripple.connectors.memory import IteratorSource, MemorySource
from ripple.connectors.stream import Stream

if TYPE_CHECKING:
    from ripple.connectors.connector import Reading
    from ripple.connectors.contract import Source
    from ripple.connectors.inputs import Inputs

SOURCE_OBJECTS = (
    "a path or a list of paths, a folder, -, log:DIR/TOPIC, synthetic:N, an Arrow table, a data "
    "frame, a list or an iterator of batches, of mappings or of instances of a record class, an "
    "rp.Stream, or a source"
)


def python_source(place: Any, reading: Reading) -> Source | Inputs | None:
    """Return the source of the records of an object, None if it has none.

    Raises InputError and SchemaError as the sources do.
    """
    name, shape, batch_rows = reading.name, reading.shape, reading.batch_rows
    if isinstance(place, Stream):
        return place.inputs(name, shape)
    lazy = lazy_batches(place, [one.name.partition(".")[0] for one in shape.schema.fields])
    if lazy is not None:
        return IteratorSource(lazy, shape, name=name, batch_rows=batch_rows)
    if isinstance(place, (pa.Table, pa.RecordBatch)):
        return MemorySource([place], shape, name=name, batch_rows=batch_rows)
    if hasattr(place, "__arrow_c_stream__"):
        return IteratorSource([place], shape, name=name, batch_rows=batch_rows)
    if isinstance(place, Sequence) and not isinstance(place, (bytes, bytearray, memoryview)):
        return MemorySource(place, shape, name=name, batch_rows=batch_rows)
    if isinstance(place, Iterable) and not isinstance(place, (Mapping, Sequence)):
        return IteratorSource(place, shape, name=name, batch_rows=batch_rows)
    return None


def advice(place: object, name: str) -> str:
    """Return a remedy for an invalid source object; "" if none is known."""
    if isinstance(place, Mapping):
        return (
            "; put one record into a list, and columns into a pa.table; a dict of sources has "
            f"their names, here {name!r}"
        )
    if isgeneratorfunction(place) or isasyncgenfunction(place):
        return f"; call it, as in {place.__name__}(): what it returns yields the rows"
    if isinstance(place, AsyncIterable):
        return "; an async iterable is one in await rp.arun(...)"
    return "; a lazy frame is one after .collect()" if hasattr(place, "collect") else ""
