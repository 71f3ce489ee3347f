"""Deploy other code of a cluster's pipeline beside the code that serves, and let it serve.

FILE.py is computed from the first record by processes of its own, as the next generation, and
writes a preview of its outputs. Readers see nothing of it before --approve.

0: it was done, or would be. 1: it is refused, or another generation serves again. 2: a server
does not answer.
"""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING, Any

from ripple.cli.cluster import down as cluster_down
from ripple.cli.cluster import up as cluster_up
from ripple.cli.cluster.deploying.comparison import difference, lines_of
from ripple.cli.cluster.deploying.counts import let_take, undivided
from ripple.cli.cluster.deploying.standing import (
    Generations,
    check_is_code,
    commits_at,
    generations_in,
    previews,
)
from ripple.cli.cluster.deploying.switching import serve, taken_over, wait_level
from ripple.cli.cluster.deploying.verdict import code_of, print_verdict, verdict_of
from ripple.cli.lib.exits import EXIT_FAILURE, say
from ripple.cli.lib.number_options import positive
from ripple.cli.lib.output_forms import add_format, write
from ripple.cli.lib.user_file import load_plan
from ripple.connectors.locate import sinks_by_output, sources_by_name
from ripple.control.assignment import stage_names
from ripple.control.assignment.generations import store_of
from ripple.core.errors import InputError
from ripple.task.endpoints import EndpointUris
from ripple.world.ports import INLINE

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    from ripple.model.pipeline.plan import Plan

EXAMPLES = (
    "ripple deploy new.py --source log:data/trades --sink log:data/vwap --dir cluster --dry-run",
    "ripple deploy new.py --source log:data/trades --sink log:data/vwap --dir cluster",
    "ripple deploy new.py --source log:data/trades --sink log:data/vwap --dir cluster --approve",
)
TIMEOUT_S = 60
WITHIN_S = 30


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    cluster_up.configure_cluster(parser)
    parser.add_argument(
        "--partitions",
        type=positive,
        metavar="N",
        help="partitions of the first stage (default: as in the serving generation); later "
        "stages have the counts of FILE.py",
    )
    acts = parser.add_mutually_exclusive_group()
    acts.add_argument(
        "--dry-run", action="store_true", help="say what would change, its cost, what is refused"
    )
    acts.add_argument(
        "--compare",
        action="store_true",
        help="compare the preview's rows with those of the outputs",
    )
    acts.add_argument(
        "--approve", action="store_true", help="let the new generation serve, once it is level"
    )
    acts.add_argument(
        "--rollback", action="store_true", help="let the generation before serve again"
    )
    acts.add_argument(
        "--abort", action="store_true", help="stop the new generation, and remove its state"
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        default=TIMEOUT_S,
        metavar="SECONDS",
        help="how long --approve waits for the preview, and --abort for processes (%(default)s)",
    )
    parser.add_argument(
        "--within",
        type=positive,
        default=WITHIN_S,
        metavar="SECONDS",
        help="if it has not taken all outputs over by then, the other one serves again "
        "(%(default)s)",
    )
    add_format(parser)


def run(options: argparse.Namespace) -> int:
    """Carry out the command; return the exit code."""
    plan = load_plan(options.file)
    sources, outputs = sources_by_name(plan, options.source), sinks_by_output(plan, options.sink)
    there = generations_in(options.store or f"{options.dir}/store")
    if options.abort:
        return _abort(options, there)
    if options.rollback:
        for name, place in outputs.items():
            commits_at(plan, name, place)  # which refuses those of another pipeline
        return _switch(options, outputs, there, _before(there))
    value, counts = _verdict(plan, sources, outputs, there, options.partitions or 0)
    if options.compare or options.approve:
        _check(value)
        return _approve(options, plan, outputs, there, (value, counts))
    if options.dry_run:
        write(options.format, value, lambda: print_verdict(value))
        return code_of(value)
    print_verdict(value)
    if value["problems"]:
        return EXIT_FAILURE
    assert there.assignment is not None
    options.partitions = options.partitions or stage_names.asked(there.assignment.stages).partitions
    options.free_ports, options.until_end = True, False  # the others are those of the cluster
    return cluster_up.run_generation(options, value["generation"])


def _verdict(
    plan: Plan,
    sources: Mapping[str, str],
    outputs: Mapping[str, str],
    there: Generations,
    first: int,
) -> tuple[dict[str, Any], tuple[tuple[str, int], ...]]:
    from worker.engine.stages import has_lanes, stage_counts  # noqa: PLC0415 - of an extra

    ends = EndpointUris(plan, sources, outputs, batch_rows=1, executor=INLINE)
    divides, repartitioned = ends.divides, ends.repartitioned
    found = stage_counts(
        plan, divides=divides, needs_one=ends.needs_one, repartitioned=repartitioned
    )
    counts = tuple((name, count or first) for name, count in found)
    has = has_lanes(plan, divides=divides or bool(repartitioned))
    value = verdict_of(plan, sources, outputs, there, counts, has_lanes=has)
    value["problems"] += undivided(ends.counts(), first)
    return value, counts


def _check(value: Mapping[str, Any]) -> None:
    if value["problems"]:
        raise InputError("; ".join(value["problems"]))


def _approve(
    options: argparse.Namespace,
    plan: Plan,
    outputs: Mapping[str, str],
    there: Generations,
    judged: tuple[Mapping[str, Any], tuple[tuple[str, int], ...]],
) -> int:
    """Compare the preview, and let its generation serve; one that has served has none."""
    (value, counts), candidate = judged, there.candidate
    if candidate is None and (options.compare or there.newest == there.serving.generation):
        raise InputError(
            f"generation {there.serving.generation} of {there.store} serves, and none waits to "
            "serve: begin one with ripple deploy FILE.py"
        )
    check_is_code(plan, there, there.newest, counts)
    if candidate is None:
        return _switch(options, outputs, there, there.newest)
    wait_level(plan, outputs, there, candidate, options.timeout)
    shown = previews(there.store, candidate, outputs)
    same = {one["name"] for one in value["outputs"] if one["verdict"] == "same"}
    tables = {name: at for name, at in outputs.items() if not plan.output(name).is_stream}
    found = [difference(name, place, shown[name]) for name, place in tables.items()]
    for line in lines_of(found):
        print(line)
    # With windows, rows that were final when other code served are still there.
    is_judged = not plan.frees_rows
    alike = [one for one in found if is_judged and one.output in same and not one.is_apart]
    wrong = [one.output for one in alike if not one.is_none]
    if wrong:
        raise InputError(
            f"output {wrong[0]!r} is of the same code, and generation {candidate} has other rows: "
            "one of both is wrong; nothing has changed"
        )
    if options.compare:
        return 0
    let_take(outputs, shown)
    return _switch(options, outputs, there, candidate)


def _switch(
    options: argparse.Namespace, outputs: Mapping[str, str], there: Generations, generation: int
) -> int:
    """Let a generation serve; let the other one serve again if this one fails to."""
    serving = there.serving
    if generation == serving.generation:
        raise InputError(f"generation {generation} serves, and no other one has before it")
    _check_runs(options.dir, generation)
    entry, began_s = serve(there.store, serving, generation), time.monotonic()
    left = taken_over(outputs, entry, options.within)
    if not left:
        say(
            f"ripple deploy: generation {generation} serves: all outputs were taken over within "
            f"{time.monotonic() - began_s:.1f} s"
        )
        return 0
    back = serve(there.store, entry, serving.generation)
    still = taken_over(outputs, back, options.within)
    say(
        f"ripple deploy: generation {generation} has not taken over {', '.join(left[:5])} within "
        f"{options.within} s: generation {serving.generation} serves again"
        + (f", and has not taken back {', '.join(still[:5])} yet" if still else "")
    )
    return EXIT_FAILURE


def _check_runs(folder: str, generation: int) -> None:
    """Raise InputError for a generation whose processes were run in a folder, and have ended.

    Readers would be without news until the other one serves again. Of workers elsewhere nothing is
    known here.
    """
    own = cluster_up.folder_of(folder, generation)
    if cluster_down.has_ended(own):
        raise InputError(
            f"generation {generation} does not run in {own}, and could not take the outputs over: "
            "nothing has changed; start it again with ripple deploy, if it has never served, else "
            "deploy its code once more"
        )


def _before(there: Generations) -> int:
    """Return which generation to go back to. Raises InputError where that was done already.

    So whoever is in doubt whether a rollback was done can say it again.
    """
    now, before = there.serving.generation, there.serving.before
    if before > now:
        raise InputError(
            f"generation {now} serves again already, after generation {before}: --approve lets "
            f"generation {there.serving.newest} serve once more"
        )
    return before


def _abort(options: argparse.Namespace, there: Generations) -> int:
    """End the processes that ``ripple deploy`` runs of the candidate, and remove its state."""
    candidate = there.candidate
    if candidate is None:
        raise InputError(
            f"no generation of {there.store} waits to serve: one that has served stays, for "
            "--rollback"
        )
    folder = cluster_up.folder_of(options.dir, candidate)
    if cluster_down.is_running(folder):
        cluster_down.stop(folder, options.timeout)
    own = store_of(there.store, candidate)
    if os.path.isdir(own):
        shutil.rmtree(own)
    serving = there.serving.generation
    say(f"ripple deploy: generation {candidate} is gone; generation {serving} serves")
    return 0
