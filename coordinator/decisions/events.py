"""Events that a coordinator handles: messages of workers among them, twice, late, or never."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from coordinator.decisions.commands import Command
    from coordinator.decisions.views import View
    from ripple.control.assignment import Assignment
    from ripple.control.assignment.bounds import Who
    from ripple.control.rpc.membership_messages import (
        Checkpointed,
        Exited,
        Heartbeat,
        Left,
        Register,
    )


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """A worker's stream has ended before it has joined."""

    nonce: str


@dataclass(frozen=True, slots=True)
class StreamEnded:
    """A member's stream has ended."""

    who: Who


@dataclass(frozen=True, slots=True)
class Ticked:
    """Time has passed; comes several times a second."""


@dataclass(frozen=True, slots=True)
class ViewHeard:
    """Another replica has answered with its view."""

    view: View


@dataclass(frozen=True, slots=True)
class ViewsRead:
    """The views in the store were read, all of them."""

    views: tuple[View, ...]


@dataclass(frozen=True, slots=True)
class ViewWritten:
    """The store has accepted this replica's view."""


@dataclass(frozen=True, slots=True)
class ChainRead:
    """The chain was read. assignment: its newest readable version, None if there is none.

    newest_number: of its newest version, readable or not; 0 if there is none.
    """

    assignment: Assignment | None
    newest_number: int


@dataclass(frozen=True, slots=True)
class ProposalEnded:
    """A proposal has ended, won or not, and the chain was read afterwards if possible."""


@dataclass(frozen=True, slots=True)
class Commanded:
    """An operator's command; ``request`` identifies it in the answer."""

    request: str
    command: Command


Event: TypeAlias = (
    "Register | Withdrawn | Heartbeat | Exited | StreamEnded | Left | Checkpointed "
    "| Ticked | ViewHeard | ViewsRead | ViewWritten | ChainRead | ProposalEnded | Commanded"
)
