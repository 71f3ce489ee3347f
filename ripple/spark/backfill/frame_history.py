"""History in DataFrames, or in tables and files that Spark reads.

Rows of a DataFrame have no offsets, and Spark divides them otherwise each time. So they are counted
first, with a digest of them in any order, by which an interrupted backfill is recognized; then they
are sorted, in the order of a replay of the same DataFrame.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError
from ripple.core.extras import needed
from ripple.spark import packets
from ripple.spark.backfill.given import A_DATAFRAME
from ripple.spark.backfill.history import (
    HISTORY,
    LETTERS_MAX,
    OWN,
    ROW,
    Seen,
    chosen_in,
    columns_of,
    placed,
    schema_of,
    times_of,
)
from ripple.spark.dataframe.division import division_of
from ripple.spark.dataframe.frames import are_frames
from ripple.spark.dataframe.named import frames_at
from ripple.spark.dataframe.places import SparkPlace
from ripple.spark.dataframe.source_frame import SourceFrame, in_order
from ripple.spark.dataframe.table_versions import check_unchanged, versions_in
from ripple.spark.dataframe.taken import Taken
from ripple.spark.packets import Packet
from ripple.spark.session import blaming, jobs
from ripple.spark.sources import Conforming, spark_schema
from ripple.task.arguments import sources_of

with needed("spark", "ripple.spark"):
    from pyspark.sql import DataFrame

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pyspark.sql import SparkSession

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.backfill.live import Live
    from ripple.spark.dataframe.given import Given
    from ripple.spark.parcel import Parcel

_ALL = 1 << 64


@dataclass(frozen=True, slots=True)
class FrameHistory:
    """The DataFrames of all sources of events, and the places that name them.

    tables: by source, its tables of Delta Lake and Iceberg with their versions.
    """

    spark: SparkSession
    plan: Plan
    each: tuple[SourceFrame, ...]
    places: tuple[str, ...]
    tables: tuple[tuple[str, ...], ...]

    @classmethod
    def at(
        cls,
        spark: SparkSession,
        plan: Plan,
        history: Any,
        *,
        identity: tuple[str, ...],
        header: bool = False,
    ) -> FrameHistory | None:
        """Return the history where Spark reads it, None where tasks read it themselves.

        history: as for ``Backfill``. Raises InputError and SchemaError.
        """
        events = [source for source in plan.sources if source.table is None]
        if len(events) < len(plan.sources):
            all_given = history.values() if isinstance(history, Mapping) else [history]
            if not any(isinstance(one, DataFrame) or SparkPlace.of(one) for one in all_given):
                return None
            raise InputError(
                f"{plan.name} has tables from topics beside its events, so Spark cannot read the "
                "history: write it, as with df.write.parquet('DIR'), and name that folder"
            )
        found = frames_at(spark, plan, history, header=header)
        if not are_frames(found):
            return None
        frames, given = sources_of(plan, found), sources_of(plan, history)
        with blaming():
            each = tuple(
                SourceFrame.of(frames[one.name], one, rank=None, identity=identity)
                for one in events
            )
        places = tuple(place_of(given[one.name]) for one in events)
        tables = tuple(versions_in(one.frame) for one in each)
        return cls(spark, plan, each, places, tables)

    def counted(self, parcel: Parcel, live: Live) -> list[dict[str, Any]]:
        """Return the counts of each source, as ``Seen`` of a file, and a digest of its rows."""
        found = []
        for one, place, tables in zip(self.each, self.places, self.tables, strict=True):
            counting = _Counting(parcel, one.given, place, live)
            with jobs(self.spark, self.plan.name, f"count history of {one.source.name}"):
                rows = one.frame.select(*one.columns((), 1))
                told = rows.mapInArrow(counting, spark_schema(packets.SCHEMA)).select("about")
                parts = [json.loads(row.about) for row in told.collect()]
            counts = _summed(parts, place)
            found.append({**counts, "tables": list(tables)} if tables else counts)
        return found

    def rows(self, parcel: Parcel, live: Live, known: frozenset[int]) -> DataFrame:
        """Return the rows before the end of history, except those of known partitions.

        Raises InputError for a table that has changed since it was examined.
        """
        schema, whole = spark_schema(schema_of(self.plan)), None
        for file, (one, tables) in enumerate(zip(self.each, self.tables, strict=True)):
            check_unchanged(tables, one.frame)
            placing = _Placing(parcel, one.given, live, file, known)
            rows = one.frame.select(*one.columns((), 1)).mapInArrow(placing, schema)
            whole = rows if whole is None else whole.unionByName(rows)
        assert whole is not None
        return whole

    def order(self) -> list[Any]:
        """Return the order of rows of one time and input: by their fields, as in a replay."""
        key, why = division_of(self.plan)
        names = {of: column for column, of in columns_of(self.plan).items()}
        found = []
        for one in self.each:
            own = {field: names[one.source.name, field] for field, _ in one.given.columns}
            tied = one.given.tied_fields(one.source, () if why else key)
            floats = [own[field] for field in own if one.is_float(field)]
            found += in_order([own[field] for field in tied], floats)
        return found

    def check_rows(self, counts: Sequence[Mapping[str, Any]], rows: int) -> None:
        """Raise InputError where the sorted rows differ from the counted ones."""
        counted = sum(one["rows"] for one in counts)
        if counted != rows:
            raise InputError(
                f"history had {counted:,} records when they were counted, and {rows:,} when they "
                "were read: it has changed meanwhile, or its rows depend on the task. Write it, as "
                "with df.write.parquet('DIR'), and name that folder. Nothing was adopted"
            )


def place_of(given: Any) -> str:
    """Return the text of a place, or of a DataFrame, for receipts."""
    return given if isinstance(given, str) else A_DATAFRAME


def with_places(given: Any) -> Any:
    """Return a history, or several by source, with texts in the place of DataFrames."""
    if isinstance(given, Mapping):
        return {name: place_of(one) for name, one in given.items()}
    return place_of(given) if isinstance(given, DataFrame) else given


class _Counting:
    """Counts the rows of a task."""

    def __init__(self, parcel: Parcel, given: Given, place: str, live: Live) -> None:
        self._parcel, self._given, self._place, self._live = parcel, given, place, live

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        source = _source_of(self._parcel.plan(), self._given)
        seen, taken = Seen(self._place), Taken(source, self._given)
        for rows in batches:
            for batch in taken.records(rows):
                times_ns = times_of(source, batch.records)
                seen.take(batch, times_ns[times_ns >= self._live.until_ns])
        about = {**seen.as_dict(), "digest": taken.as_dict()["digest"]}
        found = Packet(packets.REPORT, about=about).as_batch()
        yield Conforming(spark_schema(packets.SCHEMA))(found)


class _Placing:
    """Gives the rows of a task their partitions."""

    def __init__(
        self, parcel: Parcel, given: Given, live: Live, file: int, known: frozenset[int]
    ) -> None:
        self._parcel, self._given, self._live = parcel, given, live
        self._file, self._known = file, known

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = self._parcel.plan()
        source, taken = _source_of(plan, self._given), None
        schema = schema_of(plan)
        conforming, at = Conforming(spark_schema(schema)), schema.get_field_index(ROW)
        identity = self._given.identity or tuple(one.name for one in source.fields)
        for given in batches:
            taken = Taken(source, self._given) if taken is None else taken
            for batch in taken.records(given):
                rows = placed(
                    plan,
                    batch,
                    source,
                    self._live,
                    side=HISTORY,
                    file=self._file,
                    identity=identity,
                )
                # Its place in the task is none in the table.
                none = pa.array(np.zeros(rows.num_rows, np.int64))
                rows = rows.set_column(at, OWN.field(ROW), none)
                yield conforming(rows.filter(chosen_in(rows, self._live, self._known)))


def _source_of(plan: Plan, given: Given) -> SourceSpec:
    (found,) = (source for source in plan.sources if source.name == given.source)
    return found


def _summed(parts: Sequence[Mapping[str, Any]], place: str) -> dict[str, Any]:
    """Return the sum of all tasks' counts."""
    causes: Counter[str] = Counter()
    for part in parts:
        causes.update(part["refused"])
    beyond = [part["beyond_ns"] for part in parts if part["beyond"]]
    letters = [{**letter, "offset": None} for part in parts for letter in part["letters"]]
    letters.sort(key=lambda letter: json.dumps(letter, sort_keys=True))
    return {
        "place": place,
        "rows": sum(part["rows"] for part in parts),
        "beyond": sum(part["beyond"] for part in parts),
        "beyond_ns": min(beyond) if beyond else None,
        "refused": dict(sorted(causes.items())),
        "letters": letters[:LETTERS_MAX],
        "digest": f"{sum(int(part['digest'], 16) for part in parts) % _ALL:016x}",
    }
