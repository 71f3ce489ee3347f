"""Rows of Parquet files in the order of a replay, read by the tasks themselves.

The statistics of row groups tell their times. So a task reads the groups in order of time, holds
those that overlap, and sorts only these: rows cross no JVM, and no shuffle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.types as kinds

from ripple.model.keys.partitioner import partition_numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any, TypeAlias

    import numpy.typing as npt

    Ints: TypeAlias = npt.NDArray[np.int64]

HELD_BYTES_MAX = 256 << 20
"""Bytes of rows that a task holds at most, by the sizes that the files tell."""
FILES_MAX = 1000
"""Files whose footers the driver reads at most."""
_OPEN_MAX = 16
_TEXT_BYTES = 4
_ROWS_AT_ONCE = 1 << 16
_LEGACY = b"org.apache.spark.legacyDateTime"  # times of another calendar, converted by Spark


@dataclass(frozen=True, slots=True)
class Piece:
    """A row group of a file.

    length: its bytes, not compressed. first, last: its times, as integers of the column's unit.
    """

    path: str
    group: int
    rows: int
    length: int
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Scan:
    """Rows of files, in order, divided into ``tasks`` by a key.

    Invariant: ``pieces`` are in order of their first times. types: of the columns read.
    order: columns that order the rows, event time first. floats: columns with signed zeros,
    distinguished last. names: for each returned column, its name in the files. key:
    columns. uuids: of the key, texts of either case. start, stop: times in the column's unit.
    """

    pieces: tuple[Piece, ...]
    types: Mapping[str, pa.DataType]
    order: tuple[str, ...]
    floats: tuple[str, ...]
    names: Mapping[str, str]
    key: tuple[str, ...]
    uuids: tuple[str, ...]
    tasks: int
    start: int | None = None
    stop: int | None = None

    @property
    def rows(self) -> int | None:
        """The number of rows, None where a time range selects among them."""
        is_whole = self.start is None and self.stop is None
        return sum(piece.rows for piece in self.pieces) if is_whole else None

    @property
    def held_bytes(self) -> int:
        """The bytes that a task holds at most, where they are not too many."""
        most, held = 0, list[Piece]()
        for piece in self.pieces:
            held = [one for one in held if one.last >= piece.first]
            held.append(piece)
            most = max(most, 2 * sum(one.length for one in held) // self.tasks + piece.length)
            if most > HELD_BYTES_MAX:
                break
        return most

    def by_one_task(self, rows_max: int) -> Scan | None:
        """Return the same rows read by one task; None where they are more than ``rows_max``.

        Also None where it would hold too many.
        """
        if sum(piece.rows for piece in self.pieces) > rows_max:
            return None
        whole = replace(self, key=(), uuids=(), tasks=1)
        return whole if whole.held_bytes <= HELD_BYTES_MAX else None

    def within(self, start: int | None, stop: int | None) -> Scan:
        """Return the rows of a range of time, in the column's unit."""
        chosen = [
            piece
            for piece in self.pieces
            if (start is None or piece.last >= start) and (stop is None or piece.first < stop)
        ]
        return replace(self, pieces=tuple(chosen), start=start, stop=stop)

    def batches(self, number: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, in order."""
        held: list[tuple[pa.Table, Ints]] = []
        with _Files() as files:
            for at, piece in enumerate(self.pieces):
                held.append(self._read(files, piece, number))
                if at + 1 == len(self.pieces):
                    yield from self._given(_sorted(held, self)[0])
                    return
                limit = self.pieces[at + 1].first
                ready = sum(int((times < limit).sum()) for _, times in held)
                # So that rows are sorted few times, half of them leave at once.
                if 2 * ready >= sum(len(times) for _, times in held) and ready:
                    rows, times = _sorted(held, self)
                    yield from self._given(rows.slice(0, ready))
                    held = [(rows.slice(ready), times[ready:])]

    def _given(self, rows: pa.Table) -> Iterator[pa.RecordBatch]:
        named = rows.select(list(self.names.values())).rename_columns(list(self.names))
        yield from named.to_batches(_ROWS_AT_ONCE)

    def _read(self, files: _Files, piece: Piece, number: int) -> tuple[pa.Table, Ints]:
        file = files.at(piece.path)
        rows = file.read_row_group(piece.group, list(self.types), use_threads=False)
        rows = rows.select(list(self.types))
        times = _integers(rows.column(self.order[0]))
        chosen: Any = None
        if self.tasks > 1:
            chosen = self._numbers(rows.select(list(self.key))) == number
        for bound, is_start in ((self.start, True), (self.stop, False)):
            if bound is not None:
                within = times >= bound if is_start else times < bound
                chosen = within if chosen is None else chosen & within
        if chosen is not None and not chosen.all():
            rows, times = rows.filter(pa.array(chosen)), times[chosen]
        # Texts in codes become texts only now, when there are fewer.
        return rows.cast(pa.schema(list(self.types.items()))), times

    def _numbers(self, keys: pa.Table) -> npt.NDArray[np.int32]:
        """Return the partition of each key."""
        if keys.num_columns == 1 and kinds.is_dictionary(keys.schema.types[0]):
            coded = keys.column(0).combine_chunks()
            (name,) = self.key
            of_each = self._numbers(pa.table({name: coded.dictionary}))
            codes = coded.indices
            if coded.null_count:
                codes = codes.fill_null(len(of_each))
                of_each = np.append(of_each, np.int32(0))
            found: npt.NDArray[np.int32] = of_each[np.asarray(codes)]
            return found
        keys = keys.cast(pa.schema([(name, self.types[name]) for name in self.key]))
        for name in self.uuids:
            at = self.key.index(name)
            keys = keys.set_column(at, name, pc.ascii_lower(keys.column(name)))
        return _numbers(keys, self.key, self.tasks)


def scan_of(
    paths: Sequence[str],
    types: Mapping[str, pa.DataType],
    *,
    order: tuple[str, ...],
    names: Mapping[str, str],
    key: tuple[str, ...],
    tasks: int,
    uuids: tuple[str, ...] = (),
) -> Scan | None:
    """Return a scan of Parquet files; None where Spark must read or sort them.

    types: of the columns to read, as Spark has them. order, names, key, uuids: see ``Scan``.
    """
    if len(paths) > FILES_MAX or not all(map(_is_sorted_here, types.values())):
        return None
    if tasks > 1 and any(kinds.is_floating(types[name]) for name in key):
        return None  # 0.0 and -0.0 are one key
    pieces: list[Piece] = []
    for path in paths:
        try:
            found = _pieces(path, types, order[0])
        except (OSError, pa.ArrowException):  # Spark reports the cause
            return None
        if found is None:
            return None
        pieces += found
    pieces.sort(key=lambda piece: (piece.first, piece.path, piece.group))
    floats = tuple(name for name in names.values() if kinds.is_floating(types[name]))
    scan = Scan(tuple(pieces), types, order, floats, names, key, uuids, tasks)
    return scan if scan.held_bytes <= HELD_BYTES_MAX else None


def _pieces(path: str, types: Mapping[str, pa.DataType], time: str) -> list[Piece] | None:
    """Return the row groups of a file; None where it has other columns, or times unknown."""
    with pq.ParquetFile(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
    if _LEGACY in (metadata.metadata or {}):
        return None
    for name, kind in types.items():
        if len(schema.get_all_field_indices(name)) != 1 or _plain(schema.field(name).type) != kind:
            return None
    leaves = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
    column, found = leaves.index(time), []
    for group in range(metadata.num_row_groups):
        about = metadata.row_group(group)
        told = about.column(column).statistics
        if not about.num_rows:
            continue
        if told is None or not told.has_min_max or not told.has_null_count or told.null_count:
            return None
        if not isinstance(told.min_raw, int) or not isinstance(told.max_raw, int):
            return None
        size = about.total_byte_size
        found.append(Piece(path, group, about.num_rows, size, told.min_raw, told.max_raw))
    return found


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return a type as Spark has it."""
    if kinds.is_dictionary(kind):
        kind = kind.value_type
    if kinds.is_large_string(kind) or kinds.is_string_view(kind):
        return pa.string()
    return pa.binary() if kinds.is_large_binary(kind) else kind


def _is_sorted_here(kind: pa.DataType) -> bool:
    """Return whether values of a type have the order that Spark gives them."""
    return bool(
        kinds.is_boolean(kind)
        or kinds.is_signed_integer(kind)
        or kind in (pa.float32(), pa.float64(), pa.string(), pa.binary(), pa.date32())
        or (kinds.is_timestamp(kind) and kind.unit == "us")
    )


class _Files:
    """The open files: the newest few."""

    def __init__(self) -> None:
        self._open: dict[str, pq.ParquetFile] = {}

    def __enter__(self) -> _Files:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._open.values():
            file.close()

    def at(self, path: str) -> pq.ParquetFile:
        """Return a file, opened."""
        if path not in self._open:
            if len(self._open) >= _OPEN_MAX:
                self._open.pop(next(iter(self._open))).close()
            with pq.ParquetFile(path) as file:
                coded = _coded(file)
            self._open[path] = pq.ParquetFile(path, read_dictionary=coded)
        return self._open[path]


def _coded(file: pq.ParquetFile) -> list[str]:
    """Return the columns of texts that are stored as codes, a few texts and a number for each row.

    So as they are divided, texts are neither made nor compared.
    """
    metadata, schema = file.metadata, file.schema_arrow
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    leaves = [metadata.schema.column(at).path for at in range(metadata.num_columns)]
    return [
        name
        for at, name in enumerate(leaves)
        if schema.get_field_index(name) >= 0
        and schema.field(name).type == pa.string()
        and all(
            # A text of its own takes four bytes for its length alone.
            group.column(at).total_uncompressed_size < _TEXT_BYTES * group.num_rows
            for group in groups
        )
    ]


def _numbers(rows: pa.Table, key: Sequence[str], tasks: int) -> npt.NDArray[np.int32]:
    """Return the partition of each row; 0 where a part of its key is null."""
    (batch,) = rows.combine_chunks().to_batches() or [None]
    found = np.zeros(rows.num_rows, np.int32)
    if batch is None:
        return found
    there = np.ones(rows.num_rows, bool)
    for column in batch.columns:
        if column.null_count:
            there &= column.is_valid().to_numpy(zero_copy_only=False)
    if there.all():
        return partition_numbers(batch, key, tasks)
    found[there] = partition_numbers(batch.filter(pa.array(there)), key, tasks)
    return found


def _sorted(held: Sequence[tuple[pa.Table, Ints]], scan: Scan) -> tuple[pa.Table, Ints]:
    """Return the rows in order, and their times."""
    rows = pa.concat_tables([one for one, _ in held]).combine_chunks()
    times = np.concatenate([one for _, one in held])
    order: Ints | None = None
    if (times[1:] < times[:-1]).any():
        order = np.argsort(times, kind="stable").astype(np.int64)
        times = times[order]
    same = times[1:] == times[:-1]
    if same.any():
        order = np.arange(len(times)) if order is None else order
        tied = np.flatnonzero(np.r_[same, False] | np.r_[False, same])
        order[tied] = order[tied][_order_of(rows.take(pa.array(order[tied])), times[tied], scan)]
    return (rows if order is None else rows.take(pa.array(order))), times


def _order_of(rows: pa.Table, times: Ints, scan: Scan) -> Ints:
    """Return the order of rows by all columns, as Spark has it: nulls first, NaN last."""
    columns: list[Any] = [pa.array(times)]
    for name in scan.order[1:]:
        column = rows.column(name)
        if column.null_count:
            columns.append(column.is_valid())
        columns.append(_ranks(column) if kinds.is_floating(column.type) else column)
    for name in scan.floats:
        values = rows.column(name).to_numpy(zero_copy_only=False)
        if (values == 0).any():
            columns.append(pa.array(np.where(values == 0, 2 - np.signbit(values), 0)))
    names = [str(at) for at in range(len(columns))]
    keys = [(name, "ascending") for name in names]
    return np.asarray(pc.sort_indices(pa.table(columns, names), sort_keys=keys), np.int64)


def _ranks(column: pa.ChunkedArray) -> pa.Array:
    """Return integers in the order of floats: 0.0 and -0.0 are equal, and NaN is the greatest."""
    values = column.to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
    bits = values.view(np.int64)
    ranks = np.where(bits < 0, np.int64(np.iinfo(np.int64).min) - bits, bits)
    ranks = np.where(np.isnan(values), np.iinfo(np.int64).max, ranks)
    return pa.array(ranks)


def _integers(column: pa.ChunkedArray) -> Ints:
    """Return times as integers of their unit."""
    kind = column.type
    if kinds.is_date(kind):
        column = column.cast(pa.int32())
    return np.asarray(column.cast(pa.int64()), np.int64)
