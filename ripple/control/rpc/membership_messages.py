"""Messages between workers and coordinators: hints, which may come twice, late or never."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ripple.control.assignment import Candidate, Report
from ripple.control.assignment.bounds import Name, Reason, Slot, Who

MISFIT = "does not fit this cluster"  # in reasons of refusals: waiting does not help
FAILED = "and is tried again: "  # of a partition, before the reason


@dataclass(frozen=True, slots=True)
class Register:
    """A worker asks to join, again with each heartbeat until it has joined."""

    candidate: Candidate


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A member's heartbeat, with its report."""

    who: Who
    report: Report


@dataclass(frozen=True, slots=True)
class Exited:
    """A member's process, in its ``start``-th start from 0, has ended; it is being restarted."""

    who: Who
    slot: Slot
    start: int


@dataclass(frozen=True, slots=True)
class Draining:
    """A member is to stop, and asks that its partitions move away."""

    who: Who
    reason: Reason


@dataclass(frozen=True, slots=True)
class Left:
    """A member has left, and owns nothing any more."""

    who: Who


@dataclass(frozen=True, slots=True)
class Checkpointed:
    """A member has stored its checkpoints."""

    who: Who


@dataclass(frozen=True, slots=True)
class Present:
    """A worker that does not ask to join yet, but wants to hear of versions."""


WorkerMessage: TypeAlias = (
    "Register | Heartbeat | Exited | Draining | Left | Checkpointed | Present"
)


@dataclass(frozen=True, slots=True)
class Announced:
    """The newest version that a coordinator knows; its content is in the chain."""

    version: int


@dataclass(frozen=True, slots=True)
class Refused:
    """A worker cannot join."""

    nonce: Name
    reason: Reason


@dataclass(frozen=True, slots=True)
class Postponed:
    """A worker may join later."""

    nonce: Name
    wait_ms: int
    reason: Reason


@dataclass(frozen=True, slots=True)
class Evicted:
    """A worker is no member: it drops its partitions, and may join anew."""

    who: Who
    reason: Reason


@dataclass(frozen=True, slots=True)
class StoreCheckpoints:
    """A worker is to store checkpoints, without waiting."""

    who: Who


CoordinatorMessage: TypeAlias = "Announced | Refused | Postponed | Evicted | StoreCheckpoints"
