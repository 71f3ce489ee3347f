"""The contents of a simulated file: durable, written, and after a power cut."""

from __future__ import annotations

from ripple.testing.sim.chance import Chance
from ripple.testing.sim.faults import SALT_KEPT, SALT_LOST, SALT_MIXED

# Smaller than any real page or sector, so that small files tear too.
PAGE_BYTES = 64


class Fate:
    """Decides which unsynced data survive: none, all, or some."""

    def __init__(self, salt: int) -> None:
        self.mixed = salt not in (SALT_LOST, SALT_KEPT)
        self._kept = salt == SALT_KEPT
        self._chance = Chance(salt, "fate")

    def survives(self) -> bool:
        """Return whether one thing survives."""
        return self._chance.flip() if self.mixed else self._kept

    def share(self, n: int) -> int:
        """Return how many of ``n`` things in a row survive."""
        return self._chance.below(n + 1) if self.mixed else n * self._kept


class Contents:
    """The bytes of a file.

    Invariant: applying all of ``_unsynced`` to the durable bytes gives ``data``, unless a sync has
    failed: the bytes that it lost count as written, though only ``data`` has them.
    """

    __slots__ = ("_durable", "_unsynced", "data")

    def __init__(self, durable: bytes | bytearray = b"") -> None:
        self.data = bytearray(durable)
        self._durable = bytes(durable)
        self._unsynced: list[tuple[int, bytes] | int] = []  # a write and where, or a size cut to

    @property
    def durable(self) -> bytes:
        """Its durable bytes."""
        return self._durable

    def copy(self) -> Contents:
        """Return the same contents for another incarnation."""
        other = Contents(self._durable)
        other.data[:] = self.data
        other._unsynced = list(self._unsynced)
        return other

    def append(self, data: bytes) -> None:
        """Write at the end."""
        self._unsynced.append((len(self.data), data))
        self.data += data

    def truncate(self, size: int) -> None:
        """Cut to ``size`` bytes."""
        del self.data[size:]
        self._unsynced.append(size)

    def sync(self) -> None:
        """Make written bytes durable."""
        if self._unsynced:
            self._durable = bytes(self._applied(self._unsynced))
            self._unsynced.clear()

    def damage(self, bit: int) -> None:
        """Flip one bit, durably."""
        self.data[bit // 8] ^= 1 << bit % 8
        self._durable = bytes(self.data)
        self._unsynced.clear()

    def sync_in_part(self, chance: Chance) -> None:
        """Make some of it durable, and take all of it for durable: a sync that failed."""
        self._durable = bytes(self.after_power_cut(Fate(SALT_MIXED + chance.below(1000))))
        self._unsynced.clear()

    def after_power_cut(self, fate: Fate) -> bytearray:
        """Return the remains: whole writes up to some point, part of one, pages of zeros."""
        survived = self._unsynced[: fate.share(len(self._unsynced))]
        found = self._applied(survived)
        if fate.mixed:
            cuts = [operation for operation in survived if isinstance(operation, int)]
            safe = min([len(self._durable), len(found), *cuts])
            del found[safe + fate.share(len(found) - safe) :]
            for start in range(safe, len(found), PAGE_BYTES):
                end = min(start + PAGE_BYTES, len(found))
                # Mostly a page is there: else no long file ever survives.
                if fate.share(3) == 0:
                    found[start:end] = bytes(end - start)
        return found

    def _applied(self, operations: list[tuple[int, bytes] | int]) -> bytearray:
        found = bytearray(self._durable)
        for operation in operations:
            if isinstance(operation, int):
                del found[operation:]
            else:
                offset, data = operation
                found += bytes(max(0, offset - len(found)))
                found[offset : offset + len(data)] = data
        return found
