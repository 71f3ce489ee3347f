"""The effect of changed code on the state in a store, for people."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ripple.cli.lib.exits import EXIT_FAILURE, EXIT_UNREACHABLE, say
from ripple.cli.lib.output_forms import write
from ripple.cli.run.plan_outputs import seen_at
from ripple.cli.run.plan_sources import readings
from ripple.cli.run.plan_state import state_in
from ripple.connectors.locate import sinks_by_output
from ripple.core.errors import InputError
from ripple.engine.migration.adaptation import adapt, refusals
from ripple.engine.migration.evolution import Comparison, Judged, Verdict, compare
from ripple.engine.migration.lineage import Node, written_lineage
from ripple.model.canonical import name_of
from ripple.model.pipeline.description import blind_spots
from ripple.model.pipeline.node_keys import rebuild_word
from ripple.model.pipeline.topology import outputs_of
from ripple.storage.store.opening import store_to_read
from ripple.task import marker_log
from ripple.task.arguments import folds_of
from ripple.task.home import other_division, takes_more
from ripple.task.marker_input import has_answers, has_markers

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterator, Sequence

    from ripple.cli.run.plan_state import State
    from ripple.core.cut import Cut
    from ripple.model.pipeline.plan import Plan
    from ripple.storage.checkpoint import Found


_UNKNOWN = (
    "outputs are new or changed: what {} would do depends on their contents: name them with --sink"
)


def compared(plan: Plan, options: argparse.Namespace) -> int:
    """Print what code changes about the state in a store, and return the exit code."""
    state = asyncio.run(state_in(plan, options.checkpoint_dir, options.partition))
    found, who = state.found, state.who
    _check_flags(options, state)
    value: dict[str, Any] = {"pipeline": plan.name, "partition": options.partition}
    if found is None:
        folds_of(plan, options.rebuild)
        would = f"{who} would begin with the first record of the log."
        value |= {"checkpoint": None, "nodes": [], "starts": True, "would": would}
        if options.sink:
            value |= {"passed_over": (), "remarks": (), "problems": ()}
            cuts = _with_outputs(plan, options, value, None, state)
            _with_logs(plan, options, value, cuts, who)
        if options.source:
            _with_sources(plan, options.source, value, None)
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
        value |= _of_run(plan, found, comparison, who)
        cuts = _with_outputs(plan, options, value, comparison, state)
        is_read = _with_logs(plan, options, value, (found.checkpoint.cut, *cuts), who)
        if is_read and not comparison.problems:
            adapt(found.snapshot, plan, comparison)  # a migration that fails is reported here
    if options.source:
        _with_sources(plan, options.source, value, found)
    write(options.format, value, lambda: _print(value))
    return _code(value)


def _check_flags(options: argparse.Namespace, state: State) -> None:
    """Raise InputError for a flag that the run, or the cluster, of this state does not have."""
    place = options.checkpoint_dir
    if options.source and not state.is_of_cluster:
        raise InputError(
            f"--source asks about a cluster, and {place} has the state of ripple run, or none: "
            "leave one of --source and --checkpoint-dir out"
        )
    if options.rebuild and state.is_of_cluster:
        raise InputError(
            f"{place} is the store of a cluster, whose workers have no --rebuild: leave it out; to "
            "compute everything from the first record, name another store and other outputs"
        )


def _code(value: dict[str, Any]) -> int:
    if value["starts"]:
        return 0
    is_unknown = value.get("silent") or value.get("unnamed")
    return EXIT_UNREACHABLE if is_unknown else EXIT_FAILURE


def _of_run(plan: Plan, found: Found, comparison: Comparison, who: str) -> dict[str, Any]:
    """Return the verdict on each node of a pipeline of one stage."""
    return {
        "nodes": [_judged(plan, node) for node in comparison.nodes],
        "remarks": comparison.remarks,
        "problems": comparison.problems,
        "starts": not comparison.problems,
        "would": _would_do(found, comparison, who),
    }


def _with_outputs(
    plan: Plan,
    options: argparse.Namespace,
    value: dict[str, Any],
    comparison: Comparison | None,
    state: State,
) -> tuple[Cut, ...]:
    """Add the verdict on the outputs with known URIs, or on those without; return their cuts."""
    lasting = comparison.lasting_problems if comparison else {}
    who = state.who
    if not options.sink:
        kept = (Verdict.KEEP.value, Verdict.DROP.value)
        changed = [n for n in value["nodes"] if n["kind"] == "sink" and n["verdict"] not in kept]
        if changed:
            value["remarks"] = (*value["remarks"], _UNKNOWN.format(who))
        unnamed = [Node("sink", node["key"]).name for node in changed if node["old_key"] is None]
        hold = lasting or plan.migrations or (comparison and comparison.other_problems)
        is_held = hold or (state.is_of_cluster and not _takes_new(comparison))
        if unnamed and value["problems"] and not is_held:
            # Without problems where the target of one of them is empty: see below.
            value["unnamed"] = unnamed
            value["problems"] = tuple(
                f"{why}; where the target of {' or '.join(unnamed)} is empty it needs none"
                if "--rebuild" in why
                else why
                for why in value["problems"]
            )
            value["would"] = (
                f"it is not known whether {who} would start: {state.it} would refuse, unless the "
                f"target of {' or '.join(unnamed)} is empty: name it with --sink."
            )
        return ()
    seen = seen_at(plan, sinks_by_output(plan, options.sink), state.part)
    value["remarks"] = (*value["remarks"], *seen.remarks)
    is_refused = state.is_of_cluster and value["problems"] and not _takes_new(comparison)
    is_read_anew = seen.new and value["checkpoint"] is not None and not plan.migrations
    if is_read_anew and not is_refused:
        # Checkpoints later than an output are skipped, whatever they hold.
        value["problems"] = tuple(why for name, why in lasting.items() if name not in seen.new)
        value["would"] = (
            f"{who} would read the log from its first record: {', '.join(seen.new)} "
            "would be written from there."
        )
        if not options.rebuild:
            value["remarks"] = (*value["remarks"], *_other_rows(plan, comparison, seen.new))
    known = len(value["problems"]) + len(seen.problems) - len(seen.silent)
    value["problems"] = (*value["problems"], *seen.problems)
    if known:
        value["would"] = f"{who} would refuse to start."
    elif seen.silent:
        value["silent"] = seen.silent
        silent = ", ".join(seen.silent)
        value["would"] = f"it is not known whether {who} would resume: no answer from {silent}."
    value["starts"] = not value["problems"]
    return seen.cuts


def _other_rows(plan: Plan, comparison: Comparison | None, new: Collection[str]) -> Iterator[str]:
    """Yield what the run does with each table, written by other code, that it does not rebuild."""
    for node in () if comparison is None else comparison.nodes:
        name = name_of(node.key)
        if node.kind != "sink" or node.verdict is not Verdict.CHANGED or name in new:
            continue
        if not (output := plan.output(name)).is_stream:
            yield (
                f"output {name!r} is of other code: if its rows differ at its cut, ripple run ends "
                f"there and commits nothing; say --rebuild {rebuild_word(plan, output.of)} to have "
                "them corrected"
            )


def _takes_new(comparison: Comparison | None) -> bool:
    """Tell whether workers start beside state that lacks nodes: if empty outputs show these."""
    return comparison is None or comparison.is_only_more


def _with_sources(
    plan: Plan, given: Sequence[str], value: dict[str, Any], found: Found | None
) -> None:
    """Add how a cluster's partitions read the given sources, and whether they read them so."""
    read = readings(plan, given)
    value["cluster"] = read.as_values()
    stage = None if found is None else found.snapshot.stage
    other = "" if found is None else other_division(plan, stage, divides=read.divides)
    if other:
        value["problems"] = (*value["problems"], other)
        value["would"], value["starts"] = "workers would refuse to start.", False


def _with_logs(
    plan: Plan, options: argparse.Namespace, value: dict[str, Any], cuts: Collection[Cut], who: str
) -> bool:
    """Add the check of the markers and answers before the cuts of checkpoint and outputs.

    Return whether ``who`` could read them again.
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
        value["would"], value["starts"] = f"{who} would refuse to start.", False
        value.pop("silent", None)
    return not problems


def _of_stage(plan: Plan, found: Found) -> dict[str, Any]:
    """Return whether workers would resume; all partitions decide as this one does."""
    reasons = refusals(plan, found.snapshot, staged=True)
    would = f"workers would resume from checkpoint {found.checkpoint.name} and its like."
    if reasons and takes_more(plan, found.snapshot):
        new = sorted(outputs_of(plan, 0).difference(_shown(found)))
        reasons = ()
        would = (
            "partitions of the first stage would read the log from its first record, if the "
            f"targets of {', '.join(new)} are empty, and partitions of other stages resume."
        )
    return {
        "nodes": [],
        "remarks": [],
        "problems": reasons,
        "starts": not reasons,
        "would": "workers would refuse to start." if reasons else would,
    }


def _shown(found: Found) -> set[str]:
    """Return the names of the outputs that there were."""
    written = written_lineage(found.snapshot)
    return set() if written is None else {sink.name for sink in written.sinks}


def _judged(plan: Plan, node: Judged) -> dict[str, Any]:
    is_sink = node.kind == "sink"  # without code of its own, even with the name of a step
    unseen = None if is_sink else blind_spots(plan, Node(node.kind, node.key).name)
    return {
        "key": node.key,
        "kind": node.kind,
        "old_key": node.old_key,
        "verdict": node.verdict.value,
        "cause": node.cause,
        "cannot_see": None if node.verdict is Verdict.DROP else unseen,
    }


def _kinds_of_shared(nodes: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Return the kinds, by key, of nodes whose name nodes of other kinds have, too."""
    kinds: dict[str, set[str]] = {}
    for node in nodes:
        kinds.setdefault(name_of(node["key"]), set()).add(node["kind"])
    return {one["key"]: one["kind"] for one in nodes if len(kinds[name_of(one["key"])]) > 1}


def _print(value: dict[str, Any]) -> None:
    for damage in value["passed_over"]:
        say(f"ripple plan: skipped: {damage}")
    kinds = _kinds_of_shared(value["nodes"])
    for node in value["nodes"]:
        said = ": ".join(filter(None, (kinds.get(node["key"]), node["cause"])))
        cause = f"  ({said})" if said else ""
        print(f"{node['verdict']:<8} {node['key']}{cause}")
        if node["cannot_see"] is not None:
            print(f"         cannot see: {node['cannot_see']}")
    for line in (*value["remarks"], *value["problems"]):
        say(f"ripple plan: {line}")
    print(value["would"])


def _would_do(found: Found, comparison: Comparison, who: str) -> str:
    if comparison.problems:
        return f"{who} would refuse to start."
    cut = ", ".join(f"{name} {offset}" for name, offset in found.checkpoint.cut.items())
    verdicts = {node.verdict for node in comparison.nodes}
    if comparison.rebuilds:
        return (
            f"{who} would read the log from its first record, without writing up to the "
            "position of the outputs, and resume from there."
        )
    how = ", with migrated state" if Verdict.MIGRATE in verdicts else ""
    return f"{who} would resume from checkpoint {found.checkpoint.name} at {cut}{how}."
