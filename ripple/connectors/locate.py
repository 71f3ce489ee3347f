"""From the values of ``--source`` and ``--sink`` to a source and a sink."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeGuard

from ripple.connectors.connector import Part, Reading, Writing
from ripple.connectors.contract import check_not_async, is_sink
from ripple.connectors.cutting import check_batch_rows
from ripple.connectors.files.csv import dialect
from ripple.connectors.files.remote.address import is_remote
from ripple.connectors.inputs import is_inputs
from ripple.connectors.installed import load
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.registry import find, forms, innermost, is_stream, of_written_file
from ripple.connectors.source_inputs import ended, is_readable
from ripple.core.errors import InputError, OutputError
from ripple.core.named_uris import name_and_uri
from ripple.model.schema.logical.fields import logical_in
from ripple.model.schema.logical.rule import rule_of
from ripple.world.ports import INLINE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    import pyarrow as pa

    from ripple.connectors.connector import Use
    from ripple.connectors.contract import Commit, Sink, Source
    from ripple.connectors.inputs import Inputs
    from ripple.connectors.registry import UseName
    from ripple.connectors.stream import Stream
    from ripple.model.pipeline.nodes import Output, SourceSpec, TableSpec
    from ripple.model.pipeline.plan import Plan
    from ripple.model.schema.checks import Checks
    from ripple.model.schema.types import Schema
    from ripple.world.ports import Executor


def open_source(
    place: Any,
    schema: Schema,
    *,
    name: str,
    checks: Mapping[str, Checks] = MappingProxyType({}),
    batch_rows: int = 1000,
    header: bool = False,
    whole: bool = False,
    table: TableSpec | None = None,
    needs_all: bool = False,
    in_loop: bool = False,
) -> Inputs:
    """Return the inputs of a one-shot run at ``place``: they end, and never wait.

    in_loop: a stream and an iterator wait in the event loop of their run, so that others go on
    meanwhile.

    place: a URI of one of the connectors, or a path, or a list of paths; a table, or an object with
    ``__arrow_c_stream__``; a sequence or an iterator of batches, tables, mappings or instances of
    a record class; a source, or inputs.
    checks: further conditions on fields; records that fail are rejected. whole: take all partitions
    at the URI; else one of several must be named. table: how its records become one; then the
    engine has the checks. needs_all: whether its replaced records matter, too. Raises
    InputError, SchemaError and ConnectorError.
    """
    check_batch_rows(batch_rows)
    shape = RecordShape(schema, checks) if table is None else RecordShape(schema, table=table)
    reading = Reading(
        name, shape, batch_rows, header=header, one_shot=True, whole=whole, needs_all=needs_all
    )
    if not isinstance(place, (str, os.PathLike)):
        _check_keys(name, shape, None)
        if in_loop and is_pushed(place):
            return _formed(reading, lambda asked: place.inputs(name, asked.shape), has_times=False)
        if in_loop and is_iterator(place):
            return _formed(reading, lambda asked: _waiting(place, asked), has_times=False)
        return _formed(
            reading, lambda asked: ended(_held(place, asked), name), has_times=is_readable(place)
        )
    found = find(text_of(place), "source")
    _check_keys(name, shape, found.use)
    return _formed(
        reading,
        lambda asked: ended(found.opened(asked, is_readable), name),
        has_times=found.use.has_times,
    )


def open_inputs(
    place: str | Stream,
    plan: Plan,
    batch_rows: int,
    *,
    follow: bool,
    part: Part | None = None,
    executor: Executor = INLINE,
    source: SourceSpec | None = None,
    is_alone: bool = False,
) -> Inputs:
    """Return the resumable inputs at ``place``; raises as ``open_source`` does.

    is_alone: for a run in one process, which alone can read files.

    place: a URI, or a stream, to which the program pushes rows again.
    follow: wait for more at the end. part: the partition of the pipeline, which reads its own
    inputs; an input that cannot be divided is rejected if there are several. executor: for their
    blocking work. source: of the plan, where it has several.
    """
    source = plan.source if source is None else source
    shape, name = RecordShape.of(source), source.name
    reading = Reading(
        name,
        shape,
        batch_rows,
        follow=follow,
        part=part,
        executor=executor,
        needs_all=plan.has_versions_of(source),
    )
    if not isinstance(place, str):
        stream = place
        _check_keys(name, shape, None)
        return _formed(reading, lambda asked: stream.inputs(name, asked.shape), has_times=False)
    found = find(place, "continued_source")
    _check_keys(name, shape, found.use)
    if find(innermost(place), "continued_source").use.is_alone and not is_alone:
        raise InputError(
            f"cannot read {place} in a cluster or on Spark: one process records in which order it "
            "takes files. Put them into a log with ripple log append, and read log:DIR/TOPIC"
        )
    if part is not None and part.of > 1 and not found.use.has_parts:
        raise InputError(
            f"cannot read {place} in {part.of} partitions: its records are not divided by key. "
            f"Put them into a topic that is, with ripple log append, or start one partition"
        )
    return _formed(
        reading,
        lambda asked: found.opened(asked, is_inputs),
        has_times=found.use.has_times,
    )


def _formed(reading: Reading, opened: Callable[[Reading], Inputs], *, has_times: bool) -> Inputs:
    """Return inputs of the records of ``reading``, converted from the forms of their source.

    opened: opens the source for records in its forms. has_times: whether the source has
    nanoseconds, so that forms do not apply.
    """
    if has_times or not reading.shape.forms:
        return opened(reading)
    # slow to import
    from ripple.connectors.transforms.forms import forms_of  # noqa: PLC0415
    from ripple.connectors.transforms.opening import ThroughInputs  # noqa: PLC0415

    chain = forms_of(reading.shape)
    return ThroughInputs(opened(replace(reading, shape=chain.needed)), chain)


def _check_keys(name: str, shape: RecordShape, use: Use | None) -> None:
    """Raise InputError for envelopes without record keys; ``use``: of a connector, if it is one."""
    table = shape.table
    if table is not None and table.format and (use is None or not use.has_keys):
        raise InputError(
            f"the table {name!r} is of Debezium's envelopes, which name their rows by record keys: "
            f"read it from kafka:, or read rows as they are, without format={table.format!r}"
        )
    if table is None or use is None or not use.has_keys:
        return
    for field, kind in logical_in(shape.schema.fields).items():
        if table.format or field in table.key:
            what = "envelopes of Debezium" if table.format else "record keys"
            raise InputError(
                f"the table {name!r} has {rule_of(kind).word}, {field!r}, which is not read from "
                f"{what}: declare it as str"
            )


def open_sink(
    place: str | os.PathLike[str] | Sink,
    plan: Plan,
    output: str,
    *,
    continues: bool = False,
    header: bool | None = None,
    epoch: int | None = None,
    part: Part | None = None,
) -> Sink:
    """Return the sink at ``place`` for an output of ``plan``, or a sink as it is.

    continues: the sink resumes after its last commit, after any crash, if its connector supports
    that; otherwise a file is written anew. header: whether CSV begins with column names, where
    its address does not say; None: a file does, a stream does not. epoch: of the owner of a
    partition, which fences owners of lower epochs; a target that cannot fence an owner that may
    still be alive is rejected. part: the partition of the pipeline with these changes; a target
    without a part for each is rejected.

    CSV omits Remove rows; JSON lines begin each row with its operation; so do the records of
    a log. Raises OutputError, ConnectorError, DiskLockedError, StaleEpochError and OSError.
    """
    use: UseName = "continued_sink" if continues else "sink"
    if not isinstance(place, (str, os.PathLike)):
        if is_sink(place):
            if epoch is not None and getattr(place, "epoch", None) != epoch:
                raise _unsealed(_shown(place), epoch)
            check_not_async("sink", place, OutputError)
            return place
        # slow to import
        from ripple.connectors.python_sinks import SINK_OBJECTS, python_sink  # noqa: PLC0415

        held = python_sink(place, plan.output(output))
        if held is None:
            raise OutputError(
                f"cannot write to {_shown(place)}: give {forms(use)}; {SINK_OBJECTS}; or a sink "
                "(ripple.connectors.contract)"
            )
        if epoch is not None:
            raise _unsealed(_shown(place), epoch)
        return held
    writing = Writing(plan, plan.output(output), header, epoch, part)
    found = find(text_of(place), use)
    check_takes(found.use, text_of(place), writing.output)
    if found.use.is_group:
        raise OutputError(f"{text_of(place)!r} is written with other outputs, not by itself")
    if epoch is not None and not found.use.has_epochs:
        raise _unsealed(repr(text_of(place)), epoch)
    if part is not None and part.of > 1 and not found.use.has_parts:
        raise OutputError(
            f"cannot write {part.of} partitions to {text_of(place)!r}: each needs its "
            "own. Write to log:DIR/TOPIC, which has one for each"
        )
    sink: Sink = found.opened(writing, is_sink)
    check_not_async("sink", sink, OutputError)
    return sink


def reached_at(
    place: str, plan: Plan, output: str, part: Part | None
) -> Callable[[], Commit | None] | None:
    """Return a function that reads an owner's commit at a URI; None if there is none."""
    found = find(place, "continued_sink")
    if not found.use.reached:
        return None
    opens = load(found.connector.scheme, found.connector.package, found.use.reached)
    return partial(opens, found.path, Writing(plan, plan.output(output), part=part))


def look_at(
    place: str, plan: Plan, output: str, *, epoch: int | None = None, part: Part | None = None
) -> Callable[[], int] | None:
    """Return a check that raises as ``open_sink`` of a continued sink does; None if there is none.

    It changes nothing, and returns the highest epoch of the part's owners.
    """
    found = find(place, "continued_sink")
    if not found.use.looks:
        return None
    check_takes(found.use, place, plan.output(output))
    looks = load(found.connector.scheme, found.connector.package, found.use.looks)
    return partial(looks, found.path, Writing(plan, plan.output(output), epoch=epoch, part=part))


def read_back_at(
    place: str, plan: Plan, output: str, *, part: Part | None = None
) -> Callable[[str | None], Iterator[tuple[pa.RecordBatch, str]]] | None:
    """Return the reader of a continued sink beside its active owner; None without one."""
    found = find(place, "continued_sink")
    if not found.use.reads:
        return None
    reads = load(found.connector.scheme, found.connector.package, found.use.reads)
    return partial(reads, found.path, Writing(plan, plan.output(output), part=part))


def check_takes(use: Use, place: str, output: Output) -> None:
    """Raise OutputError if a sink takes changes alone, and an output shows events."""
    if output.is_stream and not use.takes_events:
        raise OutputError(
            f"cannot write output {output.name!r} to {place!r}: it shows events, which have no op, "
            "and its connector takes changes alone: set takes_events=True where the sink takes "
            "rows as they are, write elsewhere, or fold them"
        )


def newest_owner_at(place: str, plan: Plan, output: str) -> int:
    """Return the highest epoch that an owner of any part of a place had, 0 if that is not told."""
    found = find(place, "continued_sink")
    if not found.use.owners:
        return 0
    owners = load(found.connector.scheme, found.connector.package, found.use.owners)
    epoch: int = owners(found.path, Writing(plan, plan.output(output)))
    return epoch


def path_of(place: str, use: UseName) -> str | None:
    """Return the file or folder that a place is in, ``-``, or None; raises as opening it does."""
    found = find(place, use)
    return None if found.connector.path_of is None else found.connector.path_of(found.path)


def sinks_by_output(plan: Plan, given: Sequence[str]) -> dict[str, str]:
    """Return the place of each output that has one, from ``[OUTPUT=]URI`` texts.

    Raises OutputError for an output that the plan does not have, for one with two places, and for
    a place without an output when there are several to choose from.
    """
    names = [output.name for output in plan.outputs]
    pairs: list[tuple[str, str]] = []
    for text in given:
        named, place = name_and_uri(text)
        if named:
            pairs.append((named, place))
        elif len(names) == 1:
            pairs.append((names[0], place))
        else:
            raise OutputError(
                f"the pipeline has the outputs {', '.join(names)}: say which one goes to {text}, "
                f"as in --sink {names[0]}={text}"
            )
    for name, times in Counter(name for name, _ in pairs).items():
        plan.output(name)
        if times > 1:
            raise OutputError(f"output {name!r} has {times} sinks: it can have one")
    return dict(pairs)


def without_header(place: str) -> str:
    """Return the URI of a sink, of a CSV file without a header unless it says; raises as ``find``.

    It has the scheme, since not each name goes with options: not one with a colon, nor of S3.
    """
    found = find(place, "sink")
    if is_remote(place):
        found = of_written_file(place)
    if found.connector.scheme != "csv" or is_stream(found.path):
        return place
    return f"csv:{dialect.without_header(found.path)}"


def sources_by_name(plan: Plan, given: Sequence[str], flag: str = "--source") -> dict[str, str]:
    """Return the URI of each source, from ``[SOURCE=]URI`` texts, which were given by ``flag``.

    Raises InputError for a source not in the plan, for a source with two URIs or none, and for a
    URI without a name where the plan has several sources.
    """
    names = [source.name for source in plan.sources]
    places: dict[str, str] = {}
    for text in given:
        name, place = name_and_uri(text)
        if len(names) == 1 and name != names[0]:
            if name and not os.path.exists(text):
                raise InputError(
                    f"{text}: there is neither a source {name!r} nor a file of this name: the "
                    f"pipeline reads {plan.source_names}"
                )
            name, place = names[0], text
        if not name:
            raise InputError(
                f"the pipeline reads the sources {plan.source_names}: say which one {text} is, as "
                f"in {flag} {names[0]}={text}"
            )
        if name in places:
            raise InputError(
                f"source {name!r} is given twice: {places[name]} and {place}. It reads one: "
                "several files are a folder, or a pattern in quotes such as 'day-*.csv'"
            )
        places[name] = place
    check_sources(plan, places)
    return places


def check_sources(plan: Plan, given: Iterable[str]) -> None:
    """Raise InputError unless these are the names of all sources of the plan."""
    names, places = [source.name for source in plan.sources], list(given)
    for name in places:
        if name not in names:
            from difflib import get_close_matches  # noqa: PLC0415 - only errors say it

            near = get_close_matches(name, [one for one in names if one not in places], n=1)
            raise InputError(
                f"there is no source {name!r}: the pipeline reads {plan.source_names}. "
                + (
                    f"Did you mean {near[0]!r}?"
                    if near
                    else "Leave it out, or end a branch that begins with it by .sink(name)"
                )
            )
    for name in names:
        if name not in places:
            raise InputError(
                f"source {name!r} is not given: the pipeline reads {plan.source_names}, and needs "
                "all of them"
            )


def check_sealed(place: str) -> None:
    """Raise OutputError unless a sink at ``place`` can be taken over from an owner before."""
    if not find(place, "continued_sink").use.has_epochs:
        raise OutputError(
            f"cannot write to {place!r} in a cluster: an owner that was replaced could continue "
            "to write there, and its lines would look like its successor's. Write to "
            "log:DIR/TOPIC, which is sealed (docs/seals.md), or to kafka:BROKERS/TOPIC"
        )


def _unsealed(place: str, epoch: int) -> OutputError:
    return OutputError(
        f"cannot write to {place} as the owner of epoch {epoch}: an owner that was replaced could "
        "continue to write there, and its lines would look like its successor's. Write to "
        "log:DIR/TOPIC, which is sealed (docs/seals.md)"
    )


def text_of(place: str | os.PathLike[str]) -> str:
    """Return the name of a URI; a path object is a path, also with a colon in it."""
    text = os.fspath(place)
    is_relative = not isinstance(place, str) and not text.startswith("/")
    return f"./{text}" if is_relative and ":" in text else text


def _held(place: Any, reading: Reading) -> Source | Inputs:
    """Return the source of records that are in the program itself, or in files that it lists."""
    if is_readable(place):
        return place
    if isinstance(place, (list, tuple)) and place and _are_paths(place):
        from ripple.connectors.files.folder.source import of_paths  # noqa: PLC0415 - few list any

        return of_paths([text_of(path) for path in place], reading)
    # slow to import
    from ripple.connectors.python_sources import SOURCE_OBJECTS, advice, python_source  # noqa: PLC0415

    found = python_source(place, reading)
    if found is None:
        way_out = advice(place, reading.name)
        raise InputError(f"cannot read from {_shown(place)}: give {SOURCE_OBJECTS}{way_out}")
    return found


def _waiting(place: Any, reading: Reading) -> Inputs:
    # slow to import, and of runs over several sources alone
    from ripple.connectors.live_inputs import LiveInputs  # noqa: PLC0415
    from ripple.connectors.memory import IteratorSource  # noqa: PLC0415

    source = IteratorSource(place, reading.shape, name=reading.name, batch_rows=reading.batch_rows)
    return LiveInputs(source, reading.name)


def is_iterator(place: object) -> bool:
    """Tell whether a source is an iterator, which may pause: a generator, or one of ``arun``."""
    from ripple.connectors.handover import LiveItems  # noqa: PLC0415 - slow to import

    return isinstance(place, (Iterator, LiveItems)) and not is_readable(place)


def is_pushed(place: object) -> TypeGuard[Stream]:
    """Tell whether a source is one that the program pushes rows to."""
    if isinstance(place, (str, os.PathLike)):
        return False
    from ripple.connectors.stream import Stream  # noqa: PLC0415 - slow to import

    return isinstance(place, Stream)


def _are_paths(given: Sequence[object]) -> bool:
    return all(isinstance(one, (str, os.PathLike)) for one in given)


def _shown(place: object) -> str:
    if place is None or isinstance(place, type):
        return str(place)
    return f"an object of type {type(place).__name__}"
