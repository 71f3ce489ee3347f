"""The driver of a backfill on Spark."""

from __future__ import annotations

import asyncio
import json
import os
from typing import TYPE_CHECKING, Any

import ripple
from ripple.core.errors import InputError
from ripple.spark.backfill.adopting import Adopting
from ripple.spark.backfill.fingerprint import fingerprint
from ripple.spark.backfill.frame_history import FrameHistory, with_places
from ripple.spark.backfill.given import history_at, noted
from ripple.spark.backfill.history import ORDER, OWN, PARTITION, name_of, readings_of, schema_of
from ripple.spark.backfill.live import Live
from ripple.spark.backfill.receipt import BackfillError, Receipt, changes, differences
from ripple.spark.backfill.shelf import Shelf
from ripple.spark.dataframe.table_versions import pinned
from ripple.spark.options import absolute_store
from ripple.spark.packets import ROWS, SCHEMA
from ripple.spark.parcel import Parcel
from ripple.spark.portions import Sources
from ripple.spark.progress import listening
from ripple.spark.session import jobs, register
from ripple.spark.sources import spark_schema
from ripple.spark.work import Unpacked, packets_from, pickled
from ripple.storage.checkpoint.checkpoints import Checkpoints
from ripple.storage.checkpoint.origin import Origin, begin, folder_of, origin_in
from ripple.storage.fenced import ChainError, DamagedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.progress import Listener, TaskProgress


class Backfill:
    """History before a time, and the live log from there on."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: str | os.PathLike[str] | Pipeline | Plan,
        history: str | DataFrame | Mapping[str, str] | Mapping[str, DataFrame],
        *,
        until_ns: int,
        live: str | Mapping[str, str],
        store: str,
        partitions: int | None = None,
        identity: Sequence[str] = (),
        header: bool = False,
    ) -> None:
        """Examine the inputs; writes nothing. Rows that Spark reads are counted.

        history: a file of any connector, a folder or a pattern of files, a log; in any order and
        partitioning. Or a DataFrame, ``table:NAME``, or a path of Spark's file systems, such as
        ``csv:s3a://...``; the version of a named table of Delta Lake or Iceberg is found now, and
        is in the receipt. until_ns: the event time at which history ends. live: the live input,
        ``log:DIR/TOPIC`` or ``kafka:BROKERS/TOPIC``. Both are mappings of source names to those
        when the pipeline has several sources; a table needs no history. store: the folder or
        ``s3://bucket/prefix`` of the checkpoints. partitions: of the pipeline, 1 with
        ``ripple run``; by default the live input's. identity: fields that together identify a
        record; without, all fields are compared. header: whether files of CSV name their
        columns. Raises PlanError and InputError.
        """
        register(spark)
        self._spark = spark
        self._parcel = Parcel.of(pipeline, pickled, has_markers=True, has_tables=True)
        self.plan = self._parcel.plan()
        self._identity, self._header = tuple(identity), header
        self._check_names()
        history = pinned(spark, history)
        self._places = noted(self.plan, with_places(history), live), noted(self.plan, live, live)
        self._store = absolute_store(store)
        self.live = Live.at(live, self.plan, until_ns, partitions)
        self._frames = FrameHistory.at(
            spark, self.plan, history, identity=self._identity, header=header
        )
        self.source, self._counts = Sources(()), list[dict[str, Any]]()
        if self._frames is None:
            self.source = history_at(history, self.plan, live, header=header)
        else:
            self._counts = self._frames.counted(self._parcel, self.live)
        self._shelf = Shelf(
            self._store,
            self.plan.name,
            fingerprint(self.plan, self.source, self.live, self._identity, self._counts),
        )

    def run(
        self, *, allows_unproven: bool = False, show: Callable[[TaskProgress], None] | None = None
    ) -> Receipt:
        """Make the checkpoints, and adopt them as the starting point of all partitions.

        An interrupted backfill is resumed. Raises BackfillError, SparkJobError and StoreError.
        """
        asyncio.run(self._check_store())
        for file, counts in enumerate(self._counts):
            asyncio.run(self._shelf.put(name_of(file), counts))
        found = self._receipt(asyncio.run(self._shelf.all("partition-")))
        if len(found.partitions) < self.live.partitions:
            known = frozenset(int(one["partition"]) for one in found.partitions)
            found = self._receipt([*found.partitions, *self._parts(known, keeps=True, show=show)])
        found.check(allows_unproven=allows_unproven)
        if self._frames is not None:
            self._frames.check_rows(self._counts, found.rows)
        self._check_shelf()
        asyncio.run(self._adopt(found))
        return found

    def check(
        self, receipt: Receipt, *, show: Callable[[TaskProgress], None] | None = None
    ) -> list[str]:
        """Recompute everything, and return the differences from a receipt or the adopted state.

        A modified receipt is reported before anything is computed.
        """
        laid = self._receipt(asyncio.run(self._shelf.all("partition-")))
        problems = [*changes(receipt, laid)]
        if problems:
            return problems
        fresh = self._receipt(self._parts(frozenset(), keeps=False, show=show))
        problems = [*differences(receipt, fresh), *fresh.broken()]
        return [*problems, *asyncio.run(self._adopted_problems(receipt))]

    # --- the two sides, sorted together ---

    def _parts(
        self,
        known: frozenset[int],
        *,
        keeps: bool,
        show: Callable[[TaskProgress], None] | None,
    ) -> list[dict[str, Any]]:
        """Return the reports of the partitions without a stored one."""
        adopting = Adopting(self._parcel, self.live, self._shelf, bool(self._identity), keeps)
        hears = listening(self._spark, len(self.source.shares), self.source.rows, show)
        phase = "backfill" if keeps else "receipt"
        with hears as listener, jobs(self._spark, self.plan.name, phase):
            rows = self._sorted(known, listener, keeps=keeps)
            packets = rows.mapInArrow(adopting, spark_schema(SCHEMA))
            found = [json.loads(row.about) for row in packets.select("about").collect()]
        there = {int(part["partition"]) for part in found} | known
        # A partition without any key begins at the same cut as the others.
        absent = [number for number in range(self.live.partitions) if number not in there]
        return [*found, *(adopting.part(number, ()) for number in absent)]

    def _sorted(
        self, known: frozenset[int], listener: Listener | None, *, keeps: bool
    ) -> DataFrame:
        schema = spark_schema(schema_of(self.plan))
        readings = readings_of(
            self._parcel,
            self.source,
            self.live,
            self._identity,
            known,
            first_file=len(self._counts),
            shelf=self._shelf if keeps else None,
            reporter=None if listener is None else listener.reporter,
        )
        packets = packets_from(self._spark, readings, [one.share.rows for one in readings])
        rows = packets.where(packets.kind == ROWS).mapInArrow(Unpacked(schema), schema)
        order: list[Any] = list(ORDER)
        if self._frames is not None:
            rows = rows.unionByName(self._frames.rows(self._parcel, self.live, known))
            order += self._frames.order()
        return rows.repartition(self.live.partitions, PARTITION).sortWithinPartitions(*order)

    # --- the store ---

    async def _check_store(self) -> None:
        """Raise BackfillError if the pipeline has begun, unless from this backfill."""
        async with self._shelf.opened(is_probed=True) as store:
            origin = await origin_in(store, self.plan.name)
            if origin is not None:
                self._check_origin(origin)
                return
            names = await store.list(folder_of(self.plan.name))
        if any("/manifest/" in name for name in names):
            raise BackfillError(self._begun("it has partitions with owners"))

    def _check_shelf(self) -> None:
        """Raise BackfillError if the driver does not see the objects that tasks have stored.

        A partition's report is stored last.
        """
        there = asyncio.run(self._shelf.all("partition-"))
        missing = {*range(self.live.partitions)}.difference(one["partition"] for one in there)
        if missing:
            named = ", ".join(map(str, sorted(missing)))
            raise BackfillError(
                f"executors have stored partition {named} where the driver does not see it: "
                f"{self._store} must be the same for all machines, or s3://. Nothing was adopted"
            )

    async def _adopt(self, receipt: Receipt) -> None:
        async with self._shelf.opened() as store:
            origin = Origin(self._shelf.backfill, receipt.checkpoints)
            self._check_origin(await begin(store, self.plan.name, origin))

    def _check_origin(self, origin: Origin) -> None:
        if origin.backfill != self._shelf.backfill:
            what = f"from backfill {origin.backfill}" if origin.backfill else "from nothing"
            raise BackfillError(self._begun(what))

    def _begun(self, what: str) -> str:
        return (
            f"pipeline {self.plan.name!r} has begun in {self._store} already, {what}: nothing was "
            "adopted; give another store, or let workers continue as they are"
        )

    async def _adopted_problems(self, receipt: Receipt) -> list[str]:
        """Return the problems of the adopted checkpoints' files."""
        async with self._shelf.opened() as store:
            origin = await origin_in(store, self.plan.name)
            if origin is None or origin.backfill != receipt.backfill:
                return [f"{self._store} does not begin from backfill {receipt.backfill}"]
            problems = []
            for one in origin.checkpoints:
                try:
                    await Checkpoints(store, self.plan.name, one.partition).read(one)
                except (ChainError, DamagedError) as error:
                    problems.append(f"partition {one.partition}: {error}")
            if origin.checkpoints != receipt.checkpoints:
                problems.append("the receipt names other checkpoints than the store")
            return problems

    # --- the receipt ---

    def _receipt(self, parts: Sequence[Mapping[str, Any]]) -> Receipt:
        return Receipt(
            self.plan.name,
            self.plan.topology_hash,
            ripple.__version__,
            *self._places,
            self.live.until_ns,
            self._store,
            self._shelf.backfill,
            self._identity,
            self._header,
            tuple(asyncio.run(self._shelf.all("file-"))),
            tuple(sorted(parts, key=lambda part: part["partition"])),
        )

    def _check_names(self) -> None:
        for source in self.plan.sources:
            names = [one.name for one in source.fields]
            for name in OWN.names:
                if name in names:
                    raise InputError(f"{source.name} has a field {name!r}, a reserved name")
            for name in self._identity:
                if name not in names:
                    raise InputError(
                        f"records cannot be identified by {name!r}: {source.name} has "
                        f"{', '.join(names)}"
                    )
