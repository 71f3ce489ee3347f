"""From places and plans to sinks that a restarted pipeline continues, and to those in logs."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING

from ripple.connectors.log.sink import LogSink, schema_of_output, topic_for
from ripple.connectors.text.cut_record import Owner
from ripple.connectors.text.file import FileSink
from ripple.errors import InputError, OutputError
from ripple.log_place import LogPlace
from ripple.world.live import LiveClock
from ripple.world.live_disk import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.text.sink import TextFormat
    from ripple.log import Topic
    from ripple.pipeline.plan import Output, Plan
    from ripple.world.ports import Clock, Disk


def open_file(
    text: str,
    text_format: TextFormat,
    plan: Plan,
    output: str,
    disk_of: Callable[[str], Disk] | None,
) -> FileSink:
    """Return the sink at the path ``text``; raises OutputError, DiskLockedError and OSError."""
    path = PurePath(text)
    columns = ["op"] if text_format.removes == "mark" else []
    columns += [member.name for member in _output(plan, output).fields]
    folder = str(path.parent)
    disk = LiveDisk(folder, make=False) if disk_of is None else disk_of(folder)
    try:
        return FileSink(disk, path.name, text_format, Owner(plan.name, output), columns, name=text)
    except FileNotFoundError as error:
        raise OutputError(f"cannot write {text}: there is no folder {folder}") from error


def open_log(
    text: str,
    plan: Plan,
    output: str,
    disk_of: Callable[[str], Disk] | None = None,
    clock: Clock | None = None,
    *,
    continues: bool,
) -> LogSink:
    """Return the sink at ``log:...``, whose topic is made if there is none; raises as it does."""
    topic, partition, is_new = _topic(text, plan, output, disk_of)
    owner = Owner(plan.name, output) if continues else None
    return LogSink(topic, partition, clock or LiveClock(), owner, name=text, is_new=is_new)


def _topic(
    text: str, plan: Plan, output: str, disk_of: Callable[[str], Disk] | None
) -> tuple[Topic, int, bool]:
    """Return the topic, the partition, and whether the topic was made just now."""
    try:
        place = LogPlace.parse(text)
    except InputError as error:
        raise OutputError(f"cannot write: {error}") from error
    disk = (disk_of or LiveDisk)(place.folder)
    is_new = not disk.exists(f"{place.topic}/topic")
    if is_new and place.partition:
        raise OutputError(f"cannot write {text}: a topic that is made for it has only partition 0")
    topic = topic_for(disk, place.topic, schema_of_output(plan, _output(plan, output)))
    if place.partition is None and topic.partitions > 1:
        raise OutputError(
            f"cannot write {text}: choose one of its {topic.partitions} partitions, as in {text}/0"
        )
    return topic, place.partition or 0, is_new


def _output(plan: Plan, name: str) -> Output:
    for output in plan.outputs:
        if output.name == name:
            return output
    names = ", ".join(output.name for output in plan.outputs)
    raise OutputError(f"no output {name!r}: the pipeline has {names}")
