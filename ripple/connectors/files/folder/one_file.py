"""Files of one format, each read with its offsets among all."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.files.csv.format import CsvFormat
from ripple.connectors.record_shape import RecordShape, value_type
from ripple.connectors.registry import Uri, of_file
from ripple.connectors.source_inputs import is_readable
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.model.schema.types import Schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.connectors.connector import Reading
    from ripple.connectors.contract import Source
    from ripple.connectors.files.folder.listing import DataFile
    from ripple.model.schema.checks import Checks
    from ripple.model.schema.types import Field

_VALUE_BYTES_MAX = 4096  # file systems allow names of 255


def format_of(files: Sequence[DataFile]) -> Uri:
    """Return the first file's URI. Raises InputError unless one connector reads all files."""
    first = of_file(files[0].path)
    for file in files[1:]:
        found = of_file(file.path)
        if found.connector is not first.connector:
            raise InputError(
                f"{files[0].path} is read as {first.connector.scheme}, and {file.path} as "
                f"{found.connector.scheme}: read files of one format, by a pattern such as "
                f"files:{os.path.join(os.path.dirname(files[0].path) or '.', '*.csv')}"
            )
    return first


class FileReader:
    """Reads the files of a source, all of one format."""

    def __init__(self, form: Uri, reading: Reading, options: str = "") -> None:
        """form: the URI of one of them. options: of CSV, as in each file's URI.

        Raises InputError.
        """
        if options and form.connector.scheme != "csv":
            raise InputError(f"{form.path} is not CSV, and does not take {options!r}")
        self._form = form
        self._options = options and f"?{options}"
        self._reading = reading

    def named(self, file: DataFile) -> pa.RecordBatch:
        """Return the fields that a file's folders name, as one row; raises InputError."""
        return named_in(file, self._reading.shape)

    def opened(self, path: str, named: pa.RecordBatch) -> Source:
        """Return one file as a separate source; raises as opening it does."""
        asked = replace(self._reading, shape=_without(self._reading.shape, named.schema.names))
        opened: Source = self._form._replace(path=path + self._options).opened(asked, is_readable)
        return opened

    def batches(
        self, opened: Source, first: int, path: str, named: pa.RecordBatch
    ) -> Iterator[Batch]:
        """Yield a file's batches with offsets among all. first: of the file's first record."""
        for batch in opened.batches():
            assert isinstance(batch, Batch)
            yield self._moved(batch, first, path, named)

    def _moved(self, batch: Batch, first: int, path: str, named: pa.RecordBatch) -> Batch:
        records = batch.records
        columns = [
            pa.repeat(named.column(field.name)[0], records.num_rows)
            if field.name in named.schema.names
            else records.column(field.name)
            for field in self._schema
        ]
        offsets = batch.row_offsets
        return Batch(
            pa.RecordBatch.from_arrays(columns, schema=self._schema),
            first + batch.next_offset,
            tuple(replace(bad, offset=first + bad.offset, file=path) for bad in batch.rejected),
            None if offsets is None else offsets + first,
        )

    @property
    def _schema(self) -> pa.Schema:
        return self._reading.shape.arrow_schema()


def named_in(file: DataFile, shape: RecordShape) -> pa.RecordBatch:
    """Return the fields that a file's folders name, as one row. Raises InputError for a misfit."""
    given = dict(file.fields)
    members = [one for one in shape.schema.fields if one.name in given]
    return pa.RecordBatch.from_pydict(
        {one.name: _value(file.path, one, given[one.name], shape.checks) for one in members}
    )


def _value(path: str, member: Field, text: str | None, checks: Mapping[str, Checks]) -> pa.Array:
    """Return a field's value in a folder's name, read as a field of CSV is, as an array of one."""
    from ripple.connectors.files.csv.reader import CsvReader  # noqa: PLC0415 - few folders name any

    kind, optional = value_type(member)
    if text is None and optional:
        return pa.nulls(1, kind)
    own = {name: one for name, one in checks.items() if name == member.name}
    form = CsvFormat(Schema("folder", (member,)), own, comments="none")
    line = '"' + (text or "").replace('"', '""') + '"\n'
    (batch,) = CsvReader(form, path, _VALUE_BYTES_MAX).read([memoryview(line.encode())])
    assert batch is not None
    if batch.rejected or text is None:
        reason = batch.rejected[0].reason if batch.rejected else f"{member.name} is empty"
        raise InputError(f"{path}: {reason}, by the name of its folder")
    return batch.records.column(0)


def _without(shape: RecordShape, names: Sequence[str]) -> RecordShape:
    """Return the shape of records without some fields. Raises InputError where none is left."""
    if not names:
        return shape
    members = tuple(one for one in shape.schema.fields if one.name not in names)
    if not members:
        raise InputError(f"the folders name all fields of {shape.schema.name}: no file has one")
    columns = shape.columns
    return RecordShape(
        replace(shape.schema, fields=members),
        {name: one for name, one in shape.checks.items() if name not in names},
        None if columns is None else tuple(name for name in columns if name not in names),
        shape.table,
        shape.units.difference(names),
        shape.iso.difference(names),
        {name: kind for name, kind in shape.logical.items() if name not in names},
    )
