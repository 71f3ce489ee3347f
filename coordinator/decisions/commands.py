"""Commands of operators to the cluster: freeze, pin, drain, move, each with a reason.

A command is done once a version of the assignment contains it. Until then it is part of every
proposal of its coordinator; giving it twice changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, TypeAlias

from ripple.control.assignment import Assignment, Phase, Pin, worker_of
from ripple.control.assignment.bounds import AtMost, Partition, WorkerId
from ripple.core.access import Right

if TYPE_CHECKING:
    from collections.abc import Mapping

REASON_LENGTH_MAX = 200
Reason: TypeAlias = Annotated[str, AtMost(REASON_LENGTH_MAX)]


@dataclass(frozen=True, slots=True)
class Freeze:
    """Freeze the assignment: no joins, evictions or moves."""

    reason: Reason

    def __str__(self) -> str:
        return f"frozen: {self.reason}"


@dataclass(frozen=True, slots=True)
class Unfreeze:
    """End a freeze."""

    reason: Reason

    def __str__(self) -> str:
        return f"no longer frozen: {self.reason}"


@dataclass(frozen=True, slots=True)
class PinTo:
    """Pin a partition to a worker for as long as that is a member."""

    partition: Partition
    worker: WorkerId
    reason: Reason

    def __str__(self) -> str:
        return f"partition {self.partition} is pinned to {self.worker}: {self.reason}"


@dataclass(frozen=True, slots=True)
class Unpin:
    """Remove a pin."""

    partition: Partition
    reason: Reason

    def __str__(self) -> str:
        return f"partition {self.partition} is no longer pinned: {self.reason}"


@dataclass(frozen=True, slots=True)
class Drain:
    """Move a worker's partitions away and assign it no more. Workers that stop ask for it too."""

    worker: WorkerId
    reason: Reason

    def __str__(self) -> str:
        return f"{self.worker} is drained: {self.reason}"


@dataclass(frozen=True, slots=True)
class Undrain:
    """Allow assignments to a drained worker again."""

    worker: WorkerId
    reason: Reason

    def __str__(self) -> str:
        return f"{self.worker} is no longer drained: {self.reason}"


@dataclass(frozen=True, slots=True)
class Move:
    """Move a partition to a worker; another comes back in exchange where balance asks for it."""

    partition: Partition
    worker: WorkerId
    reason: Reason

    def __str__(self) -> str:
        return f"partition {self.partition} moves to {self.worker}: {self.reason}"


Command: TypeAlias = "Freeze | Unfreeze | PinTo | Unpin | Drain | Undrain | Move"


def right_of(command: Command) -> Right:
    """Return the role that a command takes: a freeze of everything takes more than a move."""
    is_of_all = isinstance(command, (Freeze, Unfreeze))
    return Right.ADMINISTER if is_of_all else Right.OPERATE


def refusal(command: Command, now: Assignment) -> str | None:
    """Return why a command cannot be followed, None if it can."""
    if not 0 < len(command.reason.strip()) <= REASON_LENGTH_MAX:
        return (
            f"a command needs a reason of at most {REASON_LENGTH_MAX} characters: others will ask"
        )
    if isinstance(command, Freeze) and now.version == 0:
        return "no worker has joined yet: there is nothing to freeze"
    partition = getattr(command, "partition", 0)
    if not 0 <= partition < len(now.shares):
        return f"there is no partition {partition}: they are 0 to {len(now.shares) - 1}"
    worker = getattr(command, "worker", None)
    if worker is not None and worker not in now.by_id:
        return f"there is no worker {worker}: there are {', '.join(now.by_id) or 'none'}"
    if isinstance(command, Move):
        return _no_move(command, now)
    return None


def _no_move(command: Move, now: Assignment) -> str | None:
    if now.frozen is not None:
        return f"the assignment is frozen ({now.frozen}): unfreeze it first"
    pin = _pin_of(now, command.partition)
    if pin is not None and pin.worker != command.worker:
        return f"partition {command.partition} is pinned to {pin.worker}: {pin.reason}"
    if now.by_id[command.worker].is_leaving:
        return f"{command.worker} is drained: partitions move away from it"
    return None


def is_done(command: Command, now: Assignment) -> bool:
    """Return whether a version contains the command."""
    match command:
        case Freeze(reason):
            return now.frozen == reason
        case Unfreeze():
            return now.frozen is None
        case PinTo(partition, worker, reason):
            return Pin(partition, worker, reason) in now.pins
        case Unpin(partition):
            return _pin_of(now, partition) is None
        case Drain(worker):
            return worker not in now.by_id or now.by_id[worker].is_leaving
        case Undrain(worker):
            return worker in now.by_id and not now.by_id[worker].is_leaving
        case Move(partition, worker):
            # An older version may have fewer partitions, or none yet.
            target = now.shares[partition].target if partition < len(now.shares) else None
            return target is not None and worker_of(target) == worker


def obeyed(now: Assignment, command: Command) -> Assignment:
    """Return ``now`` with a command applied, except moves, which take several versions."""
    match command:
        case Freeze(reason):
            return replace(now, frozen=reason)
        case Unfreeze():
            return replace(now, frozen=None)
        case PinTo(partition, worker, reason):
            pins = {pin.partition: pin for pin in now.pins} | {
                partition: Pin(partition, worker, reason)
            }
            return replace(now, pins=_sorted(pins))
        case Unpin(partition):
            pins = {pin.partition: pin for pin in now.pins if pin.partition != partition}
            return replace(now, pins=_sorted(pins))
        case Drain(worker) | Undrain(worker):
            is_leaving = isinstance(command, Drain)
            members = (
                replace(member, is_leaving=is_leaving) if member.id == worker else member
                for member in now.members
            )
            return now.with_members(members)
        case Move():
            return now


def movable(now: Assignment, command: Move) -> bool:
    """Return whether a move can begin: the partition is not moving already."""
    share = now.shares[command.partition]
    return share.phase is Phase.OWNED and share.owner is not None


def _pin_of(now: Assignment, partition: int) -> Pin | None:
    return next((pin for pin in now.pins if pin.partition == partition), None)


def _sorted(pins: Mapping[int, Pin]) -> tuple[Pin, ...]:
    return tuple(pins[partition] for partition in sorted(pins))
