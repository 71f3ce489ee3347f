"""A dead letter: a rejected record, with all data to judge and retry it."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ripple.connectors.dead_letter import text_of
from ripple.connectors.inputs import Original
from ripple.core.errors import InputError
from ripple.model.batch import RAW_BYTES_MAX
from ripple.model.schema.types import Field, Int64, Schema, String

REASON_CHARACTERS_MAX = 500
# A record that is larger cannot be retried; its first RAW_BYTES_MAX bytes are kept all the same.
RECORD_BYTES_MAX = 1 << 20

_PLACE, _DATA, _FILE = b"original_place", b"original", b"file"
# Of buffers: of a list, Arrow would look for pandas first, and import it.
_NO_FIELDS = pa.RecordBatch.from_struct_array(pa.Array.from_buffers(pa.struct([]), 1, [None]))

QUARANTINE = "quarantine"
"""The step of a dead letter whose record killed the process."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A record that was rejected at ``offset`` of ``input``.

    step: the step of the pipeline that rejected it, or QUARANTINE; None: the source. version: the
    topology hash of the pipeline. record: the whole record as an Arrow IPC stream of one row,
    without columns if the source found no fields; its metadata holds the original and the file, if
    known. None without all of these, or if it is longer than RECORD_BYTES_MAX. written_ns: the time
    of writing, for people.
    """

    input: str
    offset: int
    line_number: int | None
    reason: str
    step: str | None
    pipeline: str
    version: str
    raw: bytes
    record: bytes | None
    written_ns: int

    @property
    def cause(self) -> str:
        """The step and its reason in one text, by which dead letters are counted."""
        return self.reason if self.step is None else f"{self.step}: {self.reason}"

    @property
    def file(self) -> str | None:
        """The file with the record, of a source of several files."""
        known = self._metadata()
        return os.fsdecode(known[_FILE]) if _FILE in known else None

    @property
    def can_be_retried(self) -> bool:
        """Whether its fields or its original were kept."""
        if self.record is None:
            return False
        known = self._metadata()
        return _FILE not in known or _DATA in known or self._row().num_columns > 0

    def row(self) -> pa.RecordBatch:
        """Return the whole record. Raises InputError if it was not stored, or cannot be read."""
        row = self._row()
        if row.num_columns:
            return row.replace_schema_metadata()
        if _DATA in (row.schema.metadata or {}):
            raise InputError("its source could not read it, and knows no fields of it")
        raise self._is_text_alone()

    def original(self) -> Original:
        """Return the record's original; raises as ``row`` does."""
        known = self._row().schema.metadata or {}
        if _DATA not in known:
            raise InputError("what it was where it came from was not kept")
        return Original(known.get(_PLACE, b"").decode(errors="replace"), known[_DATA])

    def _row(self) -> pa.RecordBatch:
        if self.record is None:
            raise self._is_text_alone()
        try:
            with pa.ipc.open_stream(self.record) as stream:
                batch = stream.read_next_batch()
            batch.validate(full=True)
        except (pa.ArrowInvalid, OSError, StopIteration) as error:
            raise InputError(f"the record cannot be read: {error}") from error
        if batch.num_rows != 1:
            raise InputError(f"there are {batch.num_rows} records instead of one")
        return batch

    def _metadata(self) -> dict[bytes, bytes]:
        """Return the metadata beside the fields; none if they cannot be read."""
        if self.record is None:
            return {}
        try:
            with pa.ipc.open_stream(self.record) as stream:
                return stream.schema.metadata or {}
        except (pa.ArrowInvalid, OSError):
            return {}

    def _is_text_alone(self) -> InputError:
        if len(self.raw) >= RAW_BYTES_MAX:
            return InputError("only its first bytes were kept")
        return InputError("only its text was kept: its source could not read it as a record")


def dumps_record(
    row: pa.RecordBatch | None, original: Original | None = None, file: str | None = None
) -> bytes | None:
    """Return one record as an Arrow IPC stream, None if that is too long, or there is no data.

    row: its fields. original: of the source. file: that has it. If all are too long together, the
    fields are left out, and then the original.
    """
    known = {} if file is None else {_FILE: os.fsencode(file)}
    if original is not None:
        more = {_PLACE: original.place.encode(), _DATA: original.data, **known}
        both = (_NO_FIELDS if row is None else row).replace_schema_metadata(more)
        data = _dumps(both) or _dumps(_NO_FIELDS.replace_schema_metadata(more))
        if data is not None:
            return data
    if row is not None:
        data = _dumps(row.replace_schema_metadata(known) if known else row)
        if data is not None:
            return data
    return _dumps(_NO_FIELDS.replace_schema_metadata(known)) if known else None


def _dumps(row: pa.RecordBatch) -> bytes | None:
    stored = pa.BufferOutputStream()
    with pa.ipc.new_stream(stored, row.schema) as writer:
        writer.write_batch(row)
    data = stored.getvalue()
    return None if data.size > RECORD_BYTES_MAX else data.to_pybytes()


# --- letters in a log ---

# Where a version of the pipeline began to read: what earlier versions refused from there on does
# not count any more, for this one judges those records anew.
START = "start"
LETTER = "letter"

SCHEMA = Schema(
    "dead_letter",
    (
        Field("kind", String()),
        Field("input", String()),
        Field("offset", Int64()),
        Field("line_number", Int64(), optional=True),
        Field("reason", String()),
        Field("step", String(), optional=True),
        Field("pipeline", String()),
        Field("version", String()),
        Field("raw", String(), optional=True),
        Field("raw_base64", String(), optional=True, doc="where raw is not UTF-8"),
        Field("record_base64", String(), optional=True, doc="Arrow IPC stream of one row"),
        Field("written_ns", Int64()),
    ),
)


def to_row(letter: Letter, kind: str = LETTER) -> dict[str, Any]:
    """Return a dead letter as a row of SCHEMA."""
    text = text_of(letter.raw)
    return {
        "kind": kind,
        "input": letter.input,
        "offset": letter.offset,
        "line_number": letter.line_number,
        "reason": letter.reason,
        "step": letter.step,
        "pipeline": letter.pipeline,
        "version": letter.version,
        "raw": text,
        "raw_base64": _to_base64(letter.raw if text is None else None),
        "record_base64": _to_base64(letter.record),
        "written_ns": letter.written_ns,
    }


def from_row(row: dict[str, Any]) -> Letter:
    """Return the dead letter of such a row."""
    raw = row["raw"]
    return Letter(
        input=row["input"],
        offset=row["offset"],
        line_number=row["line_number"],
        reason=row["reason"],
        step=row["step"],
        pipeline=row["pipeline"],
        version=row["version"],
        raw=base64.b64decode(row["raw_base64"]) if raw is None else raw.encode(),
        record=None if row["record_base64"] is None else base64.b64decode(row["record_base64"]),
        written_ns=row["written_ns"],
    )


def _to_base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
