"""Records from JSON lines: a file, compressed or not, or standard input."""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.cutting import recut
from ripple.connectors.files.json.parser import JsonParser
from ripple.connectors.line_blocks import line_blocks
from ripple.connectors.python_values import word_of
from ripple.connectors.raw_input import open_input
from ripple.connectors.record_shape import value_type
from ripple.connectors.validation import screened
from ripple.model.batch import RAW_BYTES_MAX, Batch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.connector import Reading
    from ripple.connectors.raw_input import RawInput
    from ripple.connectors.record_shape import RecordShape
    from ripple.connectors.validation import Shown

BLOCK_BYTES = 1 << 20
LINE_LENGTH_BYTES_MAX = 1 << 20
# In the order of the parser's verdicts.
REASONS = (
    "good",
    "line is longer than {length_bytes_max} bytes",
    "line is not valid UTF-8",
    "not a JSON record",
    "{field} is there twice",
    "{field} is not {type}",
    "{field} does not fit in 64 bits",
    "{field} is too large for a float",
    "{field} is too close to 0 for a float",
    "{field} is not valid UTF-8",
    "{field} is not a record",
)
_BLANKS = b" \t\r"


def open_source(path: str, reading: Reading) -> JsonSource:
    """Return the source at ``path``, which is opened when it is read."""
    return JsonSource(path, reading.shape, name=reading.name, batch_rows=reading.batch_rows)


class JsonSource:
    """The lines of ``path`` (``-``: standard input), each one JSON object, as records of ``shape``.

    Blank lines are no records; undeclared members are ignored, declared ones come once. ``null`` is
    none. An integer has neither point nor exponent; a float may be ``NaN``, ``Infinity`` or
    ``-Infinity``. Memory is bounded by LINE_LENGTH_BYTES_MAX, beyond which a line is rejected.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        shape: RecordShape,
        *,
        name: str = "records",
        batch_rows: int | None = 1000,
    ) -> None:
        self.name = name
        self._path = os.fspath(path)
        self._shape = shape
        self._batch_rows = batch_rows
        self._raw: RawInput | None = None
        self._kinds = {member.name: value_type(member)[0] for member in shape.schema.fields}

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        return recut(self._blocks(), self._batch_rows, from_offset)

    def close(self) -> None:
        """End the reading, even where it waits in another thread; the iterator has the file."""
        raw = self._raw
        if raw is not None:
            raw.interrupt()

    def _blocks(self) -> Iterator[Batch | None]:
        raw = self._raw = open_input(self._path)
        paths = dict(self._shape.paths)
        parser = JsonParser(
            list(self._kinds.items()), LINE_LENGTH_BYTES_MAX, paths, *self._shape.by_source_text
        )
        names = [*self._kinds, *parser.objects]
        try:
            offset, line_number = 0, 1
            for block in line_blocks(raw, BLOCK_BYTES, LINE_LENGTH_BYTES_MAX):
                if block is None:
                    yield None
                    continue
                if line_number == 1 and bytes(block[: len(BOM_UTF8)]) == BOM_UTF8:
                    block = block[len(BOM_UTF8) :]  # noqa: PLW2901 - itself, less a mark
                rows, line_ends, arrays, refused = parser.parse(block)
                if rows:
                    shown = _lines_shown(block, line_number)
                    yield screened_rows(
                        arrays, names, self._shape, refused, offset=offset, shown=shown
                    )
                offset += rows
                line_number += line_ends
        finally:
            self._raw = None
            raw.close()


def screened_rows(
    parsed: list[pa.Array],
    names: list[str],
    shape: RecordShape,
    refused: list[tuple[int, int, int]],
    *,
    offset: int,
    shown: Shown,
) -> Batch:
    """Return a JsonParser's rows, and why it refused others.

    names: of the columns, which are those of ``shape``, and of the objects.
    """
    kinds = [value_type(member)[0] for member in shape.schema.fields]
    reasons = {
        row: REASONS[verdict].format(
            length_bytes_max=LINE_LENGTH_BYTES_MAX,
            field=names[column],
            type=word_of(kinds[column], shape.logical.get(names[column]))
            if column < len(kinds)
            else "a record",
        )
        for row, verdict, column in refused
    }
    records = pa.RecordBatch.from_arrays(parsed, names[: len(kinds)])
    return screened(records, shape, offset, reasons, shown)


def _lines_shown(block: memoryview, first_number: int) -> Shown:
    """Show rows as the lines they were, which are told apart when the first one is asked for."""
    lines: list[tuple[int | None, bytes]] = []

    def shown(row: int) -> tuple[int | None, bytes]:
        if not lines:
            lines.extend(
                (number, line.removesuffix(b"\r")[:RAW_BYTES_MAX])
                for number, line in enumerate(bytes(block).split(b"\n"), first_number)
                if line.strip(_BLANKS)
            )
        return lines[row]

    return shown
