"""The objects of a log of answers: batches of answers, and segments with an index.

An object of the log is the data of a journal's object (``ripple.storage.fenced``), or a segment: an
object of its own, which the index names. Both hold consecutive Arrow streams, each with a batch of
answers to one question in the form of ``answer_rows``; the metadata of its schema names the ask,
the question, and the offset of the first answer. A stream without answers declares its question:
from then on every row is asked for.

A ``whole`` object of the journal begins with the index, a stream without columns: its metadata has
``segments``, the JSON of ``Index``. All answers before ``Index.end`` are in the segments.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.codec.crc import crc32c
from ripple.core.errors import InputError
from ripple.engine.operators.answer_names import INPUT, OFFSET, REASON, ROW
from ripple.engine.operators.answer_rows import answer_schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import numpy.typing as npt

    from ripple.core.cut import Cut
    from ripple.model.pipeline.waiting_nodes import Ask

OBJECT_BYTES_MAX = 4 << 20
"""The bytes of answers in one object of the journal; a larger answer has an object of its own."""
KNOWN_ROWS_MAX = 4096
"""The answers of one batch."""

OWN_COLUMNS = 4
"""The columns before the fields of an answer."""

_ASK, _QUESTION, _FIRST, _SEGMENTS = b"ask", b"question", b"first", b"segments"


@dataclass(frozen=True)
class Recorded:
    """Consecutive answers to one question in the log.

    question: its key. first: the offset of the first answer. rows: as they were recorded.
    """

    ask: str
    question: str
    first: int
    rows: pa.RecordBatch

    @property
    def end(self) -> int:
        """The offset after the last answer."""
        return int(self.first + self.rows.num_rows)

    def from_offset(self, offset: int) -> Recorded:
        """Return the answers from an offset of theirs on."""
        return replace(self, first=offset, rows=self.rows.slice(offset - self.first))

    def lacks(self, field: str) -> bool:
        """Return whether an answer has no value of a field; a failure is no answer."""
        answered = self.rows.filter(pc.is_null(self.rows.column(REASON)))
        if field not in answered.schema.names:
            return bool(answered.num_rows)
        return bool(answered.column(field).null_count)

    def known(self, cut: Cut, stop: int) -> pa.RecordBatch:
        """Return the first answers before ``stop`` to records before ``cut``."""
        rows = self.rows.slice(0, min(max(0, stop - self.first), KNOWN_ROWS_MAX))
        unread = np.flatnonzero(np.asarray(rows.column(OFFSET)) >= _read(rows, cut))
        return rows.slice(0, int(unread[0])) if len(unread) else rows


def _read(rows: pa.RecordBatch, cut: Cut) -> npt.NDArray[np.int64]:
    """Return per answer the next offset of its input. Raises InputError for an unknown input."""
    inputs = rows.column(INPUT).dictionary_encode()
    ends = []
    for name in inputs.dictionary.to_pylist():
        if name not in cut:
            raise InputError(
                f"the log of answers has answers to records of {name!r}, which this run does not "
                "read: give the sources that they were recorded with, or another folder of "
                "checkpoints and other outputs"
            )
        ends.append(cut[name])
    found: npt.NDArray[np.int64] = np.asarray(ends, np.int64)[np.asarray(inputs.indices)]
    return found


@dataclass(frozen=True)
class Segment:
    """An object with consecutive answers, as the index has it.

    first, end: their offsets. reach: per input the offset after the last record with an answer.
    filled: per question the fields that no answer lacks.
    """

    name: str
    first: int
    end: int
    length_bytes: int
    checksum: int
    reach: dict[str, int]
    filled: dict[str, list[str]]

    def is_passed(self, inputs: Cut, offset: int) -> bool:
        """Return whether nothing needs it: no record in ``inputs``, and no checkpoint.

        inputs: the first record of each. offset: the least in the log of the kept checkpoints.
        """
        return self.end <= offset and all(
            end <= inputs.get(name, 0) for name, end in self.reach.items()
        )


@dataclass(frozen=True)
class Index:
    """The segments of a log, in order and without holes. end: the offset after the last one."""

    end: int = 0
    segments: tuple[Segment, ...] = ()

    @property
    def first(self) -> int:
        """The first offset that can be read from, if no answers follow."""
        return self.segments[0].first if self.segments else self.end


def segment_of(parts: Sequence[Recorded], name: str) -> tuple[Segment, bytes]:
    """Return a segment with answers, at least one, and its object."""
    data = encoded(parts)
    reach: dict[str, int] = {}
    names: dict[str, dict[str, bool]] = {}
    for one in parts:
        own = pa.table([one.rows.column(INPUT), one.rows.column(OFFSET)], ["input", "offset"])
        last = own.group_by("input").aggregate([("offset", "max")])
        for row in last.to_pylist():
            reach[row["input"]] = max(reach.get(row["input"], 0), row["offset_max"] + 1)
        names.setdefault(one.question, {}).update(dict.fromkeys(one.rows.schema.names, True))
    filled = {
        question: [
            name
            for name in list(known)[OWN_COLUMNS:]
            if name != ROW
            and not any(one.question == question and one.lacks(name) for one in parts)
        ]
        for question, known in names.items()
    }
    first, end = parts[0].first, parts[-1].end
    return Segment(name, first, end, len(data), crc32c(data), reach, filled), data


def answers_of_segment(segment: Segment, data: bytes | None) -> list[Recorded]:
    """Return the answers in a segment's object. Raises InputError for any other data."""
    if data is None or len(data) != segment.length_bytes or crc32c(data) != segment.checksum:
        why = "is missing" if data is None else "does not hold the bytes that were written"
        raise damaged(f"{segment.name} {why}")
    return answers_in(data)[1]


def damaged(why: str) -> InputError:
    """Return the error for an object of the log that is lost."""
    return InputError(
        f"the log of answers is damaged: {why}. Restore that object, or begin with another folder "
        "of checkpoints and outputs"
    )


def fitted(rows: pa.RecordBatch, ask: Ask) -> pa.RecordBatch:
    """Return recorded answers with the fields of an ask; missing ones are null."""
    schema = answer_schema(ask)
    columns = [
        rows.column(field.name)
        if field.name in rows.schema.names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def with_rows(
    answers: pa.RecordBatch, rows: Sequence[Callable[[], bytes | None]]
) -> pa.RecordBatch:
    """Return answers with the asked rows of failures, as a log has them."""
    failed = answers.column(REASON).is_valid().to_pylist()
    asked = [row() if is_failed else None for row, is_failed in zip(rows, failed, strict=True)]
    return answers.append_column(ROW, pa.array(asked, pa.binary()))


def divided(
    new: Iterable[tuple[str, pa.RecordBatch]], keys: Mapping[str, str], first: int
) -> tuple[list[Recorded], list[tuple[str, pa.RecordBatch]]]:
    """Return the new answers for one object, from offset ``first`` on, and the remaining ones."""
    left = list(new)
    taken: list[Recorded] = []
    room = OBJECT_BYTES_MAX
    while left:
        ask, rows = left[0]
        count = rows.num_rows
        while count > 1 and rows.slice(0, count).nbytes > room:
            count //= 2
        if taken and rows.slice(0, count).nbytes > room:
            break
        one = Recorded(ask, keys[ask], first, rows.slice(0, count))
        taken.append(one)
        room, first = room - one.rows.nbytes, one.end
        left[:1] = [(ask, rows.slice(count))] if count < rows.num_rows else []
    return merged(taken), left


def merged(parts: Iterable[Recorded]) -> list[Recorded]:
    """Merge consecutive parts of one question: batches of one row would be costly."""
    runs: list[list[Recorded]] = []
    for one in parts:
        last = runs[-1][-1] if runs else None
        if last and last.question == one.question and last.rows.schema == one.rows.schema:
            runs[-1].append(one)
        else:
            runs.append([one])
    return [
        replace(run[0], rows=pa.concat_batches([one.rows for one in run])) if run[1:] else run[0]
        for run in runs
    ]


def no_rows(schema: pa.Schema) -> pa.RecordBatch:
    """Return no answers, with a schema."""
    return pa.RecordBatch.from_pylist([], schema)


def encoded(parts: Iterable[Recorded], index: Index | None = None) -> bytes:
    """Return the parts as consecutive Arrow streams; index: that of a whole object."""
    sink = pa.BufferOutputStream()
    if index is not None:
        schema = pa.schema([], {_SEGMENTS: json.dumps(asdict(index), separators=(",", ":"))})
        pa.ipc.new_stream(sink, schema).close()
    for one in parts:
        about = {_ASK: one.ask, _QUESTION: one.question, _FIRST: str(one.first)}
        rows = one.rows.replace_schema_metadata(about)
        with pa.ipc.new_stream(sink, rows.schema) as writer:
            writer.write_batch(rows)
    return cast("bytes", sink.getvalue().to_pybytes())


def answers_in(data: bytes) -> tuple[Index | None, list[Recorded]]:
    """Return the index in one object, if it has one, and its answers."""
    source, index, found = pa.BufferReader(data), None, list[Recorded]()
    while source.tell() < len(data):
        with pa.ipc.open_stream(source) as reader:
            about = reader.schema.metadata
            batches = list(reader)
            # Closing reads to the end of the stream, the beginning of the next one.
        if _SEGMENTS in about:
            held = json.loads(about[_SEGMENTS])
            index = Index(held["end"], tuple(Segment(**one) for one in held["segments"]))
            continue
        (rows,) = batches
        rows = rows.replace_schema_metadata(None)
        ask, question = about[_ASK].decode(), about[_QUESTION].decode()
        found.append(Recorded(ask, question, int(about[_FIRST]), rows))
    return index, found
