"""Invariants of the disk, checked after every step."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.files.text import cut_record
from ripple.connectors.log.sink import resumed_in
from ripple.core.cut import is_within
from ripple.core.errors import LimitError
from ripple.storage.checkpoint.manifest import Holding, HoldingContent
from ripple.storage.fenced import decode_entry
from ripple.storage.log import Topic
from ripple.testing.sim.disk import SimDisk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ripple.connectors.files.text.cut_record import CutRecord
    from ripple.testing.sim.world import SimWorld

_ENTRY = re.compile(r"\d+\.json")
# Effects that change neither durable bytes nor durable names: a sync does that.
_UNSEEN = frozenset(
    ("read", "store_read", "net_write", "create", "append", "truncate", "rename", "link", "remove")
)


class Place(NamedTuple):
    """Where an output is: its record; if it has a file, that and its final contents."""

    record: str
    file: str | None = None
    expected: bytes = b""


class Onlooker:
    """Checks durable bytes; keeps its observations of earlier incarnations in the witness.

    At any moment the committed part of an output is a prefix of an undisturbed run's, and
    never shrinks; the newest checkpoint is not ahead of any output, by its record or, in a
    log, by its last frame; epochs never fall.
    """

    def __init__(
        self,
        world: SimWorld,
        places: Sequence[Place],
        manifest: str,
        *,
        in_store: bool,
        one_way: bool,
    ) -> None:
        """Look at ``places`` and the manifest's folder, on the disk or in the store.

        one_way: whether each run takes the same way through the inputs. A replay that knows all
        markers does not: its checkpoints are not ahead of a log, but may be of an older record.
        """
        self._one_way = one_way
        self._world = world
        self._places = places
        self._manifest = manifest
        self._in_store = in_store
        self._seen_effects = 0
        self._has_looked = False
        self._records: dict[str, CutRecord] = {}
        self._read: dict[str, bytes] = {}
        self._written: dict[str, bytes | None] = {}
        self._entry_name = ""

    def look(self) -> None:
        """Look if anything has changed since the last time; raise AssertionError."""
        names = self._world.effects.names
        if self._has_looked and len(names) == self._seen_effects:
            return
        happened = names[self._seen_effects :]
        self._seen_effects = len(names)
        if not (self._has_looked and _UNSEEN.issuperset(happened)):
            self._has_looked = True
            for place in self._places:
                self._look_at_output(place)
            self._look_at_manifest()

    def _look_at_output(self, place: Place) -> None:
        data = self._world.disk.peek(place.record)
        assert data or place.record not in self._committed, f"{place.record} is gone"
        if data is None:
            return
        written = None if place.file is None else self._world.disk.peek(place.file)
        read, before = self._read.get(place.record), self._written.get(place.record)
        if read is data and before is written:
            return  # the very bytes that were looked at before: a sync makes others
        self._read[place.record], self._written[place.record] = data, written
        if read != data:
            record = cut_record.read(_Peeking(self._world.disk), place.record)
            assert record is not None
            assert record.end >= self._committed.get(place.record, 0), f"{place.record} went back"
            if record.reached is not None:  # an output that nothing was written to may go again
                self._committed[place.record] = record.end
            self._records[place.record] = record
        if place.file is not None:
            end = self._records[place.record].end
            committed = (written or b"")[:end]
            assert committed == place.expected[:end], f"{place.file}: {committed!r} was committed"

    def _look_at_manifest(self) -> None:
        for name in reversed(self._names()):
            if name == self._entry_name:
                return
            data = self._object(name) if _ENTRY.fullmatch(name) else None
            if data is not None:
                self._entry_name = name
                self._check_holding(decode_entry(data, name, HoldingContent()).content)
                return

    def _check_holding(self, held: Holding) -> None:
        witness = self._world.witness
        assert held.epoch >= witness.get("epoch", 0), f"the epoch fell to {held.epoch}"
        witness["epoch"] = held.epoch
        for checkpoint in held.checkpoints[:1]:
            for place in self._places if self._one_way else ():
                record = self._records.get(place.record)
                reached = record.reached.cut if record and record.reached else {}
                if place.file is None and not is_within(checkpoint.cut, reached):
                    reached = self._resumed(place)
                is_held = is_within(checkpoint.cut, reached)
                assert is_held, f"{checkpoint.name} is ahead of {place.record}, at {reached}"

    def _resumed(self, place: Place) -> Mapping[str, int]:
        """Return the resume point of a log's owner after a power cut.

        If the last frame is ahead of the record, an owner resumes at the frame's cut without
        another record.
        """
        topic, partition, _ = place.record.rsplit("/", 2)
        disk = SimDisk()
        held = {path: self._world.disk.peek(path) for path in self._world.disk.image()}
        disk.install({path: data for path, data in held.items() if data is not None})
        found = resumed_in(Topic.open(disk, topic), int(partition))
        return {} if found is None else found.cut

    @property
    def _committed(self) -> dict[str, int]:
        found: dict[str, int] = self._world.witness.setdefault("committed", {})
        return found

    def _names(self) -> Sequence[str]:
        if not self._in_store:
            return self._world.disk.list(self._manifest)
        start = f"{self._manifest}/"
        return sorted(
            name.removeprefix(start) for name in self._world.store.image() if name.startswith(start)
        )

    def _object(self, name: str) -> bytes | None:
        path = f"{self._manifest}/{name}"
        return self._world.store.image()[path] if self._in_store else self._world.disk.peek(path)


class _Peeking(SimDisk):
    """A disk that is read without effects."""

    def __init__(self, disk: SimDisk) -> None:
        super().__init__()
        self._disk = disk

    def read_bytes(self, path: str, *, length_max: int) -> bytes:
        data = self._disk.peek(path)
        if data is None:
            raise FileNotFoundError(path)
        if len(data) > length_max:
            raise LimitError(path)
        return data
