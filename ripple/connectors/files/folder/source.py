"""The records of several files as one source."""

from __future__ import annotations

import os
from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.cutting import recut
from ripple.connectors.files.csv.dialect import divided, has_options
from ripple.connectors.files.csv.format import CsvFormat
from ripple.connectors.files.folder.listing import data_file, files_at
from ripple.connectors.files.remote.address import checked
from ripple.connectors.files.remote.contract import version_of
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


def open_source(path: str, reading: Reading) -> FilesSource:
    """Return the source of a folder or a pattern; raises InputError and SchemaError."""
    place, options = divided(path)
    return FilesSource(files_at(place), reading, options)


def open_s3(path: str, reading: Reading) -> FilesSource:
    """Return the source of ``s3:`` and this; raises as ``open_source`` does."""
    return _open_remote(f"s3:{path}", reading)


def open_https(path: str, reading: Reading) -> FilesSource:
    """Return the source of ``https:`` and this; raises as ``open_source`` does."""
    return _open_remote(f"https:{path}", reading)


def _open_remote(address: str, reading: Reading) -> FilesSource:
    if not has_options(address):
        checked(address)  # before an error quotes it
    return open_source(address, reading)


def of_paths(paths: Sequence[str | os.PathLike[str]], reading: Reading) -> FilesSource:
    """Return the source of files in the order given; raises as ``open_source`` does."""
    return FilesSource([data_file(os.fspath(path)) for path in paths], reading)


def check(path: str) -> str:
    """Return how many files there are, and of which connector; raises InputError."""
    files = files_at(divided(path)[0])
    scheme = _format_of(files).connector.scheme
    return f"files: {len(files)} of {scheme}, the first {files[0].path}, the last {files[-1].path}"


def check_s3(path: str) -> str:
    """Return what ``check`` does of ``s3:`` and this; raises as it does."""
    return check(f"s3:{path}")


def check_https(path: str) -> str:
    """Return what ``check`` does of ``https:`` and this; raises as it does."""
    return check(checked(f"https:{path}"))


class FilesSource:
    """Files of one format, one after the other, as one source.

    Offsets go on from file to file; lines are counted in each. A field that a file's folders name
    has that value in all its records, and needs no column in the file.
    ``fraction_read`` is the fraction of all bytes in the batches so far, 0.0 to 1.0.
    """

    def __init__(self, files: Sequence[DataFile], reading: Reading, options: str = "") -> None:
        """Look at all files, and read none. Raises InputError and SchemaError.

        options: of CSV, as each file's URI has them.
        """
        self.name = reading.name
        self._format = _format_of(files)
        if options and self._format.connector.scheme != "csv":
            raise InputError(f"{files[0].path} is not CSV, and does not take {options!r}")
        self._options = options and f"?{options}"
        self._reading = reading
        self._sizes_bytes = [(file.version or version_of(file.path)).size_bytes for file in files]
        self._named = [(file.path, _named_in(file, reading.shape)) for file in files]
        self._read_files = 0
        self._firsts: list[int] = []  # the offset of the first record of each file so far
        self._open: Source | None = None

    @property
    def fraction_read(self) -> float | None:
        """How much was read, to a block; None where there is nothing to read."""
        total = sum(self._sizes_bytes)
        if not total:
            return None
        share = getattr(self._open, "fraction_read", None) or 0.0
        partly = share * self._sizes_bytes[self._read_files] if share else 0.0
        return (sum(self._sizes_bytes[: self._read_files]) + partly) / total

    def file_at(self, offset: int) -> str | None:
        """Return the file with a record that was read."""
        number = bisect_right(self._firsts, offset)
        return self._named[number - 1][0] if number else None

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        return recut(self._all(), self._reading.batch_rows, from_offset)

    def close(self) -> None:
        """Close the file that is being read."""
        opened, self._open = self._open, None
        if opened is not None:
            opened.close()

    def _all(self) -> Iterator[Batch]:
        offset, self._firsts = 0, []
        for number, (path, named) in enumerate(self._named):
            self._read_files = number
            asked = replace(self._reading, shape=_without(self._reading.shape, named.schema.names))
            opened = self._open = self._format._replace(path=path + self._options).opened(
                asked, is_readable
            )
            first = offset
            self._firsts.append(first)
            for batch in opened.batches():
                moved = self._moved(batch, first, path, named)
                offset = moved.next_offset
                yield moved
            self.close()

    def _moved(self, batch: Batch, first: int, path: str, named: pa.RecordBatch) -> Batch:
        """Return a file's batch with offsets among all files. first: of the file's first record."""
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


def _format_of(files: Sequence[DataFile]) -> Uri:
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


def _named_in(file: DataFile, shape: RecordShape) -> pa.RecordBatch:
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
