"""Create, append to, follow, inspect, verify and repair event logs."""

from __future__ import annotations

import argparse
import asyncio
import os
from contextlib import ExitStack, aclosing
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ripple.cli.lib.exits import EXIT_FAILURE, say
from ripple.cli.lib.number_options import count, offsets, positive
from ripple.cli.lib.output_forms import add_format, many
from ripple.cli.lib.path_options import a_place
from ripple.cli.lib.pipeline_options import add_verbose
from ripple.cli.lib.rejects import ReportedLetters, all_rejected
from ripple.cli.log.route import Routes
from ripple.cli.log.schema import SCHEMA_FORMS, read_checks, read_schema
from ripple.cli.log.state import print_info, print_verified, repair
from ripple.cli.log.table import print_table
from ripple.connectors.files.text.sink import TextFormat, TextLines
from ripple.connectors.hints import Hints
from ripple.connectors.inputs import in_files
from ripple.connectors.locate import open_source, path_of
from ripple.connectors.registry import forms
from ripple.connectors.target import open_target
from ripple.core.errors import InputError
from ripple.model.batch import Marker
from ripple.model.schema.logical.showing import showing
from ripple.model.window import duration_ns
from ripple.model.window.instant import any_instant_ns
from ripple.storage.log import LogSettings, PartitionReader, Topic
from ripple.storage.log.router import TopicWriter
from ripple.storage.log.settings import compression_of
from ripple.storage.log_uri import LogUri
from ripple.task.one_shot import at_once, entries
from ripple.task.progress import Progress, terminal
from ripple.world import LiveClock, LiveDisk

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence

    import pyarrow as pa

    from ripple.connectors.target import Target
    from ripple.model.batch import Batch

EXAMPLES = (
    "ripple log create data/trades --schema vwap.py --partitions 4 --key symbol",
    "ripple log append data/trades trades.csv --header",
    "ripple log tail data/trades -n 10 --follow",
    "ripple log table data/vwap",
    "ripple log info data/trades",
    "ripple log verify data/trades",
    "ripple log repair data/trades --partition 0 --give-up 120-140",
)

PROGRAM = "ripple"
APPEND_ROWS = 16_384


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    create = actions.add_parser("create", help="create a topic")
    append = actions.add_parser("append", help="append records from a file or standard input")
    tail = actions.add_parser("tail", help="write a partition's records as JSON lines")
    table = actions.add_parser("table", help="write the table that an output's changes add up to")
    info = actions.add_parser("info", help="show the settings, offsets and sizes of a topic")
    check = actions.add_parser("verify", help="read everything; exit code 1 on any damage")
    mend = actions.add_parser("repair", help="give up records that verify reports as lost")
    for action in (create, append, tail, table, info, check, mend):
        action.add_argument("topic", type=a_place, metavar="DIR/TOPIC", help="the topic's folder")
    for action in (create, append):
        add_verbose(action)
    _configure_create(create)
    append.add_argument("source", type=a_place, metavar="URI", help=forms("source"))
    append.add_argument(
        "--schema",
        type=a_place,
        metavar="FILE",
        help="the record class (FILE.py:NAME) or pipeline (FILE.py[:NAME]) of the records: how "
        "they have times, and checks",
    )
    append.add_argument("--format", choices=("csv", "jsonl"), help="format of the source")
    append.add_argument("--header", action="store_true", help="the CSV's first line names columns")
    append.add_argument(
        "--batch",
        type=positive,
        default=APPEND_ROWS,
        metavar="N",
        help=f"records read at a time ({APPEND_ROWS})",
    )
    append.add_argument(
        "--dead-letter", type=a_place, metavar="FILE", help="write rejected records there"
    )
    append.add_argument(
        "--route",
        action="append",
        default=[],
        type=a_place,
        metavar="FIELD=VALUE:DIR/TOPIC",
        help="append records with that value to another topic; the first match counts",
    )
    tail.add_argument("-f", "--follow", action="store_true", help="wait for more records")
    tail.add_argument("--from", dest="start", metavar="OFFSET|TIME", help="start (default: first)")
    tail.add_argument("--partition", type=count, metavar="N", help="only this one (default: all)")
    tail.add_argument("-n", type=count, metavar="N", help="number of records at most")
    for action in (info, check):
        add_format(action)
    check.add_argument("--partition", type=count, metavar="N", help="only this one")
    mend.add_argument("--partition", type=count, metavar="N", help="partition (0)")
    mend.add_argument(
        "--give-up", required=True, type=offsets, metavar="FIRST-LAST", help="lost offsets"
    )


def _configure_create(create: argparse.ArgumentParser) -> None:
    settings = LogSettings()
    create.add_argument(
        "--schema", type=a_place, metavar="FILE", help=f"schema of the records: {SCHEMA_FORMS}"
    )
    create.add_argument(
        "--partitions", type=positive, default=1, metavar="N", help="partitions (1)"
    )
    create.add_argument(
        "--key", default="", metavar="FIELD,...", help="fields that choose a record's partition"
    )
    create.add_argument(
        "--time-field",
        metavar="FIELD",
        help="event time, integer nanoseconds (that of the pipeline)",
    )
    create.add_argument(
        "--compression", default="none", metavar="NAME", help="none, lz4 or zstd (%(default)s)"
    )
    create.add_argument(
        "--sync",
        type=count,
        default=settings.sync_appends,
        metavar="N",
        help="sync to disk after N appends (1; 0: leave it to the system)",
    )
    create.add_argument(
        "--segment-bytes",
        type=positive,
        default=settings.segment_bytes_max,
        metavar="N",
        help="begin a new segment file at this size (128 MiB)",
    )
    create.add_argument(
        "--retention-bytes",
        type=count,
        default=0,
        metavar="N",
        help="oldest data are deleted beyond this size (0: never)",
    )
    create.add_argument(
        "--retention-age",
        default="",
        metavar="SPAN",
        help="data older than this are deleted, such as 7d or 12h",
    )


def run(options: argparse.Namespace) -> int:
    """Run the action; return the exit code."""
    code: int = _ACTIONS[options.action](options)
    return code


def _open(options: argparse.Namespace) -> tuple[Topic, int | None]:
    """Return the topic, and the partition if named."""
    place = LogUri.parse(options.topic)
    topic = Topic.open(LiveDisk(place.folder, make=False), place.topic)
    partition = getattr(options, "partition", None)
    if None not in (partition, place.partition) and partition != place.partition:
        raise InputError(f"{options.topic} and --partition {partition} name two partitions")
    return topic, place.partition if partition is None else partition


def _open_whole(options: argparse.Namespace) -> Topic:
    topic, partition = _open(options)
    if partition is not None:
        raise InputError(f"{options.topic} is one partition: name the topic")
    return topic


def _create(options: argparse.Namespace) -> int:
    place = LogUri.parse(options.topic)
    if place.partition is not None:
        raise InputError(
            f"{options.topic} is partition {place.partition} of {place.topic}: a topic's name is "
            "no number"
        )
    schema, time_field = read_schema(options.schema)
    topic = Topic.create(
        LiveDisk(place.folder),
        place.topic,
        schema,
        partitions=options.partitions,
        key=[name for name in options.key.split(",") if name],
        time_field=options.time_field or time_field,
        settings=LogSettings(
            sync_appends=options.sync,
            segment_bytes_max=options.segment_bytes,
            retention_bytes_max=options.retention_bytes,
            retention_age_ns_max=duration_ns(options.retention_age) if options.retention_age else 0,
            compression=compression_of(options.compression),
        ),
    )
    print(f"{options.topic}: {many(topic.partitions, 'partition')} of {topic.schema.name}")
    return 0


def _append(options: argparse.Namespace) -> int:
    topic = _open_whole(options)
    routes = Routes(topic, options.route)
    name, rows = topic.path, options.batch
    place = f"{options.format}:{options.source}" if options.format else options.source
    source = open_source(
        place,
        topic.schema,
        name=name,
        checks=read_checks(options.schema, topic),
        batch_rows=rows,
        header=options.header,
    )
    progress = Progress(source, terminal())
    target = open_target(options.dead_letter) if options.dead_letter else None
    letters = ReportedLetters(
        PROGRAM,
        target,
        file=path_of(place, "source"),
        hints=Hints.of([topic.schema.fields], [place], header=options.header),
        before_report=progress.clear,
    )
    holder = f"ripple log append, process {os.getpid()} on {os.uname().nodename}"
    seen = 0
    writers: list[TopicWriter] = []
    before = 0
    try:
        with ExitStack() as stack:
            writers = [
                stack.enter_context(TopicWriter(one, LiveClock(), holder=holder))
                for one in routes.topics
            ]
            before = _rows(writers)
            for writer in writers:
                _say_cuts(writer)
            for batch in entries(source, rows):
                if isinstance(batch, Marker):
                    for writer in writers:
                        writer.mark(batch.watermark_ns)
                    continue
                letters.write(name, in_files(source, name, batch.rejected))
                for number, records in routes.divided(batch.records):
                    writers[number].append(records)
                seen += batch.records.num_rows
                progress.update(seen)
    except BaseException:
        appended = _rows(writers) - before
        if appended:
            say(
                f"appended {many(appended, 'record')}, which stay: those of the first {seen} that "
                "fit, and part of the batch that failed"
            )
        raise
    finally:
        at_once(source.close())
        progress.clear()
        letters.close()
    say(f"appended {many(seen, 'record')}")
    letters.report_counts()
    if letters.counts and not seen:
        raise all_rejected(options.source, letters.total, target.name if target else None)
    return 0


def _rows(writers: Sequence[TopicWriter]) -> int:
    return sum(writer.rows for writer in writers)


def _say_cuts(writer: TopicWriter) -> None:
    for one in writer.writers:
        if one.tail is not None:
            say(
                f"{PROGRAM}: {one.tail.file}: cut off {one.tail.length} bytes of an append that a "
                f"crash left unfinished at byte {one.tail.position} (offset {one.tail.offset})"
            )


def _tail(options: argparse.Namespace) -> int:
    target = open_target("-")
    try:
        asyncio.run(_write_tail(options, target))
    finally:
        target.close()
    return 0


async def _write_tail(options: argparse.Namespace, target: Target) -> None:
    lines = TextLines(TextFormat("json"), target.name)
    topic, partition = _open(options)
    letters = ReportedLetters(PROGRAM, None, file=None, hints=Hints(), before_report=lambda: None)
    show = showing(topic.schema.fields)
    left = options.n
    async with aclosing(_batches_of(options, topic, partition, letters)) as batches:
        async for batch in batches:
            records = batch if left is None else batch.slice(0, left)
            target.write(lines.of(records if show is None else show(records), is_first=False))
            left = None if left is None else left - records.num_rows
            if left == 0:
                break
    letters.report_counts()


def _followed(options: argparse.Namespace, topic: Topic, partition: int | None) -> Sequence[int]:
    """Return the partitions to write, one after the other. Raises InputError."""
    if partition is not None or topic.partitions == 1:
        return [partition or 0]
    start = options.start or ""
    if options.follow or (start.isascii() and start.isdigit()):
        why = "one is followed at a time" if options.follow else f"offset {start} is of one of them"
        raise InputError(
            f"{topic.path} has {topic.partitions} partitions, and {why}: say which, as in "
            "--partition 0"
        )
    return range(topic.partitions)


async def _batches_of(
    options: argparse.Namespace, topic: Topic, partition: int | None, letters: ReportedLetters
) -> AsyncGenerator[pa.RecordBatch, None]:
    """Yield the records of partitions; report their markers and rejected records."""
    numbers = _followed(options, topic, partition)
    for number in numbers:
        if len(numbers) > 1:
            say(f"{PROGRAM}: partition {number} of {topic.path}")
        with PartitionReader(topic, number) as reader:
            offset = _start(reader, options.start)
            async for entry in _entries(reader, offset, follow=options.follow):
                if isinstance(entry, Marker):
                    until = _time(entry.watermark_ns)
                    say(f"offset {entry.next_offset - 1}: no event below {until}")
                    continue
                letters.write(topic.path, entry.rejected)
                yield entry.records


async def _entries(
    reader: PartitionReader, offset: int | None, *, follow: bool
) -> AsyncIterator[Batch | Marker]:
    if follow:
        async for entry in reader.follow(offset):
            yield entry
    else:
        for entry in reader.read(offset):
            yield entry


def _start(reader: PartitionReader, text: str | None) -> int | None:
    """Return the offset of a number or a time such as 2024-02-27T02:13:20Z."""
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        time_ns = any_instant_ns(text)
    except ValueError:
        raise InputError(
            f"--from {text!r} is neither an offset nor a time (2024-02-27T02:13:20Z, or "
            "1709000000000000000ns)"
        ) from None
    return reader.seek_time(time_ns)


def _table(options: argparse.Namespace) -> int:
    print_table(_open_whole(options))
    return 0


def _info(options: argparse.Namespace) -> int:
    is_sound = print_info(_open_whole(options), options.format)
    return 0 if is_sound else EXIT_FAILURE


def _verify(options: argparse.Namespace) -> int:
    topic, partition = _open(options)
    partitions = range(topic.partitions) if partition is None else [partition]
    is_sound = print_verified(topic, partitions, options.topic, options.format)
    return 0 if is_sound else EXIT_FAILURE


def _repair(options: argparse.Namespace) -> int:
    topic, partition = _open(options)
    repair(topic, partition or 0, *options.give_up)
    return 0


def _time(time_ns: int) -> str:
    try:
        return datetime.fromtimestamp(time_ns // 1_000_000_000, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return f"{time_ns} ns"


_ACTIONS = {
    "create": _create,
    "append": _append,
    "tail": _tail,
    "table": _table,
    "info": _info,
    "verify": _verify,
    "repair": _repair,
}
