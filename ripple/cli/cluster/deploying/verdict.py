"""What other code changes in a cluster: by stage and fold, its cost, and why it is refused."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ripple.cli.cluster.deploying.counts import (
    counts_by_output,
    moving,
    problem_of_topic,
    problems_of,
)
from ripple.cli.cluster.deploying.standing import commits_at, topic_at
from ripple.cli.lib.exits import EXIT_FAILURE, say
from ripple.cli.lib.output_forms import many
from ripple.connectors.locate import open_inputs
from ripple.connectors.log.sink import check_schema, schema_of_output
from ripple.control.assignment.generations import store_of
from ripple.core.errors import InputError, OutputError
from ripple.model.pipeline.topology import stages_of
from ripple.storage.checkpoint import newest_of_each
from ripple.storage.log_uri import PREFIX, LogUri
from ripple.storage.store.opening import store_to_read

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.cli.cluster.deploying.standing import Generations
    from ripple.model.pipeline.plan import Plan
    from ripple.storage.checkpoint import Checkpoint

SOURCES = (PREFIX, "kafka:")
MB = 1_000_000
STARTS = "start/"  # notes of checkpoints: at which offset each input began


def verdict_of(
    plan: Plan,
    sources: Mapping[str, str],
    outputs: Mapping[str, str],
    there: Generations,
    counts: Sequence[tuple[str, int]],
    *,
    has_lanes: bool,
) -> dict[str, Any]:
    """Return what ``ripple deploy`` would do with a plan, as JSON values.

    sources, outputs: URIs by name. counts: the plan's partitions by stage, 0 for any. has_lanes:
    whether stages hand records to each other in logs. Raises InputError, OutputError, StoreError.
    """
    own = store_of(there.store, there.serving.generation)
    newest = asyncio.run(_newest(own, plan))
    known = {key for one in newest for key in one.nodes}
    bounds, changed = asyncio.run(_bounds(plan, sources, newest))
    problems = [
        *_of_cluster(plan, there, counts, newest),
        *changed,
        *_of_plan(plan, sources, has_lanes=has_lanes),
        *_of_outputs(plan, outputs, known, counts_by_output(plan, counts)),
        *_of_beginnings(newest, bounds),
    ]
    named = dict(counts)
    stages = [
        {
            "name": name,
            "partitions": named.get(name) or _partitions(there, name),
            "partitions_before": _partitions(there, name),
            "folds": [_fold(plan, fold, known) for fold in stage.folds],
        }
        for name, stage in zip(named, stages_of(plan), strict=False)
    ]
    is_new = {key for key in plan.node_keys if key not in known}
    return {
        "pipeline": plan.name,
        "serving": there.serving.generation,
        "generation": there.newest + 1 if there.candidate is None else there.candidate,
        "stages": stages,
        "outputs": [
            {"name": name, "verdict": "changed" if plan.output(name).node_key in is_new else "same"}
            for name in outputs
        ],
        "records": sum(end - first for first, end in bounds.values()),
        "log_bytes": sum(map(_length_of, sources.values())),
        "checkpoint_bytes": sum(one.length_bytes for one in newest),
        "problems": problems,
    }


def print_verdict(value: Mapping[str, Any]) -> None:
    """Print a verdict for people; problems on standard error."""
    for stage in value["stages"]:
        moves = moving(stage["partitions_before"], stage["partitions"])
        print(f"stage {stage['name']}: {many(stage['partitions'], 'partition')}{moves}")
        for fold in stage["folds"]:
            print(f"  {fold['verdict']:<8} {fold['key']}")
    for output in value["outputs"]:
        print(f"output {output['name']}: {output['verdict']}")
    print(
        f"generation {value['generation']} would read {value['records']:,} records from the first "
        f"({value['log_bytes'] / MB:,.1f} MB of logs), and hold as much state again as generation "
        f"{value['serving']} ({value['checkpoint_bytes'] / MB:,.1f} MB of checkpoints)"
    )
    for problem in value["problems"]:
        say(f"ripple deploy: {problem}")


def code_of(value: Mapping[str, Any]) -> int:
    """Return the exit code of a verdict."""
    return EXIT_FAILURE if value["problems"] else 0


def _fold(plan: Plan, name: str, known: set[str]) -> dict[str, str]:
    key = plan.fold(name).node_key
    return {"key": key, "verdict": "same" if key in known else "changed"}


def _partitions(there: Generations, stage: str) -> int:
    stages = () if there.assignment is None else there.assignment.stages
    return next((one.partitions for one in stages if one.name == stage), 0)


def _of_cluster(
    plan: Plan,
    there: Generations,
    counts: Sequence[tuple[str, int]],
    newest: Sequence[Checkpoint],
) -> Iterator[str]:
    """Yield why the plan cannot come after the code of the cluster."""
    if there.assignment is None or not newest:
        yield (
            f"{there.store} has no state of a cluster of {plan.name!r}: start one with ripple "
            "cluster up, and deploy other code of it once it has stored a checkpoint"
        )
        return
    was = [(one.name, one.partitions) for one in there.assignment.stages]
    now = [(name, count or _partitions(there, name)) for name, count in counts]
    if [name for name, _ in was] != [name for name, _ in now]:
        yield (
            f"the stages of generation {there.serving.generation} are {_text(was)}, and those of "
            f"the new code {_text(now)}: a generation has the same stages; name another store and "
            "other outputs"
        )
        return
    yield from problems_of(plan, there.assignment.stages, now)


def _text(stages: Sequence[tuple[str, int]]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in stages)


def _of_plan(plan: Plan, sources: Mapping[str, str], *, has_lanes: bool) -> Iterator[str]:
    """Yield why no generation beside another one can compute a plan."""
    anew = "name another store and other outputs"
    if has_lanes:
        yield f"stages of {plan.name!r} hand records to each other through logs: {anew}"
    if plan.is_idle:
        yield f"a source has idle=, whose markers each generation would record for itself: {anew}"
    for ask in plan.asks:
        yield f"ask {ask.name!r}: each generation would call the service for itself: {anew}"
    for source in plan.sources:
        if source.table is not None:
            yield (
                f"source {source.name!r} is a table, whose early records compaction removes: {anew}"
            )
        if not sources[source.name].startswith(SOURCES):
            yield (
                f"source {source.name!r} is {sources[source.name]}: both generations read the same "
                "records of log:DIR/TOPIC or kafka:BROKERS/TOPIC alone"
            )


def _of_outputs(
    plan: Plan, outputs: Mapping[str, str], known: set[str], counts: Mapping[str, int]
) -> Iterator[str]:
    """Yield the problems of an output with the rows of the plan. counts: of its partitions."""
    for name, place in outputs.items():
        if not place.startswith(PREFIX):
            yield f"output {name!r} is {place}: generations share outputs that are log:DIR/TOPIC"
            continue
        topic = topic_at(place)
        if topic is None or not commits_at(plan, name, place):
            yield (
                f"output {name!r} is new: {place} holds no rows of it; deploy without it, and add "
                "it afterwards (docs/changing.md)"
            )
            continue
        apart = problem_of_topic(name, place, counts.get(name))
        if apart is not None:
            yield apart
        output = plan.output(name)
        try:
            check_schema(topic, place, schema_of_output(plan, output))
        except OutputError as error:
            yield f"output {name!r}: {error}"
        if output.is_stream and plan.output(name).node_key not in known:
            yield (
                f"output {name!r} has events, which are not taken back: give the changed sink "
                "another name"
            )


def _of_beginnings(
    newest: Sequence[Checkpoint], bounds: Mapping[str, tuple[int, int]]
) -> Iterator[str]:
    """Yield which inputs have lost records that the serving generation has read."""
    for name, (first, _) in bounds.items():
        notes = (one.notes.get(f"{STARTS}{name}") for one in newest)
        start = min((int(one) for one in notes if one is not None), default=None)
        if start is not None and first > start:
            yield (
                f"{name} begins at offset {first}, and generation 1 began at {start}: the new code "
                "cannot be computed from the first record; name another store and other outputs"
            )
            return


async def _newest(store: str, plan: Plan) -> list[Checkpoint]:
    async with store_to_read(store) as opened:
        return [one async for one in newest_of_each(opened, plan.name)]


async def _bounds(
    plan: Plan, sources: Mapping[str, str], newest: Sequence[Checkpoint]
) -> tuple[dict[str, tuple[int, int]], list[str]]:
    """Return the first offset and the end of each input, and which are not those of the outputs.

    An output's cut is of the inputs by their names: others would never be level with it, and other
    records under the same names would make its rows those of no log.
    """
    found: dict[str, tuple[int, int]] = {}
    problems: list[str] = []
    for source in plan.sources:
        inputs = open_inputs(sources[source.name], plan, 1, follow=False, source=source)
        try:
            first, end = await inputs.bounds()
            for one in newest:
                read = {name: one.cut[name] for name in inputs.names if name in one.cut}
                await inputs.check(read, {name: one.notes.get(f"log/{name}", "") for name in read})
        except InputError as error:
            problems.append(f"source {source.name!r}: {error}")
            continue
        finally:
            await inputs.close()
        found |= {name: (first[name], end[name]) for name in end}
    began = {name[len(STARTS) :] for one in newest for name in one.notes if name.startswith(STARTS)}
    if began and not problems and began != set(found):
        problems.append(
            f"the cluster reads {', '.join(sorted(began))}, and the new code "
            f"{', '.join(sorted(found))}: a generation reads the same sources, by the same names; "
            "name another store and other outputs"
        )
    return found, problems


def _length_of(source: str) -> int:
    """Return how long a log is on the disk, in bytes; 0 where a broker has it."""
    if not source.startswith(PREFIX):
        return 0
    place, length = LogUri.parse(source), 0
    for one in Path(place.folder, place.topic).rglob("*"):
        with suppress(OSError):
            length += one.stat().st_size if one.is_file() else 0
    return length
