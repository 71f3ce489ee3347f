"""The seven states of a worker, and the literal table of its transitions; nothing else moves it.

Invariants: a worker is ready exactly while it is Active; Stopped is the end; a Failed one goes on
by recovering.
"""

from __future__ import annotations

from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from ripple.core.errors import RippleError

if TYPE_CHECKING:
    from collections.abc import Mapping


class WorkerError(RippleError):
    """A worker was asked for what its state forbids; nothing was changed."""


class State(Enum):
    """Where a worker stands."""

    STARTING = "Starting"  # boots, loads its configuration, looks for checkpoints
    ACTIVE = "Active"  # processes events
    DRAINING = "Draining"  # computes its partitions until others have them
    STOPPING = "Stopping"  # completes what nobody has taken, and stores it
    STOPPED = "Stopped"  # has ended in good order
    FAILED = "Failed"  # has crashed, or cannot go on
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

# Through which states a worker ends that is told to stop. One that is not ready yet has nothing to
# drain: it ends as it is, and its successor recovers.
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
        """Where it stands."""
        return self._state

    def go(self, to: State) -> None:
        """Go on to a state. Raises WorkerError where the table does not have it."""
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
        """What ``/ready`` answers: a status and a text."""
        return (200, "READY") if self.is_ready else (503, "NOT READY")

    @property
    def health_answer(self) -> tuple[int, str]:
        """What ``/health`` answers, for as long as anybody can: whatever the state is."""
        return 200, "OK"
