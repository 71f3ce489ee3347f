"""Show what a pipeline will do: its stages, the edges between them, and their stable names.

With --checkpoint-dir: what would become of the state in the newest whole checkpoint. Nothing is
written, and nobody who writes there is disturbed.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ripple.change.adaptation import adapt, refusals
from ripple.change.evolution import Comparison, Verdict, compare
from ripple.change.lineage import Node
from ripple.checkpoint import Checkpoints, partitions
from ripple.cli.exits import EXIT_FAILURE, say
from ripple.cli.forms import add_format, write
from ripple.cli.places import STORE, a_place, a_store
from ripple.cli.stores import store_to_read
from ripple.cli.user_file import FILE_HELP, load_plan
from ripple.errors import InputError
from ripple.pipeline.description import blind_spots, type_text
from ripple.pipeline.plan import type_of
from ripple.pipeline.stages import stages_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable

    from ripple.checkpoint import Found
    from ripple.pipeline.plan import Plan
    from ripple.schema.types import Field


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.add_argument("file", type=a_place, metavar="FILE.py[:NAME]", help=FILE_HELP)
    parser.add_argument(
        "--checkpoint-dir",
        type=a_store,
        metavar=STORE,
        help="compare with the newest whole checkpoint there",
    )
    parser.add_argument("--partition", type=int, default=0, help="of the checkpoint (%(default)s)")
    parser.add_argument(
        "--rebuild",
        action="append",
        default=[],
        metavar="FOLD",
        help="as if this fold were to be computed again from the first record of the log",
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Print the plan, or the comparison; exit code 1 if ``ripple run`` would be refused."""
    plan = load_plan(options.file)
    if options.checkpoint_dir is None:
        if options.rebuild:
            raise InputError("--rebuild goes with --checkpoint-dir: without state, all is built")
        write(options.format, _values(plan), lambda: print(plan.describe(), end=""))
        return 0
    if options.format != "text":
        raise InputError("a comparison with --checkpoint-dir is for people: it has no --format")
    return _compare(plan, options)


def _values(plan: Plan) -> dict[str, Any]:
    """Return a plan as values of JSON."""
    return {
        "pipeline": plan.name,
        "topology": plan.topology_hash,
        "source": {
            "name": plan.source.name,
            "fields": _fields(plan.source.fields),
            "key": plan.source.node_key,
        },
        "stages": [
            {
                "number": stage.number,
                "folds": list(stage.folds),
                "partitions": stage.partitions,
                "by": list(stage.key),
                "edge": None
                if stage.edge is None
                else {
                    "of": stage.edge.of,
                    "to": stage.edge.to,
                    "kind": stage.edge.kind.value,
                    "why": stage.edge.why,
                },
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
        "outputs": [
            {
                "name": output.name,
                "of": output.of,
                "fields": _fields(output.fields),
                "key": output.node_key,
            }
            for output in plan.outputs
        ],
    }


def _fields(fields: Iterable[Field]) -> list[dict[str, str]]:
    return [{"name": one.name, "type": type_text(type_of(one))} for one in fields]


def _compare(plan: Plan, options: argparse.Namespace) -> int:
    found = asyncio.run(_newest(plan, options.checkpoint_dir, options.partition))
    if found is None:
        print("ripple run would begin with the first record of the log.")
        return 0
    for damage in found.damaged:
        say(f"ripple plan: passed over: {damage}")
    if found.snapshot.stage is not None:
        return _compare_stage(plan, found)
    comparison = compare(plan, found.snapshot, options.rebuild)
    for node in comparison.nodes:
        print(f"{node.verdict.value:<8} {node.key}{f'  ({node.cause})' if node.cause else ''}")
        unseen = blind_spots(plan, Node(node.kind, node.key).name)
        if unseen is not None and node.verdict is not Verdict.DROP:
            print(f"         cannot see: {unseen}")
    for remark in comparison.remarks:
        say(f"ripple plan: {remark}")
    for problem in comparison.problems:
        say(f"ripple plan: {problem}")
    if comparison.problems:
        print("ripple run would refuse to start.")
        return EXIT_FAILURE
    adapt(found.snapshot, plan, comparison)  # a migration may fail: better here
    print(_would_do(found, comparison))
    return 0


def _compare_stage(plan: Plan, found: Found) -> int:
    """Say whether workers would go on, all of whose partitions decide as this one does."""
    reasons = refusals(plan, found.snapshot, staged=True)
    for reason in reasons:
        say(f"ripple plan: {reason}")
    if reasons:
        print("workers would refuse to start.")
        return EXIT_FAILURE
    print(f"workers would go on from checkpoint {found.checkpoint.name}, and the like of it.")
    return 0


async def _newest(plan: Plan, folder: str, partition: int) -> Found | None:
    async with store_to_read(folder, "--checkpoint-dir") as store:
        found = await Checkpoints(store, plan.name, partition).latest()
        present = () if found else await partitions(store)
    if found is None:
        others = ", ".join(f"{name}/{number}" for name, number in present)
        say(
            f"ripple plan: there is no checkpoint of {plan.name}/{partition} below {folder}; there "
            f"is state of {others or 'nothing else'}"
        )
    return found


def _would_do(found: Found, comparison: Comparison) -> str:
    cut = ", ".join(f"{name} {offset}" for name, offset in found.checkpoint.cut.items())
    verdicts = {node.verdict for node in comparison.folds}
    if comparison.rebuilds:
        return (
            "ripple run would read the log from its first record, without writing up to where the "
            "outputs are, and go on from there."
        )
    how = ", with migrated state" if Verdict.MIGRATE in verdicts else ""
    return f"ripple run would go on from checkpoint {found.checkpoint.name} at {cut}{how}."
