"""Validation of a pipeline, distributed over tasks."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ripple.core.errors import InputError
from ripple.spark import packets
from ripple.spark.checkpoint_check import CHECKPOINTS, markers_for
from ripple.spark.checks import against_of, checks_of, made_of
from ripple.spark.crashes import CRASHES_DEFAULT
from ripple.spark.finding import OUR_ENGINE
from ripple.spark.markers import marked
from ripple.spark.options import NOWHERE, Bound
from ripple.spark.oracle_check import ORACLE_ROWS_DEFAULT
from ripple.spark.output_check import AgainstLog, Divided
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.progress import listening
from ripple.spark.session import jobs as spark_jobs
from ripple.spark.session import register
from ripple.spark.table_check import AgainstTable
from ripple.spark.verdict import Verdict
from ripple.spark.work import packets_from, pickled

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from pyspark.sql import SparkSession

    from ripple.model.pipeline.builder import Pipeline
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.portions import Sources
    from ripple.spark.progress import TaskProgress
    from ripple.spark.sampling import Sample


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
    fields: tuple[str, ...] = (),
    changes: bool = False,
    show: Callable[[TaskProgress], None] | None = None,
) -> Verdict:
    """Check a pipeline over an input, and the results of live runs of it.

    crashes: over all shares. oracle_rows: first records of each share to compare with the oracle; 0
    for none. against: ``log:DIR/TOPIC`` (for ``OUTPUT=log:...`` where there are several outputs) or
    ``checkpoints:`` and a folder or ``s3://bucket/prefix``, written by live runs from this input;
    or a file or table of another program, see ``AgainstTable``. fields: to compare there,
    beside the key; by default all. changes: whether changes in logs are compared, too, at each cut;
    see ``AgainstLog``. seed: of the crashes. markers: the folder of the run's checkpoints, or the
    store of the cluster, for its markers; by default, with ``idle=``, the one
    in ``against``. engine: the one under test. show: called with the progress. Raises PlanError,
    InputError, SchemaError, OutputError, StoreError and SparkJobError.
    """
    register(spark)
    place = markers_for(markers, against)
    parcel = Parcel.of(pipeline, pickled, has_markers=place is not None, has_tables=True)
    plan = parcel.plan()
    given = sources_at(source, plan, start=start, stop=stop, header=header)
    if place is not None and (plan.is_idle or markers is not None):
        given = marked(given, place, plan)
    jobs = checks_of(
        parcel,
        plan,
        given,
        crashes=crashes,
        oracle_rows=oracle_rows,
        against=against,
        seed=seed,
        engine=engine,
        fields=fields,
        header=header,
        changes=changes,
    )
    with (
        listening(spark, len(jobs), None, show) as listener,
        spark_jobs(spark, plan.name, "validate"),
    ):
        if listener is not None:
            jobs = [replace(job, reporter=listener.reporter.of(at)) for at, job in enumerate(jobs)]
        found = _findings(spark, jobs)
    return Verdict.of(plan.name, plan.topology_hash, given.place, found, made_of(parcel, seed))


def _findings(spark: SparkSession, jobs: Sequence[Any]) -> list[dict[str, Any]]:
    found = packets_from(spark, jobs).where(f"kind = '{packets.FINDING}'")
    return [json.loads(row.about) for row in found.select("about").collect()]


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
        self._parcel = Parcel.of(pipeline, pickled, chain_for="a watch on Spark")
        self._engine, self.sample = engine, sample
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
            found = _findings(self._spark, self._jobs(plan, given))
        self.sample = replace(self.sample, at=self.sample.at + 1)
        return Verdict.of(plan.name, plan.topology_hash, given.place, found)

    def _jobs(self, plan: Plan, given: Sources) -> list[AgainstLog | Divided]:
        found = against_of(self._parcel, plan, given, self._against, self._engine)
        for job in found:
            if isinstance(job, AgainstTable):
                raise InputError(
                    f"a watch compares outputs of live runs, and {job.place} is none: leave out "
                    "--watch, or give --against log:DIR/TOPIC"
                )
        return [
            replace(job, sample=self.sample) if isinstance(job, AgainstLog) else job
            for job in found
            if isinstance(job, AgainstLog | Divided)
        ]
