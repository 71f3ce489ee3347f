"""The manifest of a partition: the list of its checkpoints, and the fence around it.

Entry n+1 is created only where no n+1 exists, by an owner who has seen n. An entry is the whole
truth: its owner's epoch and the checkpoints that count. Taking over is one more entry, with a
higher epoch; the owner before finds its next number taken, and stops.

Old entries are deleted. A forgotten name could be created again, by an owner that slept through
it; so a boundary is made durable before, no entry below it counts, and whoever has created an
entry looks for the boundary and for newer entries before it believes in it.

Invariants: entries from the boundary to the newest exist; epochs never fall along them; the
boundary is at most the newest entry.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from typing import Any

from ripple.checkpoint.errors import CheckpointError, DamagedError, FencedError
from ripple.checkpoint.format import Checkpoint, Part
from ripple.errors import LimitError
from ripple.world.ports import Guards, ObjectStore, all_guards

ENTRY_FORMAT = 1
ENTRY_BYTES_MAX = 1 << 20
# Entries behind the newest that stay readable, and as many again before they are deleted at once.
ENTRIES_KEPT = 8
CLAIM_ATTEMPTS_MAX = 16

_NAME = re.compile(r"(\d{16})(\.boundary)?\.json")


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. owner: a nonce of who wrote it. checkpoints: newest first.

    previous: the checksum of the entry before, "" for the first or after a damaged one.
    """

    number: int
    epoch: int
    owner: str
    previous: str
    checkpoints: tuple[Checkpoint, ...]

    def encode(self) -> bytes:
        """Return the entry as two lines: a checksum of the second, and JSON."""
        body = json.dumps({"format": ENTRY_FORMAT, **asdict(self)}, sort_keys=True).encode()
        return _checksum(body) + b"\n" + body + b"\n"

    @property
    def checksum(self) -> str:
        """The checksum in its first line."""
        return self.encode().partition(b"\n")[0].decode()


def decode_entry(data: bytes, name: str, *, is_verified: bool = True) -> Entry:
    """Return an entry. Raises DamagedError, or CheckpointError for a newer format."""
    checksum, _, body = data.partition(b"\n")
    if is_verified and (not body.endswith(b"\n") or _checksum(body[:-1]) != checksum):
        raise DamagedError(f"{name} is damaged: it does not have its checksum")
    held: dict[str, Any] = json.loads(body)
    version = held.pop("format")
    if version > ENTRY_FORMAT:
        raise CheckpointError(
            f"{name} has format {version}, this version of Ripple reads up to {ENTRY_FORMAT}: "
            "upgrade it"
        )
    return Entry(**held | {"checkpoints": tuple(map(_checkpoint, held["checkpoints"]))})


def _checkpoint(held: dict[str, Any]) -> Checkpoint:
    digests = {name: (whole, live) for name, (whole, live) in held["digests"].items()}
    parts = tuple(Part(**part) for part in held["parts"])
    nodes = tuple(held.get("nodes", ()))  # files written by the first release have none
    return Checkpoint(**held | {"digests": digests, "parts": parts, "nodes": nodes})


def _checksum(body: bytes) -> bytes:
    return blake2b(body, digest_size=32).hexdigest().encode()


@dataclass(frozen=True, slots=True)
class Reading:
    """The newest entry that can be read, if any; what was seen on the way to it.

    newest_number: of the newest entry, readable or not; 0 when there is none.
    """

    entry: Entry | None
    newest_number: int
    damaged: tuple[str, ...]


class Manifest:
    """Reads the manifest at ``prefix`` in a store; ``claim`` gives the right to write it."""

    def __init__(
        self,
        store: ObjectStore,
        prefix: str,
        *,
        entries_kept: int = ENTRIES_KEPT,
        guards: Guards = all_guards,
    ) -> None:
        self.store = store
        self.prefix = prefix
        self.entries_kept = entries_kept
        self._guards = guards

    def name_of(self, number: int) -> str:
        """Return the object name of an entry."""
        return f"{self.prefix}{number:016d}.json"

    async def numbers(self) -> tuple[int, list[int]]:
        """Return the boundary, 0 for none, and the numbers of the entries that count, rising."""
        held = await self._names()
        boundary = max((number for number, marks in held.values() if marks), default=0)
        numbers = [number for number, marks in held.values() if not marks and number >= boundary]
        return boundary, sorted(numbers)

    async def _names(self) -> dict[str, tuple[int, bool]]:
        """Return the number of each object, and whether it is a boundary."""
        names = await self.store.list(self.prefix)
        matches = {name: _NAME.fullmatch(name.removeprefix(self.prefix)) for name in names}
        return {name: (int(m[1]), bool(m[2])) for name, m in matches.items() if m}

    async def get(self, number: int) -> Entry | None:
        """Return an entry, None if there is none. Raises DamagedError."""
        name = self.name_of(number)
        try:
            data = await self.store.get(name, length_max=ENTRY_BYTES_MAX)
        except LimitError as error:
            raise DamagedError(f"{name} is damaged: {error}") from error
        is_verified = self._guards("checksum")
        entry = None if data is None else decode_entry(data, name, is_verified=is_verified)
        if entry is not None and entry.number != number:
            raise DamagedError(f"{name} is entry {entry.number}: somebody renamed it")
        return entry

    async def newest(self) -> Reading:
        """Return the newest entry that can be read; damaged ones are passed over and reported."""
        _, numbers = await self.numbers()
        damaged = []
        for number in reversed(numbers):
            try:
                entry = await self.get(number)
            except DamagedError as error:
                damaged.append(str(error))
                continue
            if entry is not None:
                return Reading(entry, numbers[-1], tuple(damaged))
        return Reading(None, numbers[-1] if numbers else 0, tuple(damaged))

    async def claim(self, owner: str, epoch: int | None = None) -> Fence:
        """Become the owner, by an entry that keeps the checkpoints of the newest one.

        owner: a nonce. epoch: from whoever assigns partitions, above all before; None takes the
        next. Raises FencedError when ``epoch`` is not above the newest entry's.
        """
        for _ in range(CLAIM_ATTEMPTS_MAX):
            reading = await self.newest()
            last, number = reading.entry, reading.newest_number + 1
            before = last.epoch if last else 0
            if epoch is not None and epoch <= before:
                raise FencedError(f"{self.prefix} was claimed with epoch {before}, not below")
            # An entry that cannot be read may have a higher epoch than the readable ones; as long
            # as epochs are taken here, it is not above its number.
            taken = epoch if epoch is not None else max(before + 1, number)
            previous = last.checksum if last and last.number == number - 1 else ""
            entry = Entry(number, taken, owner, previous, last.checkpoints if last else ())
            there = await self._create(entry)
            if there is not None and (there.owner, there.epoch) == (owner, taken):
                await self.check_newest(there)
                return Fence(self, there)
        raise CheckpointError(
            f"{self.prefix} was claimed by others {CLAIM_ATTEMPTS_MAX} times in a row: "
            "are several processes restarted over it at once?"
        )

    async def _create(self, entry: Entry) -> Entry | None:
        """Create an entry; return what is there now: it, or another owner's (None if damaged).

        A create that was repeated after a lost reply finds its own earlier success.
        """
        stored = await self.store.put_if_absent(self.name_of(entry.number), entry.encode())
        if stored or not self._guards("fence"):
            return entry
        try:
            return await self.get(entry.number)
        except DamagedError:
            return None

    async def check_newest(self, entry: Entry) -> None:
        """Raise FencedError unless ``entry``, just created, counts and is the newest."""
        if not self._guards("check_newest"):
            return
        boundary, numbers = await self.numbers()
        if entry.number < boundary or numbers[-1:] != [entry.number]:
            raise FencedError(
                f"{self.name_of(entry.number)} of epoch {entry.epoch} came too late: the newest "
                f"entry is {max(numbers, default=boundary)}; another process owns this partition"
            )

    async def forget_below(self, boundary: int) -> None:
        """Delete entries below ``boundary``, which is a number of the caller's own entries."""
        mark = self.name_of(boundary).replace(".json", ".boundary.json")
        await self.store.put_if_absent(mark, b'"no entry below this number counts"\n')
        for name, (number, _) in (await self._names()).items():
            if number < boundary:
                await self.store.delete(name)


class Fence:
    """The right to write a manifest, until somebody else claims it.

    Invariant: ``entry`` is the newest entry that this owner knows to be its own.
    """

    def __init__(self, manifest: Manifest, entry: Entry) -> None:
        self.manifest = manifest
        self.entry = entry

    @property
    def epoch(self) -> int:
        """The owner's epoch."""
        return self.entry.epoch

    async def append(
        self, change: Callable[[tuple[Checkpoint, ...]], tuple[Checkpoint, ...]]
    ) -> tuple[Checkpoint, ...]:
        """Append what ``change`` makes of the newest entry's checkpoints; return those it drops.

        Raises FencedError when another owner has claimed, StoreError when nobody knows whether it
        happened: then the next append finds out.
        """
        while True:
            present = self.entry.checkpoints
            entry = replace(
                self.entry,
                number=self.entry.number + 1,
                previous=self.entry.checksum,
                checkpoints=change(present),
            )
            there = await self.manifest._create(entry)
            if there is None or (there.owner, there.epoch) != (self.entry.owner, self.epoch):
                epoch = f"epoch {there.epoch}" if there else "an epoch that cannot be read"
                raise FencedError(
                    f"an owner with {epoch} has claimed {self.manifest.prefix}: "
                    f"epoch {self.epoch} must not write any more"
                )
            await self.manifest.check_newest(there)
            self.entry = there
            if there == entry:
                kept = {checkpoint.name for checkpoint in entry.checkpoints}
                return tuple(one for one in present if one.name not in kept)
            # An append that had failed was stored after all; this one comes after it.

    async def forget(self) -> None:
        """Delete entries that nobody needs, now and then."""
        boundary, _ = await self.manifest.numbers()
        kept = self.manifest.entries_kept
        if self.entry.number - boundary >= 2 * kept:
            await self.manifest.forget_below(self.entry.number - kept)
