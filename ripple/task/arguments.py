"""Arguments of ``rp.run`` and ``rp.Task``: checked, and named in messages."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

from ripple.connectors.contract import is_sink
from ripple.connectors.inputs import EndlessInputs
from ripple.connectors.locate import check_sources, text_of
from ripple.connectors.registry import refused
from ripple.core.arguments import need_whole, shown
from ripple.core.errors import InputError, OutputError, PlanError
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.node_keys import unknown_folds
from ripple.model.pipeline.plan import Plan
from ripple.model.window.duration import duration_ns

if TYPE_CHECKING:
    from ripple.connectors.registry import UseName
    from ripple.model.pipeline.nodes import Output

_NS_MIN = 1_000_000  # a smaller number is one of seconds or of milliseconds


def plan_of(pipeline: Any) -> Plan:
    """Return the plan of a pipeline, or a plan as it is. Raises PlanError for anything else."""
    if isinstance(pipeline, Pipeline):
        return pipeline.plan()
    if not isinstance(pipeline, Plan):
        advice = ""
        if isinstance(pipeline, (str, os.PathLike)):
            advice = (
                ": import it from its file, or write ripple run FILE.py --source URI --sink URI"
            )
        raise PlanError(
            f"what runs is a Pipeline or its plan, not {type(pipeline).__name__}{advice}"
        )
    return pipeline


def sinks_of(plan: Plan, sink: Any) -> Mapping[str, Any]:
    """Return the sink of each output that has one. Raises OutputError where it names no output."""
    if isinstance(sink, Mapping):
        sinks = sink
    elif len(plan.outputs) > 1:
        names = ", ".join(repr(output.name) for output in plan.outputs)
        raise OutputError(f"the pipeline has the outputs {names}: name a sink for those you want")
    else:
        sinks = {plan.outputs[0].name: sink}
    for name in sinks:
        plan.output(name)
    return sinks


def check_ends(sources: Mapping[str, Any]) -> None:
    """Raise InputError for a source that never ends, in a run without ``follow=True``."""
    for name, one in sources.items():
        # Protocols take their time, and nearly all sources are texts.
        if not isinstance(one, str) and isinstance(one, EndlessInputs) and one.ended_by:
            raise InputError(
                f"source {name!r}: it goes on for ever, and a run without follow=True ends: say "
                f"{one.ended_by}, or run with follow=True and checkpoint_dir="
            )


def sources_of(plan: Plan, source: Any) -> Mapping[str, Any]:
    """Return the input of each source. Raises InputError for a missing or unknown source."""
    if len(plan.sources) == 1:
        name, fields = plan.sources[0].name, plan.sources[0].schema.fields
        if not isinstance(source, Mapping):
            return {name: source}
        names_of_fields = (one.name.partition(".")[0] for one in fields)
        if name not in source and not source.keys().isdisjoint(names_of_fields):
            return {name: source}  # a row or columns are no source, which its opening says
        check_sources(plan, source)
        return source
    if not isinstance(source, Mapping):
        pairs = ", ".join(f"{one.name!r}: ..." for one in plan.sources)
        raise InputError(
            f"the pipeline reads the sources {plan.source_names}: give each, as in "
            f"source={{{pairs}}}"
        )
    check_sources(plan, source)
    seen: dict[int, str] = {}
    for name, one in source.items():
        if (hasattr(one, "__next__") or hasattr(one, "__anext__")) and id(one) in seen:
            raise InputError(
                f"the sources {seen[id(one)]!r} and {name!r} are the same iterator, whose rows "
                "come once: give each its own, as itertools.tee makes them"
            )
        seen[id(one)] = name
    return source


def uri_of(given: Any, use: UseName) -> str:
    """Return a URI or path as text. Raises InputError or OutputError for any other object."""
    if isinstance(given, (str, os.PathLike)):
        return text_of(given)
    name = "a sink" if is_sink(given) else "an object"
    if use == "continued_source":
        raise InputError(
            f"resuming after a crash needs a source that can be read again, not {name} of type "
            f"{type(given).__name__}: push its rows into an rp.Stream, from the offset that "
            "stream.opened() returns, or append them to a log (ripple log append) and read "
            "log:DIR/TOPIC"
        )
    raise refused(f"{name} of type {type(given).__name__}", use)


def is_held(given: Any, output: Output) -> bool:
    """Tell whether a sink is an object of the program. Raises OutputError for one that cannot be.

    output: which is written there.
    """
    if isinstance(given, (str, os.PathLike)):
        return False
    if is_sink(given):
        return True
    from ripple.connectors.python_sinks import python_sink  # noqa: PLC0415 - slow to import

    return python_sink(given, output) is not None


def store_of(given: Any) -> str:
    """Return the folder or ``s3://bucket/prefix`` of checkpoints. Raises InputError."""
    text = os.fspath(given) if isinstance(given, os.PathLike) else given
    if not isinstance(text, str) or not text or ("://" in text and not text.startswith("s3://")):
        raise InputError(
            f"checkpoint_dir must be a folder or s3://BUCKET/PREFIX, not {shown(given)}"
        )
    return text


def folds_of(plan: Plan, rebuild: Any) -> Collection[str]:
    """Return the names of a plan's folds to rebuild. Raises PlanError for anything else.

    Also without a state to compare them with: a typing error would pass unnoticed.
    """
    if isinstance(rebuild, str) or not isinstance(rebuild, Collection):
        raise PlanError(f"rebuild must be a list of names of folds, not {shown(rebuild)}")
    if unknown := unknown_folds(plan, rebuild):
        raise PlanError("; ".join(unknown))
    return rebuild


def interval_ns(given: str | int, what: str) -> int:
    """Return an interval in ns. Raises PlanError; also for a number that was meant in seconds."""
    value_ns = duration_ns(given, what, of_wall_clock=True)
    if isinstance(given, int) and 0 < value_ns < _NS_MIN:
        raise PlanError(f"{what}={given} is {given} ns: give a text with its unit, as '{given}s'")
    return value_ns


def keep_of(keep: Any) -> int:
    """Return how many checkpoints are kept. Raises PlanError."""
    return need_whole("keep", keep, 1)
