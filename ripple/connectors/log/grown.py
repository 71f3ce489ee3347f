"""Outputs of a stage in a topic with another partition count, now or before.

More partitions divide the former ones: partition p of P became p, p + P, ... of kP. With fewer
again, the owner of p takes over p + P, ... as well. Once its own partition has their rows, it
removes them there, and they are *at rest*: their cut is of no input, and their table is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.log.sink import (
    LogSink,
    committed_in,
    cut_at,
    look_at,
    newest_committer,
)
from ripple.storage.log import PartitionReader
from ripple.storage.log.epochs import read_epochs
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.connector import Part
    from ripple.connectors.files.text.cut_record import Owner
    from ripple.core.cut import Cut
    from ripple.storage.log import Topic
    from ripple.world.ports import Clock, Guards


def sink_of_part(
    topic: Topic,
    part: Part,
    clock: Clock,
    owner: Owner | None,
    *,
    name: str | None = None,
    epoch: int | None = None,
    guards: Guards = all_guards,
) -> LogSink:
    """Return the sink of a stage's partition, which holds its siblings, too; see LogSink.

    Raises as LogSink does; then nothing is held.
    """
    made = LogSink(topic, part.number, clock, owner, name=name, epoch=epoch, guards=guards)
    try:
        for number in beside(topic, part):
            one = LogSink(topic, number, clock, owner, epoch=epoch, guards=guards)
            made.beside.append(one)
        made.others = tuple(_others(topic, part, made))
    except BaseException:
        made.close()
        raise
    return made


def look_at_part(
    topic: Topic, part: Part, owner: Owner, name: str, *, epoch: int | None = None
) -> int:
    """Look at all partitions that ``sink_of_part`` would hold; see ``look_at``."""
    numbers = (part.number, *beside(topic, part))
    return max(look_at(topic, number, owner, name, epoch=epoch) for number in numbers)


def beside(topic: Topic, part: Part) -> range:
    """Return the siblings of a stage's partition: its parts under other numbers."""
    return range(part.number + part.of, topic.partitions, part.of)


def in_use(topic: Topic) -> int:
    """Return the partition count of the stage at work in a topic, without partitions at rest."""
    counts = (*topic.before, topic.partitions)
    there = [number for number in range(topic.partitions) if _is_at_work(topic, number)]
    return next((count for count in counts if not there or count > there[-1]), topic.partitions)


def newest_last(topic: Topic) -> list[int]:
    """Return the partitions of a topic in the order of their owners, the newest last.

    During a change of a stage's partition count a row may be in two of them: the newer owner's
    row holds.
    """
    return sorted(range(topic.partitions), key=lambda one: newest_committer(topic, one))


def _is_at_work(topic: Topic, number: int) -> bool:
    commit = committed_in(topic, number)
    return commit is not None and bool(commit.cut)


def _others(topic: Topic, part: Part, sink: LogSink) -> Iterator[Cut]:
    """Yield the cuts of the partitions that this one takes over.

    It has to catch up with them, so that no row goes back.
    """
    for one in sink.beside:
        if one.committed is not None:
            yield one.committed.cut
        if one.unfinished is not None:
            yield one.unfinished
    if sink.committed is not None and sink.committed.cut:
        return
    for number in sorted({part.number % count for count in topic.before} | {part.number}):
        yield from _cuts_by_owner(topic, number)


def _cuts_by_owner(topic: Topic, number: int) -> Iterator[Cut]:
    """Yield a partition's cut, and the cut of each former owner's last rows.

    An owner in a first stage with other partitions reads other inputs: its cut may lack some.
    """
    commit = committed_in(topic, number)
    if commit is not None:
        yield commit.cut
    with PartitionReader(topic, number) as reader:
        first, end = reader.range()
        for begin in read_epochs(topic.disk, topic.folder(number)).begins:
            cut = cut_at(reader, begin.offset - 1) if first < begin.offset <= end else None
            if cut is not None:
                yield cut
