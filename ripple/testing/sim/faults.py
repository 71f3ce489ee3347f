"""Faults and their times: a plan, drawn from a seed or given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ripple.core.errors import RippleError
from ripple.testing.sim.chance import Chance

if TYPE_CHECKING:
    from collections.abc import Iterable

# A kill loses the process; a power cut also loses unsynced data.
CRASHES = (
    "kill_before",
    "kill_after",
    "kill_torn",
    "power_before",
    "power_after",
    "power_torn",
)
_WHOLE = ("kill_before", "kill_after", "power_before", "power_after")

# Which faults can strike which effect.
FAULTS_OF: dict[str, tuple[str, ...]] = {
    "create": (*_WHOLE, "io_error", "disk_full"),
    "append": (*CRASHES, "io_error", "disk_full"),
    "truncate": (*_WHOLE, "io_error"),
    "sync": (*_WHOLE, "sync_failed"),
    "make_folder": (*_WHOLE, "io_error"),
    "rename": (*_WHOLE, "io_error"),
    "link": (*_WHOLE, "io_error"),
    "remove": (*_WHOLE, "io_error"),
    "remove_folder": (*_WHOLE, "io_error"),
    "sync_folder": (*_WHOLE, "sync_failed"),
    "read": ("io_error",),
    "store_put": (*_WHOLE, "store_refused", "store_unsent", "store_lost_reply", "store_slow"),
    "store_delete": (*_WHOLE, "store_refused", "store_unsent", "store_lost_reply", "store_slow"),
    "store_read": ("store_refused", "store_slow"),
}
KINDS = tuple(dict.fromkeys(kind for kinds in FAULTS_OF.values() for kind in kinds))
FAULTS_OF |= {
    "net_connect": (*_WHOLE, "net_refused", "net_cut"),
    "net_write": (*CRASHES, "net_reset", "net_vanish", "net_stall", "net_cut"),
    "broker_init": (*_WHOLE, "broker_refused", "broker_unsent", "broker_lost_reply"),
    "broker_send": (*_WHOLE, "broker_refused", "broker_unsent", "broker_lost_reply"),
    "broker_end": (*_WHOLE, "broker_refused", "broker_unsent", "broker_lost_reply", "broker_late"),
    "broker_remove": (*_WHOLE, "broker_refused", "broker_unsent", "broker_lost_reply"),
    "broker_make": (*_WHOLE, "broker_refused", "broker_unsent", "broker_lost_reply"),
    "broker_read": ("broker_refused",),
}
# Where there are many machines, each of which may die.
CLUSTER_KINDS = tuple(dict.fromkeys(kind for kinds in FAULTS_OF.values() for kind in kinds))

# How a power cut decides about unsynced bytes: by the fault's salt.
SALT_LOST, SALT_KEPT, SALT_MIXED = 0, 1, 2


@dataclass(frozen=True, slots=True, order=True)
class Fault:
    """A fault at an effect, counted from 1, of the ``life``-th incarnation, counted from 0.

    ``salt`` decides its details: how much of an append was written, which data a power cut left.
    """

    life: int
    effect: int
    kind: str
    salt: int = 0

    def __str__(self) -> str:
        return f"{self.life}.{self.effect}:{self.kind}:{self.salt}"

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Parse the text of ``str``. Raises ValueError."""
        place, kind, salt = text.split(":")
        life, effect = place.split(".")
        if kind not in CLUSTER_KINDS:
            raise ValueError(f"{kind!r} is no fault: one of {', '.join(CLUSTER_KINDS)}")
        return cls(int(life), int(effect), kind, int(salt))


@dataclass(frozen=True, slots=True, kw_only=True)
class Faults:
    """The faults of a random run.

    Each seed takes a random subset of ``kinds`` and its own rate: runs with few kinds get further
    before they fail and so reach states that runs with all of them never see. After ``lives_max``
    incarnations all faults end, and the scenario has to finish. ``rarer``: how many times as many
    effects lie between two faults, for scenarios that need many effects to come to work at all.
    """

    kinds: tuple[str, ...] = KINDS
    lives_max: int = 4
    rarer: int = 1


def is_expected(error: BaseException) -> bool:
    """Return whether a fault may end a process with this error."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_expected(part) for part in error.exceptions)
    return isinstance(error, OSError | RippleError)


class Injector(Protocol):
    """Answers at each effect whether a fault strikes it."""

    def at(self, life: int, effect: int, name: str) -> Fault | None:
        """Return the fault that strikes."""
        ...

    def healed(self, life: int) -> bool:
        """Return whether faults have ended from this incarnation on."""
        ...


class Drawn:
    """Faults drawn from a seed."""

    def __init__(self, seed: int, faults: Faults) -> None:
        self._chance = Chance(seed, "faults")
        self._lives_max = faults.lives_max
        self._kinds = {kind for kind in faults.kinds if self._chance.below(3)}
        self._distance = faults.rarer * (2 << self._chance.below(8))
        self._wait = 1 + self._chance.below(self._distance)

    def at(self, life: int, effect: int, name: str) -> Fault | None:
        self._wait -= 1
        if self._wait > 0:
            return None
        kinds = [kind for kind in FAULTS_OF[name] if kind in self._kinds]
        if not kinds:
            return None
        self._wait = 1 + self._chance.below(self._distance)
        return Fault(life, effect, self._chance.pick(kinds), self._chance.below(1000))

    def healed(self, life: int) -> bool:
        return life >= self._lives_max


class Planned:
    """Faults as listed: at most one an effect. A fault that does not fit its effect is passed."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self._faults = {(fault.life, fault.effect): fault for fault in faults}
        self._last = max((fault.life for fault in self._faults.values()), default=-1)

    def at(self, life: int, effect: int, name: str) -> Fault | None:
        fault = self._faults.get((life, effect))
        return fault if fault is not None and fault.kind in FAULTS_OF[name] else None

    def healed(self, life: int) -> bool:
        return life > self._last
