"""Instructions of a coordinator's decisions. Any may fail, or be done twice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from coordinator.decisions.views import View
    from ripple.control.assignment import Assignment
    from ripple.control.assignment.bounds import Who


@dataclass(frozen=True, slots=True)
class Propose:
    """Add a version to the chain, read the chain, and report the end of the proposal."""

    assignment: Assignment


@dataclass(frozen=True, slots=True)
class ReadChain:
    """Read the chain: a newer version is known elsewhere."""


@dataclass(frozen=True, slots=True)
class Announce:
    """Announce a version to every worker; they obey the chain, not the message."""

    assignment: Assignment


@dataclass(frozen=True, slots=True)
class Refuse:
    """Tell a worker that it cannot join, and why."""

    nonce: str
    reason: str


@dataclass(frozen=True, slots=True)
class Postpone:
    """Tell a worker that it may join later, and why."""

    nonce: str
    wait_ms: int
    reason: str


@dataclass(frozen=True, slots=True)
class Evict:
    """Tell a worker that it is no member: it drops its partitions, and may join anew."""

    who: Who
    reason: str


@dataclass(frozen=True, slots=True)
class TriggerCheckpoint:
    """Tell a worker to store checkpoints, without waiting."""

    who: Who


@dataclass(frozen=True, slots=True)
class ReadViews:
    """Read the views of all replicas from the store."""


@dataclass(frozen=True, slots=True)
class WriteView:
    """Put this view into the store, under its replica and number; earlier ones may be deleted."""

    view: View


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer a command: done as of a version, or refused."""

    request: str
    version: int | None
    refusal: str | None = None


Instruction: TypeAlias = (
    "Propose | ReadChain | Announce | Refuse | Postpone | Evict | TriggerCheckpoint | ReadViews "
    "| WriteView | Answer"
)
