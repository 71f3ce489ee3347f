"""The checks of a validation, each a job that needs no Spark."""

from __future__ import annotations

import platform
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa

import ripple
from ripple.connectors.log.grown import in_use
from ripple.connectors.log.sink import schema_of_output
from ripple.core.errors import InputError
from ripple.spark.checkpoint_check import CHECKPOINTS, AgainstCheckpoints, checkpoints_at
from ripple.spark.crashes import Crashes
from ripple.spark.log_table import open_topic
from ripple.spark.options import absolute
from ripple.spark.oracle_check import AgainstOracle
from ripple.spark.output_check import AgainstLog, AtRest, Divided
from ripple.spark.starting_point import NOTHING, StartingPoint
from ripple.spark.table_check import AgainstTable
from ripple.storage.log.body import columns_of
from ripple.storage.log_uri import PREFIX
from ripple.world import LiveClock

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import TypeAlias

    from ripple.model.pipeline.plan import Plan
    from ripple.spark.parcel import Parcel
    from ripple.spark.portions import Portion, Sources

    OfResults: TypeAlias = AgainstCheckpoints | AgainstLog | AgainstTable | AtRest | Divided
    Check: TypeAlias = Crashes | AgainstOracle | OfResults

CRASHES_PER_TASK = 50


def checks_of(
    parcel: Parcel,
    plan: Plan,
    given: Sources,
    *,
    crashes: int,
    oracle_rows: int,
    against: tuple[str, ...],
    seed: int,
    engine: str,
    fields: tuple[str, ...] = (),
    header: bool = False,
    changes: bool = False,
) -> list[Check]:
    """Return the checks; see ``validate``. Raises InputError, also where there is none."""
    jobs: list[Check] = [*_crashes(parcel, given.portions(plan), crashes, seed, engine)]
    if oracle_rows:
        jobs += [AgainstOracle(parcel, one, oracle_rows, engine) for one in given.portions(plan)]
    found = against_of(parcel, plan, given, against, engine, fields=fields, header=header)
    if changes and not any(isinstance(one, AgainstLog) for one in found):
        raise InputError(
            "--changes compares those in the log of an output: --against log:DIR/TOPIC"
        )
    jobs += [replace(one, changes=changes) if isinstance(one, AgainstLog) else one for one in found]
    if not jobs:
        raise InputError(
            "nothing to check: choose crashes, the oracle, or results to compare (--crashes N, "
            "--oracle N, --against FILE)"
        )
    return jobs


def made_of(parcel: Parcel, seed: int) -> dict[str, str]:
    """Return the circumstances of a validation, for its report: time, versions and files."""
    now = datetime.fromtimestamp(LiveClock().now_ns() // 1_000_000_000, UTC)
    file = {"file": parcel.file} if parcel.file else {}
    return {
        "made": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        **file,
        "seed": str(seed),
        "ripple-stream": ripple.__version__,
        "python": platform.python_version(),
        "pyarrow": pa.__version__,
    }


def _crashes(
    parcel: Parcel, portions: Sequence[Portion], count: int, seed: int, engine: str
) -> Iterator[Crashes]:
    """Yield jobs with a total number of crashes, evenly over the portions."""
    for portion in portions:
        left = count // len(portions) + (portion.number < count % len(portions))
        number = 0
        while left > 0:
            part = min(left, CRASHES_PER_TASK)
            yield Crashes(
                parcel, portion, part, 1_000_003 * seed + 1009 * portion.number + number, engine
            )
            left, number = left - part, number + 1


def against_of(
    parcel: Parcel,
    plan: Plan,
    source: Sources,
    places: tuple[str, ...],
    engine: str,
    *,
    fields: tuple[str, ...] = (),
    header: bool = False,
) -> list[OfResults]:
    """Return the comparing jobs; the first checkpoints give the outputs' starting points."""
    found: list[OfResults] = []
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
            jobs = _of_output(parcel, plan, source, place, engine, fields=fields, header=header)
            found += [
                replace(job, beginning=beginning) if isinstance(job, AgainstLog) else job
                for job in jobs
            ]
    return found


def _of_output(
    parcel: Parcel,
    plan: Plan,
    source: Sources,
    place: str,
    engine: str,
    *,
    fields: tuple[str, ...],
    header: bool,
) -> list[AgainstLog | AgainstTable | AtRest | Divided]:
    output, equals, rest = place.partition("=")
    if not equals or ":" in output:
        output, rest = plan.outputs[0].name, place
        if len(plan.outputs) > 1:
            names = ", ".join(one.name for one in plan.outputs)
            raise InputError(f"the pipeline has the outputs {names}: name the one in {place}")
    chosen = plan.output(output)
    if not rest.startswith(PREFIX):
        table = AgainstTable(
            parcel, source.shares, output, absolute(rest, "source"), fields, header, engine
        )
        table.check(plan)
        return [table]
    if fields:
        raise InputError(
            f"{rest} is the log of a run, compared by whole rows: --fields chooses among "
            "columns of files and tables"
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
    count = in_use(topic)
    return [
        Divided(source.shares, output, rest, count),
        *(
            AgainstLog(parcel, source.shares, output, rest, number, engine)
            for number in range(count)
        ),
        *(AtRest(parcel, output, rest, number) for number in range(count, topic.partitions)),
    ]
