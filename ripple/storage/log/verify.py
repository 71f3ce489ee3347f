"""Verification of a partition: reads and checks everything in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ripple.storage.log import body
from ripple.storage.log import index as index_file
from ripple.storage.log.epochs import segments
from ripple.storage.log.frame import FrameError, Header, Kind
from ripple.storage.log.recovery import TornTail, inspect
from ripple.storage.log.segment import index_path

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.model.batch import Rejected
    from ripple.storage.log.segment import Frame
    from ripple.storage.log.topic import Topic


class Verified(NamedTuple):
    """The content of a partition, and faults that lost nothing.

    ``tail``: the part that the next writer will cut off. ``indexes``: the paths of index files that
    disagree with the data, and are rebuilt when needed. ``refused``: the number of intact records
    with invalid content, which readers reject and skip; ``first_refused``: the first of them.
    ``given_up``: records that were lost. ``is_absent``: there are no segments, although other
    partitions have some.
    """

    segments: int
    frames: int
    records: int
    length: int
    tail: TornTail | None = None
    indexes: tuple[str, ...] = ()
    refused: int = 0
    first_refused: Rejected | None = None
    given_up: int = 0
    is_absent: bool = False


def verify(
    topic: Topic, partition: int, seen: Callable[[Header], None] = lambda _: None
) -> Verified:
    """Check every frame, body and index of a partition; ``seen`` is called with each frame.

    Raises LogDamagedError for the first damage, naming the file and the offset.
    """
    columns = body.columns_of(topic.schema)
    folder = topic.folder(partition)
    frames = records = refused = given_up = 0
    first_refused: Rejected | None = None

    def check(found: Frame) -> None:
        nonlocal frames, records, refused, given_up, first_refused
        header = found.header
        if header.kind == Kind.RECORDS:
            rows, rejected = body.read(header, found.data, found.at, columns)
            times_ns = body.times_of(rows, topic.time_field)
            if not rejected and times_ns != (header.time_ns_min, header.time_ns_max):
                raise FrameError("the header's event times are not those of the records")
            records += header.record_count
            refused += len(rejected)
            first_refused = first_refused or next(iter(rejected), None)
        if header.kind == Kind.LOST:
            given_up += header.record_count
        frames += 1
        seen(header)

    found = inspect(topic, partition, check)
    if found is None:
        folders = map(topic.folder, range(topic.partitions))
        is_absent = any(segments(topic.disk, folder) for folder in folders)
        return Verified(0, 0, 0, 0, is_absent=is_absent)
    all_segments = [*found.sealed, found.active]
    wrong = []
    for at, rebuilt in enumerate(all_segments):
        path = index_path(folder, rebuilt.first_offset, rebuilt.epoch)
        if not topic.disk.exists(path):
            continue
        interval_bytes = topic.settings.index_interval_bytes
        known = index_file.read(
            topic.disk, folder, rebuilt.first_offset, interval_bytes, epoch=rebuilt.epoch
        )
        # The last segment may have grown since its index was written.
        is_part = known is not None and known.entries == rebuilt.entries[: len(known.entries)]
        is_whole = known is not None and known.place == rebuilt.place
        if not is_part or (at < len(all_segments) - 1 and not is_whole):
            wrong.append(path)
    length = sum(one.place.position for one in all_segments)
    return Verified(
        len(all_segments),
        frames,
        records,
        length,
        found.tail,
        tuple(wrong),
        refused,
        first_refused,
        given_up,
    )
