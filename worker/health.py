"""The health of a partition, as an engine process reports it."""

from __future__ import annotations

from dataclasses import dataclass

from ripple.control.assignment.report import Seconds


@dataclass(frozen=True, slots=True)
class TaskHealth:
    """Health of a partition in this process.

    is_live: owned, and caught up. behind: commits that a standby lacks; None for other roles, or if
    unknown. failure: the last error; None if it makes progress. events, rows_out, checkpoints:
    applied, written and stored by its tasks in this process. is_spent: its owner has no epoch left
    to try. backlog_s: since it was at the end of its input. debt_s: since its checkpoint is older
    than its last commit.
    """

    is_live: bool = False
    behind: int | None = None
    failure: str | None = None
    epoch: int | None = None
    events: int = 0
    rows_out: int = 0
    checkpoints: int = 0
    is_spent: bool = False
    backlog_s: Seconds = 0.0
    debt_s: Seconds = 0.0

    @property
    def has_state(self) -> bool:
        """Whether it is owned or a standby, with its state restored."""
        return self.is_live or self.behind is not None
