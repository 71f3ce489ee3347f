"""Show a pipeline's stages, the edges between them, and their stable names.

With --source: also how the partitions of a new cluster read each source. With --checkpoint-dir: the
effect of changed code on the state in the newest whole checkpoint.
No state or output is written, and running processes are not disturbed.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

from ripple.cli.lib.output_forms import add_format, many, write
from ripple.cli.lib.path_options import STORE, a_picture, a_place, a_store
from ripple.cli.lib.pipeline_options import add_file, add_sources
from ripple.cli.lib.user_file import load_plan
from ripple.cli.run.plan_comparison import compared
from ripple.cli.run.plan_sources import readings
from ripple.connectors.target import open_target
from ripple.core.errors import InputError
from ripple.model.pipeline.description import type_text
from ripple.model.pipeline.keeping import keeping
from ripple.model.pipeline.nodes import type_of
from ripple.model.pipeline.topology import stages_of

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection

    from ripple.cli.run.plan_sources import Readings
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.types import Field

EXAMPLES = (
    "ripple plan vwap.py",
    "ripple plan vwap.py --checkpoint-dir state",
    "ripple plan vwap.py --format json",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    add_file(parser)
    add_sources(
        parser,
        "also show how the partitions of a new cluster read each source; with --checkpoint-dir, of "
        "a cluster, whether they still read them so",
        is_required=False,
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
        "-o",
        "--sink",
        type=a_place,
        action="append",
        metavar="[OUTPUT=]URI",
        help="output of ripple run or of the cluster: also report what it would refuse there, and "
        "what is new",
    )
    parser.add_argument(
        "--svg", type=a_picture, metavar="FILE.svg", help="also write a picture of the graph there"
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Print the plan, or the comparison; return the exit code.

    1 if ``ripple run``, or the cluster, would be refused; 2 if unknown, since an output does not
    answer or a new one is not named.
    """
    plan = load_plan(options.file)
    if options.svg is not None:
        with closing(open_target(options.svg)) as target:
            target.write(plan.svg().encode())
            target.commit()
    if options.checkpoint_dir is None:
        if options.rebuild:
            raise InputError("--rebuild goes with --checkpoint-dir: without state, all is built")
        if options.sink:
            raise InputError("--sink goes with --checkpoint-dir: without state, all is written")
        found = readings(plan, options.source) if options.source else None
        write(options.format, _values(plan, found), lambda: _describe(plan, found))
        return 0
    return compared(plan, options)


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
