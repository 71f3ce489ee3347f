"""The successive owners of a partition: fences stop them, seals end their epochs.

docs/seals.md has the protocol. A fence, ``epochs/EPOCH.fence``, announces an owner: no lower epoch
acknowledges any more. A seal, ``EPOCH.seal``, states the end of this epoch and its successor, and
repeats all earlier ones; so the newest seal alone gives every valid epoch.
"""

from __future__ import annotations

from bisect import bisect_right
from contextlib import closing, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ripple.core import sexp
from ripple.core.codec.crc import crc32c
from ripple.core.errors import LimitError
from ripple.storage.log.errors import LogDamagedError, StaleEpochError
from ripple.storage.log.segment import INDEX_SUFFIX, SEGMENT_SUFFIX, Segment, segments_in
from ripple.world.replacing import open_anew

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.storage.log.topic import Topic
    from ripple.world.ports import Disk

FORMAT = "1"
EPOCH_MAX = 9_999_999_999
SEAL_BYTES_MAX = 1 << 24

_FENCE, _LOCK, _SEAL, _TEMPORARY = ".fence", ".lock", ".seal", ".tmp"


class Begin(NamedTuple):
    """The first offset of an epoch."""

    epoch: int
    offset: int


class Epochs(NamedTuple):
    """The valid epochs, by offset.

    begins: ascending in both, the last one is in force. sealed: the highest epoch that a seal has
    ended, None if there is none.
    """

    begins: tuple[Begin, ...] = (Begin(0, 0),)
    sealed: int | None = None

    @property
    def newest(self) -> int:
        """The epoch in force."""
        return self.begins[-1].epoch

    def end_of(self, epoch: int) -> int | None:
        """Return the offset at which a later epoch begins, None if there is none."""
        at = bisect_right(self.begins, epoch, key=lambda begin: begin.epoch)
        return self.begins[at].offset if at < len(self.begins) else None

    def believed(self, found: Iterable[Segment]) -> list[Segment]:
        """Return the valid segments, ascending; the last one of an old epoch has an end."""
        by_epoch: dict[int, list[Segment]] = {}
        for one in sorted(found):
            by_epoch.setdefault(one.epoch, []).append(one)
        kept: list[Segment] = []
        ends = [*(begin.offset for begin in self.begins[1:]), None]
        for (epoch, first_offset), end in zip(self.begins, ends, strict=True):
            own = [
                one
                for one in by_epoch.get(epoch, ())
                if one.first_offset >= first_offset and (end is None or one.first_offset < end)
            ]
            if own:
                own[-1] = own[-1]._replace(end=end)
            kept += own
        return kept


class Listed(NamedTuple):
    """The content of a partition's folder, by the names of its files.

    segments: the valid ones, ascending. indexes: the first offsets of the index files of the epoch
    in force.
    """

    names: list[str]
    epochs: Epochs
    segments: list[Segment]
    indexes: list[int]

    @classmethod
    def of(cls, names: list[str], epochs: Epochs) -> Listed:
        """Interpret these names."""
        found = epochs.believed(segments_in(names, SEGMENT_SUFFIX))
        of_files = segments_in(names, INDEX_SUFFIX)
        indexes = [one.first_offset for one in of_files if one.epoch == epochs.newest]
        return cls(names, epochs, found, indexes)


class Listing:
    """A cached listing of a partition's folder, interpreted again when its names change.

    The names are enough: the newest seal never changes.
    """

    def __init__(self, disk: Disk, folder: str) -> None:
        self._disk = disk
        self._folder = folder
        self._found = Listed.of([], Epochs())

    def now(self) -> Listed:
        """Return the present content; raises LogDamagedError."""
        names = self._list()
        while names != self._found.names:
            epochs = None
            with suppress(FileNotFoundError):  # a later owner replaced it
                epochs = _epochs_among(self._disk, self._folder, names)
            # A listing may have a new name and lack an older one; this one began later.
            names = self._list()
            if epochs is not None and epochs.sealed == max(_numbers(names, _SEAL), default=None):
                self._found = Listed.of(names, epochs)
        return self._found

    def _list(self) -> list[str]:
        return self._disk.list(self._folder)


def read_epochs(disk: Disk, folder: str) -> Epochs:
    """Return the epochs of the partition in ``folder``; raises LogDamagedError."""
    return Listing(disk, folder).now().epochs


def segments(disk: Disk, folder: str) -> list[Segment]:
    """Return the valid segments in ``folder``, ascending; raises LogDamagedError."""
    return Listing(disk, folder).now().segments


def newest_fence(disk: Disk, folder: str) -> int:
    """Return the highest epoch with a fence, 0 if there is none."""
    return max(_numbers(disk.list(_epochs_folder(folder)), _FENCE), default=0)


def newest_owner(disk: Disk, folder: str) -> int:
    """Return the highest epoch of any known owner."""
    return max(newest_fence(disk, folder), read_epochs(disk, folder).newest)


def newest_owner_of(topic: Topic) -> int:
    """Return the highest epoch that an owner of any partition of a topic had, 0 for none."""
    folders = (topic.folder(partition) for partition in range(topic.partitions))
    return max(newest_owner(topic.disk, folder) for folder in folders)


def lock_path(folder: str, epoch: int) -> str:
    """Return the path of the lock that names the partition's owner for people."""
    return f"{_epochs_folder(folder)}/{epoch:010}{_LOCK}" if epoch else f"{folder}/lock"


def check_epoch(epoch: int) -> None:
    """Raise ValueError unless this is a possible epoch of an owner."""
    if not 1 <= epoch <= EPOCH_MAX:
        raise ValueError(f"an epoch is from 1 to {EPOCH_MAX}, not {epoch}")


def stale(folder: str, epoch: int, newest: int) -> StaleEpochError:
    """Return the error for an owner that was replaced."""
    return StaleEpochError(
        f"{folder}: the owner of epoch {epoch} was replaced by that of epoch {newest}: nothing "
        "that it writes is valid any more, and it must stop"
    )


def make_fence(disk: Disk, folder: str, epoch: int) -> None:
    """Stop owners of lower epochs from acknowledging anything; raises StaleEpochError."""
    newest = newest_owner(disk, folder)
    if newest >= epoch:
        raise _refused(folder, epoch, newest)
    try:
        disk.open(f"{_epochs_folder(folder)}/{epoch:010}{_FENCE}", exclusive=True).close()
    except FileExistsError:
        raise _refused(folder, epoch, epoch) from None


def make_folder(disk: Disk, folder: str) -> None:
    """Make the folder of the partition's fences."""
    disk.make_folder(_epochs_folder(folder))


def seal(disk: Disk, folder: str, ended: Epochs, begin: Begin, first_offset: int) -> bool:
    """End the epoch in force, durably; return False if another owner did.

    begin: the epoch that follows, whose first segment is durable. first_offset: of the log; epochs
    that ended before it, or without records, are left out.
    """
    begins = (*ended.begins, begin)
    begins = tuple(
        one
        for one, end in zip(begins, [one.offset for one in begins[1:]], strict=False)
        if one.offset < end and end > first_offset
    )
    text = sexp.dumps(
        [
            ["format", FORMAT],
            ["epochs", [[str(number) for number in one] for one in (*begins, begin)]],
        ]
    )
    temporary = f"{_epochs_folder(folder)}/{begin.epoch:010}{_TEMPORARY}"
    with closing(open_anew(disk, temporary, like="")) as file:
        file.append(f"{text}\ncrc32c {crc32c(text.encode()):08x}\n".encode())
        file.sync()
    is_mine = disk.link_absent(temporary, _seal_path(folder, ended.newest))
    disk.remove(temporary)
    if is_mine:
        disk.sync_folder(folder)
    return is_mine


def forget_before(disk: Disk, folder: str, epoch: int, sealed: int) -> None:
    """Remove the files that the durable seal of ``sealed`` and the fence of ``epoch`` replace."""
    fences = _epochs_folder(folder)
    for suffix in (_FENCE, _LOCK):
        for number in _numbers(disk.list(fences), suffix):
            if number < epoch:
                _remove(disk, f"{fences}/{number:010}{suffix}")
    for number in _numbers(disk.list(folder), _SEAL):
        if number < sealed:
            _remove(disk, _seal_path(folder, number))


def _remove(disk: Disk, path: str) -> None:
    with suppress(FileNotFoundError):
        disk.remove(path)


def _refused(folder: str, epoch: int, newest: int) -> StaleEpochError:
    return StaleEpochError(
        f"{folder}: an owner of epoch {epoch} cannot take over: one of epoch {newest} is there, "
        "and only a higher one replaces it"
    )


def _epochs_folder(folder: str) -> str:
    return f"{folder}/epochs"


def _seal_path(folder: str, epoch: int) -> str:
    return f"{folder}/{epoch:010}{_SEAL}"


def _numbers(names: Iterable[str], suffix: str) -> list[int]:
    stems = [name.removesuffix(suffix) for name in names if name.endswith(suffix)]
    return [int(stem) for stem in stems if len(stem) == 10 and stem.isascii() and stem.isdigit()]


def _epochs_among(disk: Disk, folder: str, names: list[str]) -> Epochs:
    """Read the newest seal; raises FileNotFoundError if it has gone since."""
    seals = _numbers(names, _SEAL)
    if not seals:
        return Epochs()
    path = _seal_path(folder, max(seals))
    try:
        data = disk.read_bytes(path, length_max=SEAL_BYTES_MAX)
    except LimitError as error:
        raise LogDamagedError(path, 0, 0, f"not a seal: {error}") from error
    except IsADirectoryError:
        raise LogDamagedError(path, 0, 0, "a folder stands in its place: move it away") from None
    text, _, checksum = data.decode("utf-8", "replace").rstrip("\n").rpartition("\n")
    if checksum != f"crc32c {crc32c(text.encode()):08x}":
        raise LogDamagedError(path, 0, 0, "the seal does not have its checksum")
    begins = _begins_in(text)
    if begins is None:
        raise LogDamagedError(path, 0, 0, "the seal is of a later release: upgrade this one")
    return Epochs(begins, max(seals))


# Cached: readers need the epochs again and again, and each new owner makes the seal longer.
@lru_cache(maxsize=64)
def _begins_in(text: str) -> tuple[Begin, ...] | None:
    match sexp.loads(text):
        case [["format", "1"], ["epochs", [*begins]]]:
            return tuple(Begin(int(one[0]), int(one[1])) for one in begins)  # type: ignore[arg-type]  # the checksum was verified
    return None
