"""Takeover of a partition from an owner that may still be running: fence, read, copy, seal.

docs/seals.md says why in this order. The predecessor's files are read and never written to.
"""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from ripple.storage.log import epochs
from ripple.storage.log.durable import durable_offset
from ripple.storage.log.epochs import Begin, read_epochs
from ripple.storage.log.files import open_segment
from ripple.storage.log.index import Index
from ripple.storage.log.producers import Producers
from ripple.storage.log.recovery import Found, chain_at, inspect
from ripple.storage.log.segment import FramePosition, Frames, Segment, index_path, segment_path

if TYPE_CHECKING:
    from ripple.storage.log.topic import Topic
    from ripple.world.ports import File, Guards


class Taken(NamedTuple):
    """A partition that was taken over: ``found`` is the valid content of previous owners.

    active: the index of the new owner's first segment, which is ``file``. replaced: the epoch that
    was in force.
    """

    found: Found
    active: Index
    file: File
    replaced: int


def take_over(topic: Topic, partition: int, epoch: int, guards: Guards) -> Taken:
    """Take a partition over for the owner of ``epoch``, durably.

    Raises StaleEpochError when there is an owner of that epoch or a higher one; otherwise as
    ``inspect`` does, and OSError. After a failure the owner retries with a higher epoch.
    """
    disk, folder = topic.disk, topic.folder(partition)
    epochs.make_folder(disk, folder)
    is_fenced = guards("fence_first")
    if is_fenced:
        epochs.make_fence(disk, folder, epoch)
    while True:
        ended = read_epochs(disk, folder)
        found, durable = _examine(topic, partition, epoch, guards)
        active, file = _begin(topic, partition, epoch, found, durable, guards=guards)
        if file is not None:
            if not is_fenced:
                epochs.make_fence(disk, folder, epoch)
                is_fenced = True
            firsts = [one.first_offset for one in found.sealed]
            first_offset = min([*firsts, durable.offset])
            newest = epochs.newest_fence(disk, folder)
            if newest > epoch:
                file.close()
                raise epochs.stale(folder, epoch, newest)
            if epochs.seal(disk, folder, ended, Begin(epoch, durable.offset), first_offset):
                return Taken(found, active, file, ended.newest)
            file.close()
        disk.remove(segment_path(folder, active.first_offset, epoch))


def _examine(
    topic: Topic, partition: int, epoch: int, guards: Guards
) -> tuple[Found, FramePosition]:
    """Return the partition's content up to the durable offset, and that position.

    ``Found.active`` is the last segment as it is, including the part after that position.
    """
    known_offset = durable_offset(topic, partition)
    found = inspect(topic, partition)
    if found is None:
        begin = FramePosition(0, known_offset, chain_at(known_offset))
        active = Index(known_offset, begin, topic.settings.index_interval_bytes, epoch=epoch)
        return Found([], active, Producers(topic.settings.producers_max), None, []), begin
    last = found.active
    cut = Index(last.first_offset, _start(found), last.interval_bytes, epoch=last.epoch)
    durable = max(known_offset, last.first_offset)
    with closing(_open(topic, partition, last)) as file:
        frames = Frames(file, partition, cut.place, topic.settings.batch_bytes_max)
        while frames.place.offset < last.place.offset:
            header = frames.next_header()
            if header is None:
                break
            durable = max(durable, header.durable_offset)
        if not guards("seal_at_durable"):
            durable = last.place.offset
        frames = Frames(file, partition, cut.place, topic.settings.batch_bytes_max)
        while cut.place.offset < durable:
            header = frames.next_header()
            if header is None:
                break
            cut.add(header)
    sealed = [*found.sealed, cut] if cut.entries else found.sealed
    return found._replace(sealed=sealed), cut.place


def _begin(
    topic: Topic,
    partition: int,
    epoch: int,
    found: Found,
    durable: FramePosition,
    *,
    guards: Guards,
) -> tuple[Index, File | None]:
    """Write the new owner's first segment durably: the predecessor's records that were not durable.

    No file is returned if the predecessor has taken some of them back since.
    """
    disk, folder = topic.disk, topic.folder(partition)
    place = FramePosition(0, durable.offset, durable.chain)
    active = Index(durable.offset, place, topic.settings.index_interval_bytes, epoch=epoch)
    path = segment_path(folder, durable.offset, epoch)
    for left in (path, index_path(folder, durable.offset, epoch)):
        # Left by an owner of this epoch whose fence was lost in a power failure.
        if disk.exists(left):
            disk.remove(left)
    file = disk.open(path, exclusive=True)
    try:
        if found.active.place.offset > durable.offset:
            with closing(_open(topic, partition, found.active)) as old:
                frames = Frames(old, partition, durable, topic.settings.batch_bytes_max)
                while frames.place.offset < found.active.place.offset:
                    one = frames.next()
                    if one is None:
                        break
                    file.append(memoryview(one.data)[one.at : one.at + one.header.length])
                    active.add(one.header)
        if guards("tail_synced"):
            file.sync()
        disk.sync_folder(folder)
    except BaseException:
        file.close()
        raise
    if (active.place.offset, active.place.chain) != (
        found.active.place.offset,
        found.active.place.chain,
    ):
        file.close()
        return active, None
    return active, file


def _start(found: Found) -> FramePosition:
    first = found.active.first_offset
    chain = found.sealed[-1].place.chain if found.sealed else chain_at(first)
    return FramePosition(0, first, chain)


def _open(topic: Topic, partition: int, index: Index) -> File:
    segment = Segment(index.first_offset, index.epoch)
    return open_segment(topic.disk, topic.folder(partition), segment)
