"""The single writer of a partition."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Self

from ripple.core.errors import LimitError
from ripple.storage.log import body, frame
from ripple.storage.log import index as index_file
from ripple.storage.log.distrust import distrust, rewrite_distrusted
from ripple.storage.log.durable import DurableNotes, forget_notes, notes_path
from ripple.storage.log.epochs import check_epoch, forget_before, newest_fence, stale
from ripple.storage.log.errors import StaleEpochError, TopicError, WriterFailedError
from ripple.storage.log.index import Index
from ripple.storage.log.owner_locks import OwnerLocks
from ripple.storage.log.producers import Producers, Stamp
from ripple.storage.log.recovery import Found, TornTail, chain_at, inspect
from ripple.storage.log.segment import FramePosition, index_path, segment_path
from ripple.storage.log.takeover import take_over
from ripple.world.errors import is_of_one_file
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from ripple.storage.log.topic import Topic
    from ripple.world.ports import Clock, Guards


# A search for an offset reads the headers of at most so many frames. Only durable frames are
# indexed, so as many are synced at the latest, under any policy of the topic.
APPENDS_PER_INDEX = 500


class Appended(NamedTuple):
    """The position of an append; ``is_new`` is False when it had been stored before."""

    first_offset: int
    next_offset: int
    is_new: bool = True


class PartitionWriter:
    """Appends to one partition exclusively: a lock keeps others out and names the holder.

    With an epoch, it takes the partition over from owners of lower epochs, also from a frozen one
    that holds the lock; and every call raises StaleEpochError once there is an owner of a higher
    epoch (docs/seals.md). Without one, it takes the epoch after the newest if there were owners
    with epochs, else 0.

    Opening recovers from a crash (``cut``: the torn tail that was cut off, if any). Invariants:
    ``durable_offset <= next_offset``; the records below durable_offset survive a power failure, and
    all sealed segments are durable; the file never holds a partial frame between two calls.

    A write that fails leaves the partition as it was. After a failed sync the records since the
    last good one are cut off, because their state on disk is unknown, and every call raises
    WriterFailedError; a new writer begins after the durable offset.
    """

    def __init__(
        self,
        topic: Topic,
        partition: int,
        clock: Clock,
        *,
        holder: str = "a writer",
        epoch: int | None = None,
        guards: Guards = all_guards,
    ) -> None:
        """Take the lock and recover the partition.

        clock: for the age of segments. guards: the active safeguards, for tests of the tests.
        Raises DiskLockedError naming the holder, StaleEpochError naming both epochs,
        LogDamagedError with nothing changed, TopicError and OSError.
        """
        if epoch is not None:
            check_epoch(epoch)
        self.topic = topic
        self.partition = partition
        self.tail: TornTail | None = None
        self._folder = topic.folder(partition)
        self._settings = topic.settings
        self._disk = topic.disk
        self._clock = clock
        self._guards = guards
        self._columns = body.columns_of(topic.schema)
        # Spreads the syncs for indexes of partitions that get the same number of appends.
        self._unindexed_appends = partition * APPENDS_PER_INDEX // topic.partitions
        self._failure: str | None = None
        self._stale: StaleEpochError | None = None
        self._disk.make_folder(self._folder)
        self._locks = OwnerLocks(self._disk, self._folder, holder)
        self.epoch = self._locks.take(epoch)
        self._notes = DurableNotes(self._disk, notes_path(topic, partition, self.epoch))
        try:
            if not self._disk.exists(f"{topic.path}/topic"):
                raise TopicError(f"{topic.path}: the topic is gone")  # by ``withdraw``
            # The topic's creator may have crashed before its name was durable.
            self._disk.sync_folder(topic.path)
            self._open()
        except BaseException:
            self._locks.release()
            raise

    @property
    def first_offset(self) -> int:
        """The first readable offset."""
        return (self._sealed or [self._active])[0].first_offset

    @property
    def next_offset(self) -> int:
        """The offset of the next append."""
        return self._active.place.offset

    @property
    def durable_offset(self) -> int:
        """The records below it survive a power failure."""
        return self._durable.offset

    @property
    def last_crc(self) -> int:
        """The checksum of the last frame's header, which identifies the whole log; 0 for none."""
        return self._active.place.chain or 0

    def append(
        self,
        records: pa.RecordBatch,
        stamp: Stamp | None = None,
        notes: Mapping[str, str] | None = None,
    ) -> Appended:
        """Append records as one frame, and sync if the topic's policy says so.

        stamp: makes the append idempotent: a repeated one returns the offsets of the first. notes:
        stored in the frame, for ``PartitionReader.notes_at``. Raises SchemaError, StaleEpochError,
        SequenceError and LimitError with nothing stored; OSError when the write fails;
        SyncFailedError, see the class.
        """
        self._check()
        records = body.conformed(records, self._columns)
        if not records.num_rows:
            return Appended(self.next_offset, self.next_offset, is_new=False)
        if stamp is not None and self._guards("idempotent_append"):
            stored = self._producers.find(stamp, records.num_rows)
            if stored is not None:
                next_offset = stored.first_offset + stored.record_count
                return Appended(stored.first_offset, next_offset, is_new=False)
        raw = body.dumps(records, notes)
        if raw.nbytes > self._settings.batch_bytes_max:
            raise LimitError(
                f"a batch of {raw.nbytes} bytes exceeds batch_bytes_max, "
                f"{self._settings.batch_bytes_max}: append fewer records at a time"
            )
        times_ns = body.times_of(records, self.topic.time_field)
        draft = frame.draft_records(raw, records.num_rows, self._settings.compression, times_ns)
        if stamp is not None:
            draft = draft._replace(
                producer=stamp.producer, epoch=stamp.epoch, sequence=stamp.sequence
            )
        return self._append(draft)

    def mark(self, watermark_ns: int) -> Appended:
        """Append a marker: the promise that no event below ``watermark_ns`` follows.

        It takes one offset, so that a cut includes or excludes the promise.
        """
        self._check()
        return self._append(frame.draft_marker(watermark_ns))

    def sync(self) -> int:
        """Make all appends durable; return the durable offset.

        Raises SyncFailedError, and StaleEpochError even with nothing to sync.
        """
        self._check()
        is_due = self._durable.offset < self.next_offset
        if is_due:
            try:
                self._file.sync()
            except OSError as error:
                self._fail(f"a sync failed: {error}")
                raise
        self.check_owner()
        if is_due:
            if not self._file.is_named():
                self._fail("its segment was removed or renamed during writing")
                self._check()
            self._note_durable()
            if self._unindexed_appends >= APPENDS_PER_INDEX:
                # It only speeds readers up.
                with suppress(OSError):
                    self._write_index()
        return self.durable_offset

    def check_owner(self) -> None:
        """Raise StaleEpochError if there is an owner of a higher epoch.

        Call it before any acknowledgement and after the sync: a successor takes over all records
        that were durable before its fence.
        """
        if not self._guards("fence_check"):
            return
        newest = newest_fence(self._disk, self._folder)
        if newest > self.epoch:
            self._stale = stale(self._folder, self.epoch, newest)
            self._failure = str(self._stale)
            raise self._stale

    def retain(self) -> list[int]:
        """Remove the expired sealed segments; return their first offsets.

        Also happens whenever a segment is sealed. The last frame of the log always stays.
        """
        self._check()
        return self._remove(self._expired(self._removable))

    def release(self, offset: int) -> list[int]:
        """Remove the sealed segments that end at ``offset`` or before; otherwise as ``retain``."""
        self._check()
        removable = self._removable
        ends = [one.first_offset for one in (*self._sealed[1:], self._active)]
        return self._remove(
            [one for one, end in zip(removable, ends, strict=False) if end <= offset]
        )

    @property
    def has_sealed(self) -> bool:
        """Whether retention has segments to choose from."""
        return bool(self._removable)

    @property
    def _removable(self) -> list[Index]:
        return self._sealed if self._active.entries else self._sealed[:-1]

    def _remove(self, expired: list[Index]) -> list[int]:
        if expired:
            self.sync()
        for index in expired:
            # One after the other, oldest first: a crash must not leave a gap.
            for path_of in (segment_path, index_path):
                # A replaced owner may be doing the same.
                with suppress(FileNotFoundError):
                    self._disk.remove(path_of(self._folder, index.first_offset, index.epoch))
            self._disk.sync_folder(self._folder)
            self._sealed.remove(index)
        return [index.first_offset for index in expired]

    def close(self) -> None:
        """Sync, write the index and release the lock; closing twice is allowed."""
        try:
            if self._failure is None:
                self.sync()
                self._notes.keep()
                self._write_index()
        finally:
            self._failure = self._failure or "the writer is closed"
            self._file.close()
            self._locks.release()

    def withdraw(self) -> None:
        """Close, and remove the empty topic, which has this partition only.

        The description goes first: a process that has read it and waits for the lock then finds no
        topic. Raises OSError where a folder stays, because it holds foreign files.
        """
        assert self.topic.partitions == 1
        assert self.next_offset == 0
        if self.epoch:
            self.close()  # another owner may be taking over
            return
        self._failure = self._failure or "the writer is closed"
        self._file.close()
        try:
            for path in (
                f"{self.topic.path}/topic",
                segment_path(self._folder, 0),
                index_path(self._folder, 0),
                f"{self._folder}/lock",
                f"{self.topic.path}/lock",
            ):
                if self._disk.exists(path):
                    self._disk.remove(path)
            for folder in (self._folder, self.topic.path):
                self._disk.sync_folder(folder)
                self._disk.remove_folder(folder)  # raises if there are foreign files
        finally:
            self._locks.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- opening ---

    def _open(self) -> None:
        if self.epoch:
            self._take_over()
            return
        found = inspect(self.topic, self.partition)
        if found is None:
            self._sealed: list[Index] = []
            self._producers = Producers(self._settings.producers_max)
            self._begin(FramePosition(0, 0, chain_at(0)))
        elif found.active.epoch:
            raise stale(self._folder, 0, found.active.epoch)
        else:
            self._resume(found)
        self.check_owner()
        self._note_durable()

    def _take_over(self) -> None:
        taken = take_over(self.topic, self.partition, self.epoch, self._guards)
        self._file, self._active = taken.file, taken.active
        self.tail = taken.found.tail
        try:
            self._take_sealed(taken.found)
            self._opened_ns = self._clock.now_ns()
            self.check_owner()
        except BaseException:
            self._file.close()
            raise
        with suppress(OSError):
            forget_before(self._disk, self._folder, self.epoch, taken.replaced)
            forget_notes(self.topic, self.partition, self.epoch)
        self._note_durable()

    def _take_sealed(self, found: Found) -> None:
        self._producers = found.producers
        self._sealed = found.sealed
        for index in found.sealed:
            # Its age is unknown, so it is retained for as long as a new one.
            index.sealed_ns = index.sealed_ns or self._clock.now_ns()
        for index, producers in found.rebuilt:
            # It only saves the next writer reading the whole segment.
            with suppress(OSError):
                index_file.write(self._disk, self._folder, index, producers)

    def _resume(self, found: Found) -> None:
        self._take_sealed(found)
        self._active = found.active
        if self._guards("rewritten_tail"):
            rewrite_distrusted(self._disk, self._folder, found.active.first_offset)
        self._file = self._disk.open(segment_path(self._folder, found.active.first_offset))
        try:
            if found.tail is not None and self._guards("torn_tail_cut"):
                self._file.truncate(found.tail.position)
                self.tail = found.tail
            # The writes of a killed process are there, but maybe not yet durable: the appends,
            # the names of the segment and of the topic.
            self._file.sync()
            if self._guards("folder_sync"):
                self._disk.sync_folder(self._folder)
                self._disk.sync_folder(self.topic.path)
        except OSError:
            distrust(self._disk, self._folder)
            self._file.close()
            raise
        self._opened_ns = self._clock.now_ns()

    def _begin(self, place: FramePosition) -> None:
        """Begin a segment; its name must be durable before a record in it can be."""
        first = FramePosition(0, place.offset, place.chain)
        path = segment_path(self._folder, place.offset, self.epoch)
        file = self._disk.open(path, exclusive=True)
        try:
            if self._guards("folder_sync"):
                self._disk.sync_folder(self._folder)
        except OSError:
            file.close()
            self._disk.remove(path)
            raise
        self._file = file
        interval_bytes = self._settings.index_interval_bytes
        self._active = Index(place.offset, first, interval_bytes, epoch=self.epoch)
        self._opened_ns = self._clock.now_ns()

    # --- appending ---

    def _append(self, draft: frame.Draft) -> Appended:
        if self._is_full(draft):
            self._roll()
        position, offset, chain = self._active.place
        data = frame.dumps(
            draft,
            first_offset=offset,
            partition=self.partition,
            durable_offset=self.durable_offset,
            chain=chain or 0,
        )
        try:
            self._file.append(data)
        except OSError:
            self._take_back(position)
            raise
        header = frame.read_header(data)
        self._active.add(header)
        self._producers.note(header)
        self._unsynced_appends += 1
        self._unindexed_appends += 1
        if self._is_sync_due():
            self.sync()
        return Appended(offset, header.next_offset)

    def _is_sync_due(self) -> bool:
        appends, length = self._settings.sync_appends, self._settings.sync_bytes
        unsynced_bytes = self._active.place.position - self._durable.position
        return (
            bool(appends and self._unsynced_appends >= appends)
            or bool(length and unsynced_bytes >= length)
            or self._unindexed_appends >= APPENDS_PER_INDEX
        )

    def _is_full(self, draft: frame.Draft) -> bool:
        if not self._active.entries:
            return False
        limit = self._settings.segment_age_ns_max
        return self._active.place.position + draft.length > self._settings.segment_bytes_max or (
            limit > 0 and self._age_ns(draft) > limit
        )

    def _age_ns(self, draft: frame.Draft) -> int:
        if self._settings.age_by == "clock":
            return self._clock.now_ns() - self._opened_ns
        if frame.NO_TIME_NS in (draft.time_ns_max, self._active.time_ns_first):
            return 0
        return draft.time_ns_max - self._active.time_ns_first

    def _roll(self) -> None:
        """Seal the active segment and begin the next."""
        self.sync()
        self._notes.keep()
        self._write_index()
        sealed, file = self._active, self._file
        self._begin(sealed.place)
        file.close()
        self._sealed.append(sealed)
        self._note_durable()
        self.retain()

    def _write_index(self) -> None:
        """Write the index of the active segment, all of which is durable."""
        self._unindexed_appends = 0
        self._active.sealed_ns = self._clock.now_ns()
        try:
            index_file.write(self._disk, self._folder, self._active, self._producers)
        except OSError as error:
            if not is_of_one_file(error):
                raise

    def _note_durable(self) -> None:
        self._durable = self._active.place
        self._unsynced_appends = 0
        self._notes.note(self._durable.offset)

    # --- retention ---

    def _expired(self, removable: list[Index]) -> list[Index]:
        length = self._active.place.position + sum(one.place.position for one in self._sealed)
        now_ns = self._now_ns()
        count = 0
        for index in removable:
            too_long = 0 < self._settings.retention_bytes_max < length
            if not too_long and not self._is_too_old(index, now_ns):
                break
            length -= index.place.position
            count += 1
        return removable[:count]

    def _is_too_old(self, index: Index, now_ns: int) -> bool:
        limit = self._settings.retention_age_ns_max
        last_ns = index.sealed_ns if self._settings.age_by == "clock" else index.time_ns_max
        return limit > 0 and last_ns != frame.NO_TIME_NS and now_ns - last_ns > limit

    def _now_ns(self) -> int:
        if self._settings.age_by == "clock":
            return self._clock.now_ns()
        return max(index.time_ns_max for index in (*self._sealed, self._active))

    # --- failing ---

    def _check(self) -> None:
        if self._stale is not None:
            raise self._stale
        if self._failure is not None:
            raise WriterFailedError(f"{self._folder}: {self._failure}: open a new writer")

    def _take_back(self, position: int) -> None:
        """Remove the remains of a failed append."""
        try:
            self._file.truncate(position)
        except OSError as error:
            self._fail(f"an append failed, and so did taking it back: {error}", cut=False)

    def _fail(self, why: str, *, cut: bool = True) -> None:
        self._failure = why
        distrust(self._disk, self._folder)
        if cut:
            self._take_back(self._durable.position)
