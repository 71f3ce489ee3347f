"""The checkpoints of one partition: find, read and verify them; write them as its owner."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import unquote

from ripple.core.errors import LimitError
from ripple.engine.snapshots.increment import applied
from ripple.engine.snapshots.snapshot import Snapshot, SnapshotError
from ripple.storage.checkpoint.chain import (
    INCREMENTS_MAX_DEFAULT,
    chain_of,
    kept,
    may_grow,
    without_begun,
)
from ripple.storage.checkpoint.errors import CheckpointError
from ripple.storage.checkpoint.format import Checkpoint, decode, encode
from ripple.storage.checkpoint.manifest import Fence, Holding, HoldingContent
from ripple.storage.checkpoint.origin import NAME as ORIGIN_NAME
from ripple.storage.checkpoint.origin import NOTHING, ORIGIN, begin, folder_of, origin_in
from ripple.storage.fenced import ENTRIES_KEPT, Chain, ChainError, DamagedError, Reading, object_in
from ripple.world.errors import StoreError
from ripple.world.ports import (
    INLINE,
    Clock,
    Executor,
    Guards,
    ObjectStore,
    Random,
    all_guards,
)

KEEP_DEFAULT = 3
FILE_BYTES_MAX_DEFAULT = 1 << 32

_NONCE_BYTES = 8
_EPOCH_DIGITS = 10
_PARTITION = re.compile(r"([^/]+)/(\d{5,})/manifest/")
_FILE = re.compile(r"[^/]+/\d{5,}/state/")
_OF_OWNER = re.compile(r"(\d+)-")


@dataclass(frozen=True, slots=True)
class Found:
    """The newest complete checkpoint. damaged: the skipped newer ones, and why."""

    checkpoint: Checkpoint
    snapshot: Snapshot
    damaged: tuple[str, ...]


class Checkpoints:
    """Reads the checkpoints of a partition; any process may do so at any time.

    Objects are named ``PIPELINE/PARTITION/manifest/...`` and ``PIPELINE/PARTITION/state/...``.
    """

    def __init__(
        self,
        store: ObjectStore,
        pipeline: str,
        partition: int = 0,
        *,
        file_bytes_max: int = FILE_BYTES_MAX_DEFAULT,
        entries_kept: int = ENTRIES_KEPT,
        executor: Executor = INLINE,
        guards: Guards = all_guards,
    ) -> None:
        """Read from ``store``.

        entries_kept: how many entries before the newest stay readable. executor: runs the encoding
        and decoding of large files. guards: the active safeguards, for tests of the tests.
        """
        self.store = store
        self.pipeline = pipeline
        self.partition = partition
        self.prefix = prefix_of(pipeline, partition)
        self._guards = guards
        self.executor = executor
        self.manifest = Chain(
            store,
            f"{self.prefix}manifest/",
            HoldingContent(),
            entries_kept=entries_kept,
            guards=guards,
        )
        self.file_bytes_max = file_bytes_max

    async def list(self) -> tuple[Checkpoint, ...]:
        """Return the checkpoints in force, newest first.

        The last one is the backfill from which the partition began, if any. Raises DamagedError if
        no entry of the manifest can be read.
        """
        reading = await self.manifest.newest()
        if reading.entry is None and reading.damaged:
            raise DamagedError("; ".join(reading.damaged))
        return await self._listed(reading)

    async def _listed(self, reading: Reading[Holding]) -> tuple[Checkpoint, ...]:
        present = reading.entry.content.checkpoints if reading.entry else ()
        if present and ORIGIN not in present[0].notes:
            return present
        origin = await origin_in(self.store, self.pipeline)
        return present if origin is None else (*present, *origin.of(self.partition))

    async def begin(self) -> tuple[Checkpoint, ...]:
        """Return the checkpoints in force; if none, record that the partition begins empty.

        Only the owner calls this: afterwards no backfill can be adopted any more.
        """
        listed = await self.list()
        if not listed:
            return (await begin(self.store, self.pipeline, NOTHING)).of(self.partition)
        return listed

    async def read(self, checkpoint: Checkpoint) -> Snapshot:
        """Return the state, assembled from the checkpoint and its bases.

        Raises DamagedError naming the file, or LimitError.
        """
        present = () if checkpoint.base is None else await self.list()
        return await self._read(checkpoint, present)

    async def _read(self, checkpoint: Checkpoint, present: tuple[Checkpoint, ...]) -> Snapshot:
        whole, *changes = [await self._read_one(one) for one in chain_of(checkpoint, present)]
        try:
            return await self.executor.run(applied, whole, *changes)
        except SnapshotError as error:
            raise DamagedError(
                f"checkpoint {checkpoint.name} does not fit what it builds on: {error}"
            ) from error

    async def _read_one(self, checkpoint: Checkpoint) -> Snapshot:
        """Return the content of one checkpoint, which may be an increment."""
        files = {}
        for part in checkpoint.parts:
            if part.length_bytes > self.file_bytes_max:
                raise LimitError(
                    f"{part.object_name} has {part.length_bytes} bytes, more than file_bytes_max, "
                    f"{self.file_bytes_max}: raise that"
                )
            files[part.object_name] = await self._file(part.object_name, part.length_bytes)
        verified = partial(decode, is_verified=self._guards("checksum"))
        return await self.executor.run(verified, checkpoint, files)

    async def _file(self, name: str, length_bytes: int) -> bytes:
        data = await object_in(self.store, name, length_max=length_bytes)
        if data is None:
            raise DamagedError(f"{name} is missing")
        if len(data) < length_bytes:
            raise DamagedError(f"{name} is cut: {len(data)} of {length_bytes} bytes are there")
        return data

    async def latest(self) -> Found | None:
        """Return the newest complete checkpoint, None when there never was one.

        Raises DamagedError when none is complete: an operator has to decide.
        """
        while True:
            reading = await self.manifest.newest()
            found, damaged = await self._whole(reading)
            if not damaged or reading == await self.manifest.newest():
                break
            # An owner was faster: the missing file may have been replaced and deleted.
        if found is None and damaged:
            raise DamagedError(f"no checkpoint below {self.prefix} is whole: {'; '.join(damaged)}")
        return found

    async def _whole(self, reading: Reading[Holding]) -> tuple[Found | None, tuple[str, ...]]:
        """Return the newest complete checkpoint of an entry, and the reasons for those skipped."""
        damaged = list(reading.damaged)
        present = await self._listed(reading)
        for checkpoint in present:
            try:
                snapshot = await self._read(checkpoint, present)
                return Found(checkpoint, snapshot, tuple(damaged)), tuple(damaged)
            except DamagedError as error:
                damaged.append(str(error))
        return None, tuple(damaged)

    async def verify(self) -> tuple[str, ...]:
        """Read all checkpoints in force; return the problems found, empty if there are none."""
        problems = list(await self.manifest.problems())
        try:
            await origin_in(self.store, self.pipeline)
        except DamagedError as error:
            problems.append(str(error))
        epoch = 0
        present: tuple[Checkpoint, ...] = ()
        for number in (await self.manifest.numbers())[1]:
            try:
                entry = await self.manifest.get(number)
            except DamagedError:
                continue  # reported already
            if entry is None:
                continue
            present = entry.content.checkpoints
            if entry.content.epoch < epoch:
                name = self.manifest.name_of(number)
                problems.append(f"{name}: the epoch fell from {epoch} to {entry.content.epoch}")
            epoch = entry.content.epoch
        for checkpoint in present:
            try:
                chain_of(checkpoint, present)
                await self._read_one(checkpoint)
            except (CheckpointError, ChainError) as error:
                problems.append(str(error))
        return tuple(problems)

    async def claim(
        self,
        clock: Clock,
        random: Random,
        *,
        epoch: int | None = None,
        above: int = 0,
        keep: int = KEEP_DEFAULT,
        increments_max: int = INCREMENTS_MAX_DEFAULT,
    ) -> Owner:
        """Become the partition's owner, and fence off the previous one.

        epoch: given by the assignment; None takes the next one above ``above``, the highest epoch
        known from elsewhere. keep: how many checkpoints to retain, 1 or more; their bases are
        retained too. increments_max: how many increments may follow a full checkpoint, 0 for none.
        Raises FencedError if the partition had this epoch or a higher one. After any other error
        the claim may have taken effect: retry with a new epoch.
        """
        if keep < 1:
            raise CheckpointError(f"keep must be 1 or more checkpoints, not {keep}")
        nonce = random.bytes(_NONCE_BYTES).hex()
        fence = await Fence.claim(self.manifest, nonce, epoch, above=above)
        owner = Owner(self, fence, clock, random, keep=keep, increments_max=increments_max)
        with suppress(StoreError):  # leftovers cost room only; the next owner sweeps them
            await owner.sweep()
        return owner


class Owner:
    """Writes the checkpoints of a partition until another owner claims it."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        fence: Fence,
        clock: Clock,
        random: Random,
        *,
        keep: int,
        increments_max: int,
    ) -> None:
        self.checkpoints = checkpoints
        self._fence = fence
        self._clock = clock
        self._random = random
        self._keep = keep
        self._increments_max = increments_max
        self._stored = _NOTHING_STORED

    @property
    def epoch(self) -> int:
        """The owner's epoch."""
        return self._fence.epoch

    @property
    def present(self) -> tuple[Checkpoint, ...]:
        """The checkpoints that count, newest first."""
        return self._fence.checkpoints

    @property
    def damaged(self) -> tuple[str, ...]:
        """The entries of the manifest that were unreadable at the claim, newest first."""
        return self._fence.damaged

    @property
    def is_after_nothing_stored(self) -> bool:
        """Whether there was a previous owner, without a checkpoint."""
        before = self._fence.before
        return before.epoch > max((one.epoch for one in before.checkpoints), default=0)

    @property
    def since(self) -> int | None:
        """The base of the next snapshot, as ``Engine.begin_snapshot`` takes it.

        None asks for a full snapshot: the owner's first one, or the one after increments_max
        increments.
        """
        present = self._fence.checkpoints
        for one in present:
            if one.name == self._stored.name and may_grow(
                chain_of(one, present), self._increments_max
            ):
                return self._stored.number
        return None

    async def write(self, snapshot: Snapshot) -> Checkpoint:
        """Store a snapshot; when this returns, it is the latest checkpoint, and durable.

        An increment must begin at the last stored snapshot; see ``since``.

        Raises FencedError when another owner has claimed, and StoreError; older checkpoints stay.
        """
        name = f"{self.epoch:0{_EPOCH_DIGITS}d}-{self._random.bytes(_NONCE_BYTES).hex()}"
        if snapshot.since not in (None, self._stored.number):
            raise CheckpointError(
                f"the snapshot holds what changed since snapshot {snapshot.since}, but the last "
                f"one that was stored is {self._stored.number}: begin it with Owner.since"
            )
        base = None if snapshot.since is None else self._stored.name
        prefix = f"{self.checkpoints.prefix}state/"
        now_ns = self._clock.now_ns()
        # In the executor, for it compresses: the event loop has other work.
        checkpoint, files = await self.checkpoints.executor.run(
            partial(_encoded, base=base), snapshot, name, self.epoch, now_ns, prefix
        )
        await self.commit(checkpoint, files)
        self._stored = _Stored(checkpoint.name, snapshot.number)
        return checkpoint

    async def commit(
        self, checkpoint: Checkpoint, files: Mapping[str, bytes | bytearray]
    ) -> Checkpoint:
        """Store the result of ``encode``, the slow half of ``write``, which may run elsewhere."""
        store = self.checkpoints.store
        for name, data in files.items():
            # False: an earlier attempt whose reply was lost, since the nonce is unique.
            await store.put_if_absent(name, bytes(data))
        await self._change(lambda present: _with(present, checkpoint))
        return checkpoint

    async def delete(self, name: str) -> None:
        """Delete one checkpoint. Raises CheckpointError when it is missing, or others need it."""
        present = self._fence.checkpoints
        if all(checkpoint.name != name for checkpoint in present):
            raise CheckpointError(f"there is no checkpoint {name} below {self.checkpoints.prefix}")
        needing = [checkpoint.name for checkpoint in present if checkpoint.base == name]
        if needing:
            raise CheckpointError(
                f"{', '.join(needing)} holds changes of {name}: delete that first"
            )
        await self._change(lambda present: _without(present, name))

    async def _change(
        self, change: Callable[[tuple[Checkpoint, ...]], tuple[Checkpoint, ...]]
    ) -> None:
        """Append to the manifest, then delete the files of the checkpoints that it dropped."""
        gone = await self._fence.append(lambda present: kept(change(present), self._keep))
        try:
            await self._delete(part.object_name for one in gone for part in one.parts)
            await self._fence.forget()
        except StoreError:
            return  # the checkpoint is in force; the next owner sweeps the leftovers

    async def sweep(self) -> None:
        """Delete orphaned files, which no checkpoint names and none ever will.

        Previous owners left them; they can no longer add them to the manifest.
        """
        prefix = f"{self.checkpoints.prefix}state/"
        used = {
            part.object_name for checkpoint in self._fence.checkpoints for part in checkpoint.parts
        }
        names = await self.checkpoints.store.list(prefix)
        # Foreign files are not ours, and stay.
        owned = ((name, _OF_OWNER.match(name.removeprefix(prefix))) for name in names)
        await self._delete(
            name
            for name, match in owned
            if name not in used and match is not None and int(match[1]) < self.epoch
        )
        await self._fence.forget()

    async def _delete(self, names: Iterable[str]) -> None:
        for name in names:
            await self.checkpoints.store.delete(name)


@dataclass(frozen=True, slots=True)
class _Stored:
    """The last stored checkpoint, and the number of its snapshot."""

    name: str
    number: int


_NOTHING_STORED = _Stored("", 0)


def _encoded(*of: Any, base: str | None) -> tuple[Checkpoint, dict[str, bytes]]:
    """Return a checkpoint and its files as a store takes them: see ``encode``."""
    checkpoint, files = encode(*of, base=base)
    return checkpoint, {name: bytes(data) for name, data in files.items()}


def _with(present: tuple[Checkpoint, ...], checkpoint: Checkpoint) -> tuple[Checkpoint, ...]:
    others = _without(present, checkpoint.name)
    chain_of(checkpoint, others)  # its bases must be there
    return (checkpoint, *others)


def _without(checkpoints: tuple[Checkpoint, ...], name: str) -> tuple[Checkpoint, ...]:
    return tuple(checkpoint for checkpoint in checkpoints if checkpoint.name != name)


def is_file(name: str) -> bool:
    """Return whether an object is a file of a checkpoint, which is never put twice."""
    return _FILE.match(name) is not None


def prefix_of(pipeline: str, partition: int) -> str:
    """Return the common prefix of the names of a partition's objects."""
    return f"{folder_of(pipeline)}{partition:05d}/"


async def newest_epoch(store: ObjectStore, pipeline: str) -> int:
    """Return the highest epoch claimed in any partition of a pipeline."""
    names = await store.list(folder_of(pipeline))
    found = {_PARTITION.match(name) for name in names}
    epochs = [0]
    for number in sorted({int(match[2]) for match in found if match}):
        reading = await Checkpoints(store, pipeline, number).manifest.newest()
        epochs.append(0 if reading.entry is None else reading.entry.content.epoch)
    return max(epochs)


async def newest_of_each(
    store: ObjectStore, pipeline: str, code: str | None = None
) -> AsyncIterator[Checkpoint]:
    """Yield the newest checkpoint of each partition that has one, partition 0 first.

    code: a topology, to skip checkpoints of other code that has read nothing; see
    ``without_begun``. A damaged manifest is skipped: it is reported when its partition
    restores. Raises StoreError.
    """

    async def newest(at: int) -> tuple[Checkpoint, ...]:
        with suppress(DamagedError):
            listed = await Checkpoints(store, pipeline, at).list()
            return (listed if code is None else without_begun(listed, code))[:1]
        return ()

    for one in await newest(0):
        yield one
    for _, at in await partitions(store, pipeline):  # listed only where partition 0 says nothing
        for one in await newest(at) if at else ():
            yield one


async def partitions(store: ObjectStore, pipeline: str = "") -> tuple[tuple[str, int], ...]:
    """Return the pipelines and partitions that have or may have checkpoints, sorted.

    pipeline: the only one to look for.
    """
    names = await store.list(folder_of(pipeline) if pipeline else "")
    matches = {_PARTITION.match(name) for name in names}
    found = {(unquote(match[1]), int(match[2])) for match in matches if match}
    for name in names:
        pipeline, _, last = name.rpartition("/")
        if last == ORIGIN_NAME:
            with suppress(DamagedError):  # reported when the partition is read
                origin = await origin_in(store, unquote(pipeline)) or NOTHING
                found |= {(one.pipeline, one.partition) for one in origin.checkpoints}
    return tuple(sorted(found))
