"""Reports of a log's contents and damage, and repair."""

from __future__ import annotations

import shlex
from contextlib import closing
from typing import TYPE_CHECKING, Any

from ripple.cli.lib.output_forms import many, write
from ripple.storage.log import LogDamagedError, PartitionReader
from ripple.storage.log.durable import notes_path
from ripple.storage.log.epochs import read_epochs, segments
from ripple.storage.log.repair import Loss, find_loss, give_up
from ripple.storage.log.verify import Verified, verify

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ripple.storage.log import Topic


def print_info(topic: Topic, form: str) -> bool:
    """Print a topic's settings and contents; return whether no damage is known."""
    known = _known(topic)
    is_sound = not any("damage" in held for held in known["held"])
    write(form, known, lambda: _print(known))
    return is_sound


def _print(known: dict[str, Any]) -> None:
    for name, value in known.items():
        if name not in ("settings", "held"):
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            print(f"{name:<12} {'none' if shown in ('', None) else shown}")
    for name, value in known["settings"].items():
        print(f"{name:<24} {value}")
    for held in known["held"]:
        if "damage" in held:
            print(f"partition {held['partition']}: DAMAGED: {held['damage']}")
            continue
        owner = f", owner of epoch {held['epoch']}" if held["epoch"] else ""
        print(
            f"partition {held['partition']}: offsets {held['first_offset']} to "
            f"{held['next_offset']}, {many(held['segments'], 'segment')}, "
            f"{held['bytes']:,} bytes{owner}"
        )


def _known(topic: Topic) -> dict[str, Any]:
    return {
        "topic": topic.path,
        "schema": topic.schema.name,
        "fields": [field.name for field in topic.schema.fields],
        "partitions": topic.partitions,
        "key": list(topic.key),
        "time_field": topic.time_field,
        "settings": topic.settings.to_texts(),
        "held": [_held(topic, partition) for partition in range(topic.partitions)],
    }


def _held(topic: Topic, partition: int) -> dict[str, Any]:
    try:
        first_offset, next_offset = PartitionReader(topic, partition).range()
    except LogDamagedError as error:
        return {"partition": partition, "damage": str(error)}
    folder = topic.folder(partition)
    paths = [one.path(folder) for one in segments(topic.disk, folder)]
    length = 0
    for path in paths:
        with closing(topic.disk.open_to_read(path)) as file:
            length += file.size()
    return {
        "partition": partition,
        "first_offset": first_offset,
        "next_offset": next_offset,
        "segments": len(paths),
        "bytes": length,
        "epoch": read_epochs(topic.disk, folder).newest,
    }


def print_verified(topic: Topic, partitions: Iterable[int], place: str, form: str) -> bool:
    """Read everything and print the findings; return whether the log is undamaged.

    place: the topic's URI, as the user wrote it.
    """
    found: list[dict[str, Any]] = []
    for partition in partitions:
        found.append({"partition": partition} | _verified(topic, partition, place))
        if form == "text":  # at once: a log may be long
            _print_verified(found[-1])
    is_sound = all("damage" not in one and not one["problems"] for one in found)
    write(form, {"topic": place, "sound": is_sound, "verified": found}, lambda: None)
    return is_sound


def _verified(topic: Topic, partition: int, place: str) -> dict[str, Any]:
    try:
        found = verify(topic, partition)
    except LogDamagedError as error:
        return {"damage": str(error), "way_out": _way_out(topic, partition, place)}
    return {
        "records": found.records,
        "frames": found.frames,
        "segments": found.segments,
        "bytes": found.length,
        "given_up": found.given_up,
        "problems": [*_problems(found, topic, partition)],
    }


def _print_verified(one: dict[str, Any]) -> None:
    where = f"partition {one['partition']}"
    if "damage" in one:
        print(f"{where}: DAMAGED: {one['damage']}")
        if one["way_out"]:
            print(f"{where}: {one['way_out']}")
        return
    print(
        f"{where}: {many(one['records'], 'record')} in {many(one['frames'], 'frame')} and "
        f"{many(one['segments'], 'segment')}, {one['bytes']:,} bytes"
    )
    if one["given_up"]:
        print(f"{where}: {many(one['given_up'], 'record')} lost and given up")
    for problem in one["problems"]:
        print(f"{where}: {problem}")


def _problems(found: Verified, topic: Topic, partition: int) -> Iterator[str]:
    if found.is_absent:
        folder, notes = topic.folder(partition), notes_path(topic, partition)
        yield (
            f"no segment of {folder} exists, nor {notes}, though other partitions were written "
            "to: this one was never opened to write, or both were removed; then restore them "
            "from a copy"
        )
    for path in found.indexes:
        yield f"{path} disagrees with the data; it will be built again"
    if found.first_refused is not None:
        first = found.first_refused
        yield (
            f"{found.refused} records cannot be read, the first at offset {first.offset}: "
            f"{first.reason}; they were written so, and no copy is better: readers count them as "
            "rejected and continue"
        )
    if found.tail is not None:
        tail = found.tail
        yield (
            f"{tail.file} ends in {tail.length} bytes that are no frame from byte {tail.position} "
            f"(offset {tail.offset}) on: {tail.reason}; an append is under way, or the next writer "
            "will leave them out"
        )


def _way_out(topic: Topic, partition: int, place: str) -> str | None:
    try:
        loss = find_loss(topic, partition)
    except LogDamagedError:
        return None
    if loss is None:
        return None
    return (
        f"if there is no copy, give up the offsets {_span(loss)}: ripple log repair "
        f"{shlex.quote(place)} --partition {partition} --give-up {_span(loss)}"
    )


def _span(loss: Loss) -> str:
    return f"{loss.first_offset}-{loss.next_offset - 1}"


def repair(topic: Topic, partition: int, first: int, last: int) -> None:
    """Give up the lost records from ``first`` to ``last``, and print a report."""
    kept = give_up(topic, partition, first, last + 1)
    said = f"; the old segment is kept as {kept}" if kept else ""
    print(
        f"partition {partition}: gave up {many(last + 1 - first, 'record')}, {first}-{last}{said}"
    )
