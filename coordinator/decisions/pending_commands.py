"""Pending commands: wait until a version contains them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordinator.decisions.commands import Command, is_done, refusal
from coordinator.decisions.instructions import Answer
from coordinator.decisions.limits import MS, Limits

if TYPE_CHECKING:
    from ripple.control.assignment import Assignment


class PendingCommands:
    """Commands by request.

    Invariants: each is answered once; a command that was answered as not done is not done later,
    except by a version that was being written then.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._asked: dict[str, tuple[Command, int]] = {}

    @property
    def commands(self) -> tuple[Command, ...]:
        """The commands to be done."""
        return tuple(command for command, _ in self._asked.values())

    def add(self, request: str, command: Command, now_ns: int) -> list[Answer]:
        """Add a command."""
        if len(self._asked) >= self._limits.commands_max:
            return [Answer(request, None, "too many commands wait (commands_max): try again")]
        self._asked[request] = (command, now_ns)
        return []

    def answers(self, now: Assignment) -> list[Answer]:
        """Answer the commands that a version has done, or that cannot be done."""
        found = []
        for request, (command, _) in list(self._asked.items()):
            refused = refusal(command, now)
            if refused is not None or is_done(command, now):
                del self._asked[request]
                found.append(Answer(request, None if refused else now.version, refused))
        return found

    def given_up(self, now_ns: int) -> list[Answer]:
        """Answer the commands that could not be done in time."""
        wait_ms = self._limits.command_wait_ms
        why = (
            f"not done within {wait_ms} ms (command_wait_ms): the store does not answer, or moves "
            "leave no room; a version that is being written may do it all the same"
        )
        late = [r for r, (_, at_ns) in self._asked.items() if now_ns - at_ns >= wait_ms * MS]
        for request in late:
            del self._asked[request]
        return [Answer(request, None, why) for request in late]

    def is_answered_by(self, after: Assignment, before: Assignment) -> bool:
        """Return whether a version carries out a pending command."""
        return any(
            is_done(command, after) and not is_done(command, before) for command in self.commands
        )
