"""Sinks in the program itself: a function, a list, a queue, an object with ``write``."""

from __future__ import annotations

import asyncio
import io
from inspect import Parameter, isasyncgenfunction, iscoroutinefunction, signature
from typing import TYPE_CHECKING, Any

from ripple.connectors.contract import BasicSink
from ripple.connectors.files.text.sink import TextSink, json_of
from ripple.connectors.target import STAYS
from ripple.core.errors import OutputError
from ripple.core.row_ops import with_named_ops
from ripple.model.schema.logical.showing import map_names, showing
from ripple.model.schema.python_rows import python_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from ripple.connectors.contract import Commit, Sink
    from ripple.model.pipeline.nodes import Output

_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

SINK_OBJECTS = (
    "in Python a list or a queue.Queue, which take rows as dicts, a function of a "
    "pyarrow.RecordBatch, an open file, or an object with write(changes)"
)


def python_sink(place: Any, output: Output) -> Sink | None:
    """Return the sink of an output that writes to an object, None if it is no target.

    Rows begin with ``op`` as a text of OP_NAMES; rows of events have none.
    A list and a queue take each row as a dict; a function, and an object with ``write``, take a
    batch at a time, with the reached ``Commit`` if they need a second argument; an open file takes
    lines of JSON. None of them is closed. Raises OutputError for an async object, which needs
    an event loop.
    """
    if isinstance(place, type):
        return None
    if isinstance(place, list):
        return CallingSink("a list", output, lambda batch, _: place.extend(python_rows(batch)))
    if isinstance(place, io.IOBase):
        return TextSink(OpenFile(place), json_of(output))
    if isinstance(place, asyncio.Queue):
        raise OutputError(
            "an asyncio.Queue is for the tasks of one event loop: call await rp.arun(...) there, "
            "or give a queue.Queue"
        )
    if hasattr(place, "put") and hasattr(place, "get"):  # queue's, or multiprocessing's
        return CallingSink(_name_of(place), output, lambda batch, _: _put_each(place, batch))
    write = getattr(place, "write", None)
    if callable(write):
        return CallingSink(_name_of(place), output, taking(write))
    if callable(place):
        return CallingSink(_name_of(place), output, taking(place))
    return None


class CallingSink(BasicSink):
    """A sink that calls a function with each batch of changes, ``op`` as text, and its commit."""

    takes_stored = True  # see OutputStatus: values are shown here, with maps also in keys

    def __init__(
        self, name: str, output: Output, write: Callable[[pa.RecordBatch, Commit], object]
    ) -> None:
        self.name = name
        self._is_stream = output.is_stream
        self._write = write
        self._show = showing(output.fields, map_names(output.fields, ()))

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        """Pass the changes on."""
        changes = changes if self._show is None else self._show(changes)
        self._write(changes if self._is_stream else with_named_ops(changes), reached)


class OpenFile:
    """A file that the program has opened, and closes itself. See Target."""

    promise = STAYS

    def __init__(self, file: Any) -> None:
        self.name = str(getattr(file, "name", "an open file"))
        self._file = file
        self._is_text = isinstance(file, io.TextIOBase)

    def write(self, data: bytes | memoryview) -> int:
        """Write all of ``data``, as text to a file of text."""
        self._file.write(bytes(data).decode() if self._is_text else data)
        return len(data)

    def commit(self) -> None:
        """Flush, so that readers see the lines."""
        self._file.flush()

    def close(self) -> None:
        """Leave the file open: it is the program's."""


def taking(write: Callable[..., object]) -> Callable[[pa.RecordBatch, Commit], object]:
    """Return a function of a batch and its commit, also for a function of the batch alone.

    Raises OutputError for an async function, which no caller would await.
    """
    if iscoroutinefunction(write) or isasyncgenfunction(write):
        raise OutputError(
            f"{_name_of(write)} is async, and is called without await here: write def, or call "
            "await rp.arun(...), which awaits it"
        )
    return write if takes_commit(write) else lambda batch, _: write(batch)


def takes_commit(write: Callable[..., object]) -> bool:
    """Tell whether a function has a second parameter that must be given."""
    try:
        given = signature(write).parameters.values()
    except (TypeError, ValueError):  # a function of C without a signature
        return False
    needed = [one for one in given if one.default is one.empty and one.kind in _BY_PLACE]
    return len(needed) > 1


def _put_each(place: Any, batch: pa.RecordBatch) -> None:
    for row in python_rows(batch):
        place.put(row)


def _name_of(place: object) -> str:
    return str(getattr(place, "__qualname__", type(place).__name__))
