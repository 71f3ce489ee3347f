"""Show a pipeline's stages, the edges between them, and their stable names.

With --source: also how the partitions of a new cluster read each source. With --checkpoint-dir: the
effect of changed code on the state in the newest whole checkpoint.
Nothing is written, and running processes are not disturbed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ripple.cli.lib.exits import EXIT_FAILURE, EXIT_UNREACHABLE, say
from ripple.cli.lib.output_forms import add_format, many, write
from ripple.cli.lib.path_options import STORE, a_place, a_store
from ripple.cli.lib.user_file import FILE_HELP, load_plan
from ripple.cli.run.plan_outputs import seen_at
from ripple.cli.run.plan_sources import readings
from ripple.connectors.locate import sinks_by_output
from ripple.core.errors import InputError
from ripple.engine.migration.adaptation import adapt, refusals
from ripple.engine.migration.evolution import Comparison, Judged, Verdict, compare
from ripple.engine.migration.lineage import Node
from ripple.model.pipeline.brief_spans import brief_spans
from ripple.model.pipeline.description import blind_spots, type_text
from ripple.model.pipeline.keeping import keeping
from ripple.model.pipeline.nodes import type_of
from ripple.model.pipeline.topology import stages_of
from ripple.storage.checkpoint import Checkpoints, partitions
from ripple.storage.store.opening import store_to_read
from ripple.task import marker_log
from ripple.task.arguments import folds_of
from ripple.task.marker_input import has_answers, has_markers

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Sequence

    from ripple.cli.run.plan_sources import Readings
    from ripple.core.cut import Cut
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.types import Field
    from ripple.storage.checkpoint import Found


_UNKNOWN = (
    "outputs are new or changed: whether ripple run resumes depends on their contents: name them "
    "with --sink"
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", type=a_place, metavar="FILE.py[:NAME]", help=FILE_HELP)
    parser.add_argument(
        "--source",
        type=a_place,
        action="append",
        metavar="[SOURCE=]URI",
        help="also show how the partitions of a new cluster read each source",
    )
    parser.add_argument(
        "--checkpoint-dir",
        type=a_store,
        metavar=STORE,
        help="compare with the newest whole checkpoint in this store",
    )
    parser.add_argument("--partition", type=int, default=0, help="of the checkpoint (%(default)s)")
    parser.add_argument(
        "--rebuild",
        action="append",
        default=[],
        metavar="FOLD",
        help="as if this fold were recomputed from the first record of the log",
    )
    parser.add_argument(
        "--sink",
        type=a_place,
        action="append",
        metavar="[OUTPUT=]URI",
        help="output of ripple run: also report what it would refuse there, and what is new",
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Print the plan, or the comparison; return the exit code.

    1 if ``ripple run`` would be refused; 2 if unknown, since an output does not answer or a new
    one is not named.
    """
    plan = load_plan(options.file)
    if options.checkpoint_dir is None:
        if options.rebuild:
            raise InputError("--rebuild goes with --checkpoint-dir: without state, all is built")
        if options.sink:
            raise InputError("--sink goes with --checkpoint-dir: without state, all is written")
        found = readings(plan, options.source) if options.source else None
        write(options.format, _values(plan, found), lambda: _describe(plan, found))
        for remark in brief_spans(plan):
            say(f"ripple plan: {remark}")
        return 0
    if options.source:
        raise InputError("--source goes without --checkpoint-dir: it asks about a new cluster")
    return _compare(plan, options)


def _describe(plan: Plan, found: Readings | None) -> None:
    print(plan.describe(), end="")
    if found is not None:
        print(f"on a cluster, its first stage in {many(found.partitions, 'partition')}:")
        for source in found.sources:
            print(f"    {source}")
    kept = list(keeping(plan))
    if kept:
        print("keeps:")
    for one in kept:
        print(f"    {one.kind} {one.name}: {one.text}")


def _values(plan: Plan, found: Readings | None) -> dict[str, Any]:
    """Return a plan as JSON values: ``source``, or ``sources`` where it has several."""
    read = {} if found is None else {"cluster": found.as_values()}
    sources = [
        {"name": one.name, "fields": _fields(one.fields), "key": one.node_key}
        for one in plan.sources
    ]
    return {
        "pipeline": plan.name,
        "topology": plan.topology_hash,
        **({"source": sources[0]} if len(sources) == 1 else {"sources": sources}),
        "stages": [
            {
                "number": stage.number,
                "folds": list(stage.folds),
                "partitions": stage.partitions,
                "by": list(stage.key),
                "edge": None if stage.edge is None else stage.edge.as_values(),
            }
            for stage in stages_of(plan)
        ],
        "folds": [
            {
                "name": fold.name,
                "input": fold.input,
                "by": [field.name for field in fold.key],
                "fields": _fields(fold.row),
                "key": fold.node_key,
            }
            for fold in plan.folds
        ],
        "nodes": [
            {"name": node.of.name, "key": node.of.node_key, "reads": list(node.inputs)}
            for node in plan.nodes
        ],
        "keeps": [one.as_values() for one in keeping(plan)],
        "outputs": [
            {
                "name": output.name,
                "of": output.of,
                "fields": _fields(output.fields),
                "key": output.node_key,
            }
            for output in plan.outputs
        ],
    } | read


def _fields(fields: Collection[Field]) -> list[dict[str, str]]:
    return [{"name": one.name, "type": type_text(type_of(one))} for one in fields]


def _compare(plan: Plan, options: argparse.Namespace) -> int:
    found = asyncio.run(_newest(plan, options.checkpoint_dir, options.partition))
    value: dict[str, Any] = {"pipeline": plan.name, "partition": options.partition}
    if found is None:
        folds_of(plan, options.rebuild)
        would = "ripple run would begin with the first record of the log."
        value |= {"checkpoint": None, "nodes": [], "starts": True, "would": would}
        if options.sink:
            value |= {"passed_over": (), "remarks": (), "problems": ()}
            cuts = _with_outputs(plan, options.sink, value, None)
            _with_logs(plan, options, value, cuts)
        write(options.format, value, lambda: _print(value) if options.sink else print(would))
        return _code(value)
    value |= {
        "checkpoint": found.checkpoint.name,
        "passed_over": [str(damage) for damage in found.damaged],
    }
    if found.snapshot.stage is not None:
        value |= _of_stage(plan, found)
    else:
        comparison = compare(plan, found.snapshot, options.rebuild)
        value |= _of_run(plan, found, comparison)
        cuts = _with_outputs(plan, options.sink, value, comparison)
        is_read = _with_logs(plan, options, value, (found.checkpoint.cut, *cuts))
        if is_read and not comparison.problems:
            adapt(found.snapshot, plan, comparison)  # a migration that fails is reported here
    write(options.format, value, lambda: _print(value))
    return _code(value)


def _code(value: dict[str, Any]) -> int:
    if value["starts"]:
        return 0
    is_unknown = value.get("silent") or value.get("unnamed")
    return EXIT_UNREACHABLE if is_unknown else EXIT_FAILURE


def _of_run(plan: Plan, found: Found, comparison: Comparison) -> dict[str, Any]:
    """Return the verdict on each node of a pipeline in one process."""
    return {
        "nodes": [_judged(plan, node) for node in comparison.nodes],
        "remarks": comparison.remarks,
        "problems": comparison.problems,
        "starts": not comparison.problems,
        "would": _would_do(found, comparison),
    }


def _with_outputs(
    plan: Plan, given: Sequence[str] | None, value: dict[str, Any], comparison: Comparison | None
) -> tuple[Cut, ...]:
    """Add the verdict on the outputs with known URIs, or on those without; return their cuts."""
    lasting = comparison.lasting_problems if comparison else {}
    if not given:
        kept = (Verdict.KEEP.value, Verdict.DROP.value)
        changed = [n for n in value["nodes"] if n["kind"] == "sink" and n["verdict"] not in kept]
        if changed:
            value["remarks"] = (*value["remarks"], _UNKNOWN)
        unnamed = [Node("sink", node["key"]).name for node in changed if node["old_key"] is None]
        hold = lasting or plan.migrations or (comparison and comparison.other_problems)
        if unnamed and value["problems"] and not hold:
            # Without problems where the target of one of them is empty: see below.
            value["unnamed"] = unnamed
            value["would"] = (
                "it is not known whether ripple run would start: it would refuse, unless the "
                f"target of {' or '.join(unnamed)} is empty: name it with --sink."
            )
        return ()
    seen = seen_at(plan, sinks_by_output(plan, given))
    value["remarks"] = (*value["remarks"], *seen.remarks)
    if seen.new and value["checkpoint"] is not None and not plan.migrations:
        # Checkpoints later than an output are skipped, whatever they hold.
        value["problems"] = tuple(why for name, why in lasting.items() if name not in seen.new)
        value["would"] = (
            f"ripple run would read the log from its first record: {', '.join(seen.new)} "
            "would be written from there."
        )
    known = len(value["problems"]) + len(seen.problems) - len(seen.silent)
    value["problems"] = (*value["problems"], *seen.problems)
    if known:
        value["would"] = "ripple run would refuse to start."
    elif seen.silent:
        value["silent"] = seen.silent
        silent = ", ".join(seen.silent)
        value["would"] = (
            f"it is not known whether ripple run would resume: no answer from {silent}."
        )
    value["starts"] = not value["problems"]
    return seen.cuts


def _with_logs(
    plan: Plan, options: argparse.Namespace, value: dict[str, Any], cuts: Collection[Cut]
) -> bool:
    """Add the check of the markers and answers before the cuts of checkpoint and outputs.

    Return whether ``ripple run`` could read them again.
    """
    is_marked = plan.is_idle or has_markers(cuts)
    is_answered = bool(plan.asks) or has_answers(cuts)
    if not is_marked and not is_answered:
        return True
    at = plan.name, options.partition, cuts

    async def look() -> list[str]:
        async with store_to_read(options.checkpoint_dir, "--checkpoint-dir") as store:
            found = await marker_log.problems_of(store, *at) if is_marked else []
            if is_answered:
                # slow to import, and few plans need it
                from ripple.task.asks import answer_log  # noqa: PLC0415

                found += await answer_log.problems_of(store, *at, plan)
            return found

    if problems := asyncio.run(look()):
        value["problems"] = (*value["problems"], *problems)
        value["would"], value["starts"] = "ripple run would refuse to start.", False
        value.pop("silent", None)
    return not problems


def _of_stage(plan: Plan, found: Found) -> dict[str, Any]:
    """Return whether workers would resume; all partitions decide as this one does."""
    reasons = refusals(plan, found.snapshot, staged=True)
    would = f"workers would resume from checkpoint {found.checkpoint.name} and its like."
    return {
        "nodes": [],
        "remarks": [],
        "problems": reasons,
        "starts": not reasons,
        "would": "workers would refuse to start." if reasons else would,
    }


def _judged(plan: Plan, node: Judged) -> dict[str, Any]:
    unseen = blind_spots(plan, Node(node.kind, node.key).name)
    return {
        "key": node.key,
        "kind": node.kind,
        "old_key": node.old_key,
        "verdict": node.verdict.value,
        "cause": node.cause,
        "cannot_see": None if node.verdict is Verdict.DROP else unseen,
    }


def _print(value: dict[str, Any]) -> None:
    for damage in value["passed_over"]:
        say(f"ripple plan: skipped: {damage}")
    for node in value["nodes"]:
        cause = f"  ({node['cause']})" if node["cause"] else ""
        print(f"{node['verdict']:<8} {node['key']}{cause}")
        if node["cannot_see"] is not None:
            print(f"         cannot see: {node['cannot_see']}")
    for line in (*value["remarks"], *value["problems"]):
        say(f"ripple plan: {line}")
    print(value["would"])


async def _newest(plan: Plan, folder: str, partition: int) -> Found | None:
    async with store_to_read(folder, "--checkpoint-dir") as store:
        found = await Checkpoints(store, plan.name, partition).latest()
        present = () if found else await partitions(store)
    if found is None:
        others = ", ".join(f"{name}/{number}" for name, number in present)
        say(
            f"ripple plan: no checkpoint of {plan.name}/{partition} in {folder}; there is state of "
            f"{others or 'nothing else'}"
        )
    return found


def _would_do(found: Found, comparison: Comparison) -> str:
    if comparison.problems:
        return "ripple run would refuse to start."
    cut = ", ".join(f"{name} {offset}" for name, offset in found.checkpoint.cut.items())
    verdicts = {node.verdict for node in comparison.folds}
    if comparison.rebuilds:
        return (
            "ripple run would read the log from its first record, without writing up to the "
            "position of the outputs, and resume from there."
        )
    how = ", with migrated state" if Verdict.MIGRATE in verdicts else ""
    return f"ripple run would resume from checkpoint {found.checkpoint.name} at {cut}{how}."
