"""A table of a lake as an output: its schema, and the checks of any system."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.record_shape import arrow_schema_of
from ripple.connectors.tables.record import Record
from ripple.core.errors import OutputError, SchemaError
from ripple.core.row_ops import OP, OP_NAMES, OP_SET
from ripple.model.schema.logical.showing import map_names, shown_schema
from ripple.model.schema.text_columns import is_text
from ripple.model.schema.types import DateTime, List, bare_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.connectors.connector import Writing

# Changes, or events as they are read.
Rows: TypeAlias = pa.Table | pa.RecordBatchReader
_MICROS = pa.timestamp("us", "UTC")


class OutputTable(ABC):
    """The table of one output, a row per key or event. Errors are raised as OutputError.

    kind: of its place, for errors.
    """

    kind = "table"

    def __init__(self, name: str, system: str, writing: Writing) -> None:
        """Look at nothing yet. name: its URI. system: for errors."""
        self.name, self._id = name, ""
        self.owner = Owner(writing.plan.name, writing.output.name)
        fields = writing.output.fields
        self.is_stream = writing.output.is_stream
        self.key = [f.name for f in writing.plan.key_of(writing.output)]
        self._times = [one.name for one in fields if bare_type(one.type) == DateTime()]
        for at in self._times:
            if at in self.key:
                raise OutputError(
                    f"cannot write {name}: the key {at!r} is a time of nanoseconds, and "
                    f"{system}'s have microseconds: derive rp.col({at!r}).cast(int) before the "
                    "fold"
                )
        try:
            maps = map_names(fields, self.key)
            self.schema = shown_schema(arrow_schema_of(fields), fields, maps)
        except SchemaError as error:
            raise OutputError(
                f"cannot write {name}: {error}. Records and lists of them go to Parquet, JSON "
                "lines, logs and PostgreSQL"
            ) from error
        for field in fields:
            of = bare_type(field.type)
            if isinstance(of, List) and of.of == DateTime():
                raise OutputError(
                    f"cannot write {name}: field {field.name!r} is a list of times of nanoseconds, "
                    f"and {system}'s have microseconds: declare the items as rp.Timestamp, or as "
                    "str"
                )
        for one in self._times:
            place = self.schema.get_field_index(one)
            self.schema = self.schema.set(place, self.schema.field(place).with_type(_MICROS))

    def written(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows with their times in microseconds, the nanoseconds cut off."""
        for name in self._times:
            at = rows.schema.get_field_index(name)
            numbers = rows.column(at).cast(pa.int64())
            micros = np.asarray(numbers.fill_null(0)) // 1000
            null = np.asarray(numbers.is_null()) if numbers.null_count else None
            column = pa.array(micros, mask=null).cast(_MICROS)
            rows = rows.set_column(at, rows.schema.field(at).with_type(_MICROS), column)
        return rows

    @abstractmethod
    def record(self) -> Record | None:
        """Return the content of our newest commit, None without a table; read it anew."""

    @abstractmethod
    def make(self, record: Record) -> None:
        """Create the table, without rows; nothing if another process has done so meanwhile."""

    @abstractmethod
    def commit(self, changes: Rows, record: Record) -> bool:
        """Bring changes into the table, each key once; False if another commit came between."""

    @abstractmethod
    def keys(self, key: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield the fields ``key`` of all rows, with ``op``."""

    @abstractmethod
    def replace(self, rows: Rows, record: Record) -> None:
        """Let the table be these rows, in one commit."""

    def check_id(self, id_: str) -> None:
        """Note which table it is. Raises OutputError where it was another one."""
        if self._id not in ("", id_):
            raise OutputError(
                f"cannot write {self.name}: it is another table than the one that was written "
                "until now: bring that one back, or remove this one to start over"
            )
        self._id = id_

    def foreign(self) -> OutputError:
        """Return the error for a table without a commit of ours."""
        return OutputError(
            f"cannot write {self.name}: there is such a table, which no run has made"
        )

    def check_columns(self, found: pa.Schema) -> None:
        """Raise OutputError for a table with other columns."""
        for field in self.schema:
            at = found.get_field_index(field.name)
            if at < 0 or not _are_alike(found.field(at).type, field.type):
                there = (
                    f"which is {found.field(at).type} there" if at >= 0 else "which is not there"
                )
                raise OutputError(
                    f"cannot write {self.name}: the output has a column {field.name!r} "
                    f"({field.type}), {there}. Name another {self.kind}, or remove this one"
                )

    def record_in(self, text: str) -> Record:
        """Return the content of a commit of this output. Raises OutputError for others."""
        try:
            record = Record.from_json(text)
        except (ValueError, KeyError, TypeError) as error:
            raise OutputError(f"{self.name}: what its log says of us cannot be read") from error
        if record.owner != self.owner:
            raise OutputError(
                f"{self.name} belongs to {record.owner}, not to {self.owner}: choose another URI"
            )
        return record


def _are_alike(found: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether types have the same values; systems name the items of lists in other ways."""
    if kinds.is_map(wanted) and kinds.is_map(found):
        pairs = ((found.key_type, wanted.key_type), (found.item_type, wanted.item_type))
        return all(_are_alike(*pair) for pair in pairs)
    if kinds.is_list(wanted) and (kinds.is_list(found) or kinds.is_large_list(found)):
        return _are_alike(found.value_type, wanted.value_type)
    return bool(found == wanted) or (is_text(found) and is_text(wanted))


def as_set(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows of a table as changes, with ``op`` as text, last."""
    return rows.append_column(OP, pa.array([OP_NAMES[OP_SET]] * rows.num_rows, pa.string()))
