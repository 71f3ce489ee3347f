"""Validation of a pipeline, distributed over tasks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.connectors.log.sink import schema_of_output
from ripple.core.errors import InputError
from ripple.spark import packets
from ripple.spark.checkpoint_check import (
    CHECKPOINTS,
    AgainstCheckpoints,
    checkpoints_at,
    markers_for,
)
from ripple.spark.crashes import CRASHES_DEFAULT, Crashes
from ripple.spark.finding import OUR_ENGINE
from ripple.spark.log_table import open_topic
from ripple.spark.markers import marked
from ripple.spark.options import NOWHERE, Bound, absolute
from ripple.spark.oracle_check import ORACLE_ROWS_DEFAULT, AgainstOracle
from ripple.spark.output_check import AgainstLog, Divided
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.progress import listening
from ripple.spark.session import jobs as spark_jobs
from ripple.spark.session import register
from ripple.spark.starting_point import NOTHING, StartingPoint
from ripple.spark.verdict import Verdict
from ripple.spark.work import packets_from, pickled
from ripple.storage.log.body import columns_of
from ripple.storage.log_uri import PREFIX

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from pyspark.sql import SparkSession

    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.portions import Portion, Sources
    from ripple.spark.progress import TaskProgress
    from ripple.spark.sampling import Sample

    Check: TypeAlias = Crashes | AgainstOracle | AgainstCheckpoints | AgainstLog | Divided

CRASHES_PER_TASK = 50


def validate(
    spark: SparkSession,
    pipeline: str | os.PathLike[str] | Pipeline | Plan,
    source: str | Mapping[str, str],
    *,
    crashes: int = CRASHES_DEFAULT,
    oracle_rows: int = ORACLE_ROWS_DEFAULT,
    against: tuple[str, ...] = (),
    start: Bound = NOWHERE,
    stop: Bound = NOWHERE,
    header: bool = False,
    seed: int = 0,
    markers: str | None = None,
    engine: str = OUR_ENGINE,
    show: Callable[[TaskProgress], None] | None = None,
) -> Verdict:
    """Check a pipeline over an input, and the results of live runs of it.

    crashes: over all shares. oracle_rows: first records of each share to compare with the oracle; 0
    for none. against: ``log:DIR/TOPIC`` (for ``OUTPUT=log:...`` where there are several outputs) or
    ``checkpoints:`` and a folder or ``s3://bucket/prefix``, written by live runs from this input.
    seed: of the crashes. markers: the folder of the run's checkpoints, or the store of the cluster,
    for its markers; by default, with ``idle=``, the one in ``against``. engine: the one under test.
    show: called with the progress. Raises PlanError, InputError, OutputError, StoreError and
    SparkJobError.
    """
    register(spark)
    place = markers_for(markers, against)
    parcel = Parcel.of(pipeline, pickled, has_markers=place is not None, has_tables=True)
    plan = parcel.plan()
    given = sources_at(source, plan, start=start, stop=stop, header=header)
    if place is not None and (plan.is_idle or markers is not None):
        given = marked(given, place, plan)
    jobs: list[Check] = [*_crashes(parcel, given.portions(plan), crashes, seed, engine)]
    if oracle_rows:
        jobs += [AgainstOracle(parcel, one, oracle_rows, engine) for one in given.portions(plan)]
    jobs += _against(parcel, plan, given, against, engine)
    if not jobs:
        raise InputError("nothing to check: choose crashes, the oracle, or results to compare")
    with (
        listening(spark, len(jobs), None, show) as listener,
        spark_jobs(spark, plan.name, "validate"),
    ):
        if listener is not None:
            jobs = [replace(job, reporter=listener.reporter.of(at)) for at, job in enumerate(jobs)]
        found = packets_from(spark, jobs).where(f"kind = '{packets.FINDING}'")
        rows = found.select("about").collect()
    abouts = [json.loads(row.about) for row in rows]
    return Verdict.of(plan.name, plan.topology_hash, given.place, abouts)


class Watching:
    """Continuous comparison of live outputs with the expected rows, for a sample of the keys.

    Each round takes another part of the keys, so that ``sample.of`` rounds compare all.
    """

    def __init__(
        self,
        spark: SparkSession,
        pipeline: str | os.PathLike[str] | Pipeline | Plan,
        source: str | Mapping[str, str],
        *,
        against: tuple[str, ...],
        sample: Sample,
        engine: str = OUR_ENGINE,
    ) -> None:
        """Compare ``log:`` outputs only; ``checkpoints:`` give their starting points.

        Raises PlanError and InputError.
        """
        register(spark)
        self._spark, self._source, self._against = spark, source, against
        self._parcel, self._engine = (
            Parcel.of(pipeline, pickled, chain_for="a watch on Spark"),
            engine,
        )
        self.sample = sample
        plan = self._parcel.plan()
        if all(place.startswith(CHECKPOINTS) for place in against):
            raise InputError("a watch compares outputs of live runs: give --against log:DIR/TOPIC")
        later = [output.name for output in plan.outputs if output.of != plan.folds[0].name]
        if any(job.output in later for job in self._jobs(plan, sources_at(source, plan))):
            raise InputError(
                f"{', '.join(later)} is of a later fold, with rows of all keys: sampling is "
                "impossible; leave out --watch"
            )

    def round(self) -> Verdict:
        """Compare once, and advance to the next part of the keys. Raises SparkJobError."""
        plan = self._parcel.plan()
        given = sources_at(self._source, plan)
        with spark_jobs(self._spark, plan.name, "watch"):
            packets_ = packets_from(self._spark, self._jobs(plan, given))
            rows = packets_.where(f"kind = '{packets.FINDING}'").select("about").collect()
        self.sample = replace(self.sample, at=self.sample.at + 1)
        abouts = [json.loads(row.about) for row in rows]
        return Verdict.of(plan.name, plan.topology_hash, given.place, abouts)

    def _jobs(self, plan: Plan, given: Sources) -> list[AgainstLog | Divided]:
        found = _against(self._parcel, plan, given, self._against, self._engine)
        return [
            replace(job, sample=self.sample) if isinstance(job, AgainstLog) else job
            for job in found
            if not isinstance(job, AgainstCheckpoints)
        ]


def _crashes(
    parcel: Parcel, portions: Sequence[Portion], count: int, seed: int, engine: str
) -> Iterator[Crashes]:
    """Yield jobs with so many crashes in total, evenly over the portions."""
    for portion in portions:
        left = count // len(portions) + (portion.number < count % len(portions))
        number = 0
        while left > 0:
            part = min(left, CRASHES_PER_TASK)
            yield Crashes(
                parcel, portion, part, 1_000_003 * seed + 1009 * portion.number + number, engine
            )
            left, number = left - part, number + 1


def _against(
    parcel: Parcel, plan: Plan, source: Sources, places: tuple[str, ...], engine: str
) -> list[AgainstCheckpoints | AgainstLog | Divided]:
    """Return the comparing jobs; the first checkpoints give the outputs' starting points."""
    found: list[AgainstCheckpoints | AgainstLog | Divided] = []
    beginning = NOTHING
    for place in places:
        if not place.startswith(CHECKPOINTS):
            continue
        store, begun = checkpoints_at(place, plan)
        own = StartingPoint.of(store, plan.name, begun)
        beginning = own if beginning is NOTHING else beginning
        found += [
            AgainstCheckpoints(parcel, source.shares, store, plan.name, number, engine, own)
            for number in begun
        ]
    for place in places:
        if not place.startswith(CHECKPOINTS):
            jobs = _of_output(parcel, plan, source, place, engine)
            found += [
                replace(job, beginning=beginning) if isinstance(job, AgainstLog) else job
                for job in jobs
            ]
    return found


def _of_output(
    parcel: Parcel, plan: Plan, source: Sources, place: str, engine: str
) -> list[AgainstLog | Divided]:
    output, equals, rest = place.partition("=")
    if not equals or ":" in output:
        output, rest = plan.outputs[0].name, place
        if len(plan.outputs) > 1:
            names = ", ".join(one.name for one in plan.outputs)
            raise InputError(f"the pipeline has the outputs {names}: name the one in {place}")
    chosen = plan.output(output)
    if not rest.startswith(PREFIX):
        raise InputError(
            f"cannot compare with {place!r}: name log:DIR/TOPIC, checkpoints:DIR or "
            "checkpoints:s3://BUCKET/PREFIX, written by a live run"
        )
    rest = absolute(rest, "continued_sink")
    topic, only = open_topic(rest)
    columns = [list(columns_of(one)) for one in (topic.schema, schema_of_output(plan, chosen))]
    if columns[0] != columns[1]:
        raise InputError(
            f"{rest} has the fields {', '.join(one.name for one in columns[0])}, and the output "
            f"{output!r} has {', '.join(one.name for one in columns[1])}: name the right output"
        )
    if only is not None:
        path = rest.rpartition("/")[0]
        return [AgainstLog(parcel, source.shares, output, path, only, engine)]
    return [
        Divided(source.shares, output, rest, topic.partitions),
        *(
            AgainstLog(parcel, source.shares, output, rest, number, engine)
            for number in range(topic.partitions)
        ),
    ]
