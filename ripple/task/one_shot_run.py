"""A one-shot run over whole sources, from their URIs to its end."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from types import NoneType
from typing import TYPE_CHECKING, Any

from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.dead_letter import DeadLetters
from ripple.connectors.hints import Hints
from ripple.connectors.identity import check_places
from ripple.connectors.locate import (
    is_iterator,
    is_pushed,
    open_sink,
    open_source,
    path_of,
    text_of,
)
from ripple.connectors.target import open_target
from ripple.core.arguments import need_bool, need_function, shown
from ripple.core.errors import InputError
from ripple.task.arguments import check_ends, sinks_of, sources_of
from ripple.task.ended import Ended, lost_text
from ripple.task.lifecycle import PartitionTask
from ripple.task.one_shot import EphemeralState, OneShotLetters, hint_of, to_its_end
from ripple.task.progress import Progress, here
from ripple.task.rejection_limit import RejectionLimit
from ripple.task.report import Report
from ripple.task.settings import BATCH_ROWS, Settings
from ripple.task.several_sources import inputs_of
from ripple.task.spec import TaskContext, TaskSpec

if TYPE_CHECKING:
    from ripple.connectors.contract import Sink
    from ripple.connectors.inputs import Inputs
    from ripple.core.events import Event
    from ripple.engine.machine import Engine
    from ripple.model.pipeline.plan import Plan


def run_once(
    plan: Plan,
    *,
    source: Any,
    sink: Any,
    batch_rows: int = BATCH_ROWS,
    header: bool = False,
    dead_letters: str | os.PathLike[str] | DeadLetters | None = None,
    strict: bool = False,
    max_rejected: int | str | None = None,
    progress: bool = False,
    on_batch: Callable[[Engine, Report], None] | None = None,
) -> Ended:
    """Run a pipeline once over a whole source. Arguments and errors as for ``run``."""
    need_bool("header", header)
    need_bool("strict", strict)
    need_bool("progress", progress)
    limit = RejectionLimit.of(max_rejected)
    if on_batch is not None:
        need_function("on_batch", on_batch)
    if not isinstance(dead_letters, (str, os.PathLike, DeadLetters, NoneType)):
        raise InputError(
            f"dead_letters must be a file or ripple.connectors.dead_letter.DeadLetters, not "
            f"{shown(dead_letters)}"
        )
    sinks = sinks_of(plan, sink)
    sources = sources_of(plan, source)
    check_ends(sources)
    uris = _uris(sources)
    letters = os.fspath(dead_letters) if isinstance(dead_letters, (str, os.PathLike)) else None
    check_places(uris.values(), _uris(sinks), letters, continues=False)
    only = uris.get(plan.sources[0].name) if len(sources) == 1 else None
    file = None if only is None else path_of(only, "source")
    given = open_sources(plan, sources, batch_rows, header=header)
    hints = Hints.of((one.fields for one in plan.sources), uris.values(), header=header)

    line = Progress(given, here() if progress else None)

    def open_letters() -> DeadLetters:
        if isinstance(dead_letters, (str, os.PathLike)):
            return DeadLetters(open_target(dead_letters))
        return dead_letters or DeadLetters()

    openers = {name: partial(open_sink, place, plan, name) for name, place in sinks.items()}
    life = plain_life(
        plan,
        given,
        openers,
        open_letters,
        strict=strict,
        file=file,
        batch_rows=batch_rows,
        on_batch=line.beside(on_batch),
        limit=limit,
        hints=hints,
    )
    try:
        report = to_its_end(life, plan, waits=waits_in_loop(plan, sources))
    finally:
        line.clear()
    assert life.live is not None, "it has run"
    lost = lost_text(report, plan, are_kept=dead_letters is not None)
    return Ended(plan, report, lost, hint_of(hints), life.live.noticed.units.remark)


def open_sources(
    plan: Plan, places: Mapping[str, Any], batch_rows: int, *, header: bool = False
) -> Inputs:
    """Return the inputs of a one-shot run over all sources of a plan: they end, and never wait.

    Those with streams and iterators may wait, where ``waits_in_loop`` says so.

    places: the URI or the data of each source, by its name. Raises as ``open_source`` does.
    """
    if sum(place == "-" for place in places.values() if isinstance(place, str)) > 1:
        raise InputError("one source can read standard input (-), not several: give files")
    opened = {
        source.name: open_source(
            places[source.name],
            source.schema,
            name=source.name,
            checks=source.checks,
            batch_rows=batch_rows,
            header=header,
            whole=True,
            table=source.table,
            needs_all=plan.has_versions_of(source),
            in_loop=waits_in_loop(plan, places),
        )
        for source in plan.sources
    }
    return inputs_of(plan, opened)


def waits_in_loop(plan: Plan, places: Mapping[str, Any]) -> bool:
    """Tell whether a one-shot run waits in its own event loop.

    Where a stream or an iterator is silent, answers and other sources would wait for its next row
    else. Where a loop is running already, they do.
    """
    if len(places) < 2 and not plan.asks:
        return False
    if not any(is_pushed(one) or is_iterator(one) for one in places.values()):
        return False
    from ripple.world.running_loop import is_in_a_loop  # noqa: PLC0415 - slow to import

    return not is_in_a_loop()


def _uris(given: Mapping[str, Any]) -> dict[str, str]:
    """Return the sources or sinks that are given by their URIs or paths."""
    return {
        name: text_of(one) for name, one in given.items() if isinstance(one, (str, os.PathLike))
    }


def plain_life(
    plan: Plan,
    inputs: Inputs,
    openers: Mapping[str, Callable[[], Sink]],
    open_letters: Callable[[], DeadLetters],
    *,
    strict: bool = False,
    file: str | None = None,
    batch_rows: int = BATCH_ROWS,
    on_batch: Callable[[Engine, Report], None] | None = None,
    limit: RejectionLimit | None = None,
    hints: Hints | None = None,
) -> PartitionTask[TaskSpec]:
    """Return the task of a one-shot run, for ``at_once``.

    openers: open the sink of each output; an output without one is computed and not written. If the
    run fails, the sinks are given up: a file is as it was. Dead letters are kept even then, for
    diagnosis. file: of the source, for errors. strict, batch_rows, on_batch: as in ``run``. limit:
    of rejected records, None for none. hints: look for them.
    """

    def open_kept() -> OneShotLetters:
        letters = open_letters()
        life.report.letters = letters.place
        name = getattr(inputs, "name", None)
        return OneShotLetters(letters, name, file, strict=strict, limit=limit, hints=hints)

    life = PartitionTask(
        TaskSpec(plan, _answered(plan, inputs), SinkGroup(openers)),
        EphemeralState(open_kept),
        TaskContext(
            settings=Settings(batch_rows=batch_rows), watch=on_batch or (lambda _, __: None)
        ),
    )
    return life


def _answered(plan: Plan, inputs: Inputs) -> Inputs:
    """Return inputs that call for answers, where the plan asks."""
    if not plan.asks:
        return inputs
    # slow to import, and few runs need them
    import logging  # noqa: PLC0415

    from ripple.core.event_text import line_of  # noqa: PLC0415
    from ripple.task.asks.answered_inputs import AnsweredInputs  # noqa: PLC0415
    from ripple.world.live import LiveClock, LiveRandom  # noqa: PLC0415

    def emit(event: Event) -> None:
        logging.getLogger("ripple.task").warning("pipeline %r: %s", plan.name, line_of(event))

    return AnsweredInputs(inputs, plan, LiveClock(), LiveRandom(), emit=emit)
