"""Landing of a streaming DataFrame's micro-batches in a log, each exactly once.

Spark repeats a batch that was not committed, perhaps with other rows or in another order. So a
batch is first written durably to one file, in order of event time, and appended to the log from
there; a batch with a file is not requested again. A frame of the log notes its batch and piece, so
that none is appended twice.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.dead_letter import letter_of
from ripple.connectors.locate import open_source
from ripple.core.errors import InputError
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.batch import Batch
from ripple.model.keys.partitioner import partitioned
from ripple.model.pipeline.topology import stages_of
from ripple.spark import packets
from ripple.storage.log import PartitionReader, PartitionWriter, Topic, TopicError
from ripple.storage.log_uri import PREFIX, LogUri
from ripple.task.one_shot import entries
from ripple.world import LiveClock, LiveDisk
from ripple.world.replacing import replace

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.inputs import Inputs
    from ripple.model.pipeline.plan import Plan

ROWS_MAX = 1 << 14
ROWS_AT_ONCE = 1 << 16  # brought into the record's types
"""Records per frame."""

_BYTES_MAX = 1 << 32
_QUERY, _BATCH, _PIECE = "spark-query", "spark-batch", "spark-piece"


class Landing:
    """A topic, and a folder next to it with the Spark checkpoint of the query that fills it.

    Invariant: a partition has a prefix of the pieces of its batches, in order, each once.
    """

    def __init__(self, topic: Topic, plan: Plan) -> None:
        self._topic = topic
        self._plan = plan
        self._folder = f"{topic.path}.spark"
        topic.disk.make_folder(self._folder)

    @classmethod
    def at(cls, place: str, plan: Plan, partitions: int | None) -> Self:
        """Open ``log:DIR/TOPIC``, or create it with so many partitions, by the plan's key.

        Raises InputError.
        """
        if not place.startswith(PREFIX):
            raise InputError(f"records land in a log, {PREFIX}DIR/TOPIC, not in {place!r}")
        at = LogUri.parse(place)
        if at.partition is not None:
            raise InputError(f"records land in all partitions of a topic, not in {place!r}")
        disk = LiveDisk(at.folder)
        try:
            if disk.exists(f"{at.topic}/topic"):
                topic = Topic.open(disk, at.topic)
            else:
                topic = _made(disk, at.topic, plan, partitions or 1)
        except (TopicError, OSError) as error:
            raise InputError(f"cannot land in {place}: {error}") from error
        if topic.partitions > 1 and not topic.key:
            raise InputError(f"{place} has no key by which records go to its partitions")
        fields = [member.name for member in topic.schema.fields]
        if topic.schema != plan.source.schema:
            raise InputError(f"{place} is of other records: it has {', '.join(fields)}")
        return cls(topic, plan)

    @property
    def query(self) -> str:
        """The folder of the query's Spark checkpoint."""
        return f"{self._topic.disk.root}/{self._folder}/query"  # type: ignore[attr-defined]

    def check(self, schema: pa.Schema) -> None:
        """Raise SchemaError unless the columns are those of the plan's records."""
        self._source(schema.empty_table())

    def take(self, number: int, rows: Callable[[], pa.Table]) -> int:
        """Append a batch once; return its number of records; the rest are dead letters.

        number: the batch's. rows: called if the batch is new. Raises InputError if the log was
        filled by another query, SchemaError and OSError.
        """
        query = self._query_id()
        stood = [self._last_piece(one, query) for one in range(self._topic.partitions)]
        taken = self._staged(number, rows)
        parts = self._divided(taken)
        for partition, (batch, piece) in enumerate(stood):
            if batch > number or not parts[partition].num_rows:
                continue
            begin = (piece + 1) * ROWS_MAX if batch == number else 0
            if begin < parts[partition].num_rows:
                self._append(partition, parts[partition], begin, number, query)
        self._forget(number)
        count: int = taken.num_rows
        return count

    def _append(
        self, partition: int, rows: pa.RecordBatch, begin: int, number: int, query: str
    ) -> None:
        holder = "a streaming DataFrame of ripple.spark.run"
        with PartitionWriter(self._topic, partition, LiveClock(), holder=holder) as writer:
            for at in range(begin, rows.num_rows, ROWS_MAX):
                piece = str(at // ROWS_MAX)
                notes = {_QUERY: query, _BATCH: str(number), _PIECE: piece}
                writer.append(rows.slice(at, ROWS_MAX), notes=notes)
            writer.sync()

    def _last_piece(self, partition: int, query: str) -> tuple[int, int]:
        """Return the last batch and piece in a partition."""
        with PartitionReader(self._topic, partition) as reader:
            first, end = reader.range()
            if first == end:
                return -1, -1
            notes = reader.notes_at(end - 1)
        if notes.get(_QUERY) != query:
            raise InputError(
                f"{PREFIX}{self._topic.path} was filled by another query or program: its "
                f"Spark checkpoint, {self.query}, is gone, so the rows in it are unknown. "
                "Let them land in another topic"
            )
        return int(notes[_BATCH]), int(notes[_PIECE])

    def _staged(self, number: int, rows: Callable[[], pa.Table]) -> pa.RecordBatch:
        disk, path = self._topic.disk, f"{self._folder}/batch-{number}"
        if disk.exists(path):
            return packets.loads(disk.read_bytes(path, length_max=_BYTES_MAX))
        good, letters = [], []
        source = self._source(self._in_order(rows()))
        for batch in entries(source, ROWS_AT_ONCE):
            assert isinstance(batch, Batch)  # tables have no markers
            good.append(batch.records)
            letters += [letter_of(f"batch {number}", bad) for bad in batch.rejected]
        if letters:
            lines = "".join(f"{json.dumps(one)}\n" for one in letters)
            replace(disk, f"{self._folder}/refused-{number}.jsonl", lines.encode())
        schema = pa.schema(arrow_fields(self._plan.source.fields))
        table = pa.Table.from_batches(good, good[0].schema if good else schema).combine_chunks()
        batches = table.to_batches()
        taken = batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
        replace(disk, path, packets.dumps(taken))
        return taken

    def _in_order(self, rows: pa.Table) -> pa.Table:
        field = self._plan.source.time_field
        if field is None:
            return rows
        return rows.take(pc.sort_indices(rows.column(field)))  # stable

    def _divided(self, rows: pa.RecordBatch) -> list[pa.RecordBatch]:
        count, key = self._topic.partitions, self._topic.key
        if count == 1 or not rows.num_rows:
            return [rows, *(rows.slice(0, 0) for _ in range(count - 1))]
        found = dict(partitioned(rows, key, count))
        return [found.get(one, rows.slice(0, 0)) for one in range(count)]

    def _forget(self, number: int) -> None:
        """Remove files of batches that Spark cannot repeat: it has begun this one."""
        disk = self._topic.disk
        for name in disk.list(self._folder):
            kind, _, said = name.partition("-")
            if kind == "batch" and said.isdigit() and int(said) < number:
                disk.remove(f"{self._folder}/{name}")

    def _query_id(self) -> str:
        data = self._topic.disk.read_bytes(f"{self._folder}/query/metadata", length_max=1 << 16)
        return str(json.loads(data)["id"])

    def _source(self, table: pa.Table) -> Inputs:
        schema, name = self._plan.source.schema, self._plan.source.name
        return open_source(table, schema, name=name, batch_rows=ROWS_AT_ONCE)


def _made(disk: LiveDisk, path: str, plan: Plan, partitions: int) -> Topic:
    key = stages_of(plan)[0].key
    names = [member.name for member in plan.source.schema.fields]
    if partitions > 1 and not (key and set(key) <= set(names)):
        raise InputError(
            f"{plan.name} does not declare a key of its records: give 1 "
            "partition, or create the topic with ripple log create"
        )
    return Topic.create(
        disk,
        path,
        plan.source.schema,
        partitions=partitions,
        key=key if partitions > 1 else (),
        time_field=plan.source.time_field,
    )
