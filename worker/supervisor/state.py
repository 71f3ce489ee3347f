"""The seven states of a worker, and the literal table of their transitions.

Invariants: a worker is ready exactly while it is Active; Stopped is the end; a Failed worker
resumes by recovering.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from collections.abc import Mapping


class WorkerError(RippleError):
    """A worker was asked for a forbidden transition; nothing was changed."""


class State(Enum):
    """State of a worker."""

    STARTING = "Starting"  # boots, loads its configuration, looks for checkpoints
    ACTIVE = "Active"  # processes events
    DRAINING = "Draining"  # computes its partitions until other workers have them
    STOPPING = "Stopping"  # completes and stores the partitions that remain
    STOPPED = "Stopped"  # has stopped gracefully
    FAILED = "Failed"  # has crashed, or cannot continue
    RECOVERING = "Recovering"  # loads checkpoints and replays events


TRANSITIONS: Mapping[State, frozenset[State]] = MappingProxyType(
    {
        State.STARTING: frozenset({State.ACTIVE, State.FAILED, State.RECOVERING}),
        State.ACTIVE: frozenset({State.DRAINING, State.FAILED, State.STOPPING}),
        State.DRAINING: frozenset({State.ACTIVE, State.FAILED, State.STOPPING}),
        State.STOPPING: frozenset({State.STOPPED, State.FAILED}),
        State.STOPPED: frozenset(),
        State.FAILED: frozenset({State.RECOVERING}),
        State.RECOVERING: frozenset({State.ACTIVE, State.FAILED}),
    }
)

# The states through which a worker ends that is told to stop. One that is not ready yet has nothing
# to drain: it ends as it is, and its successor recovers.
STOP_PATHS: Mapping[State, tuple[State, ...]] = MappingProxyType(
    {
        State.STARTING: (State.FAILED,),
        State.ACTIVE: (State.STOPPING, State.STOPPED),
        State.DRAINING: (State.STOPPING, State.STOPPED),
        State.STOPPING: (State.STOPPED,),
        State.STOPPED: (),
        State.FAILED: (),
        State.RECOVERING: (State.FAILED,),
    }
)


class Lifecycle:
    """The state of one worker."""

    def __init__(self, worker_id: str) -> None:
        self.worker_id = worker_id
        self._state = State.STARTING

    @property
    def state(self) -> State:
        """The present state."""
        return self._state

    def go(self, to: State) -> None:
        """Change to a state. Raises WorkerError if the table lacks the transition."""
        allowed = TRANSITIONS[self._state]
        if to not in allowed:
            names = ", ".join(sorted(state.value for state in allowed)) or "nowhere"
            raise WorkerError(
                f"Invalid state transition (worker_id {self.worker_id}) (from {self._state.value}) "
                f"(to_ {to.value}): from {self._state.value} it goes to {names}"
            )
        self._state = to

    @property
    def is_ready(self) -> bool:
        """Whether it processes events."""
        return self._state is State.ACTIVE

    @property
    def ready_answer(self) -> tuple[int, str]:
        """The answer of ``/ready``: a status and a text."""
        return (200, "READY") if self.is_ready else (503, "NOT READY")

    @property
    def health_answer(self) -> tuple[int, str]:
        """The answer of ``/health``: 200 in every state."""
        return 200, "OK"
