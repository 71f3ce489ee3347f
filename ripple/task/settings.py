"""Settings of a task: how often it commits and stores checkpoints, and the size of its steps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import LimitError
from ripple.core.frozen import frozen
from ripple.model.window.spec import windows_per_event

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.core.cut import Cut
    from ripple.model.pipeline.plan import Plan
    from ripple.task.replay_debts import ReplayDebt

BATCH_ROWS = 1000
CHECKPOINT_INTERVAL = "10s"
KEEP = 3
"""Of runs, where nothing else is asked for: see ``Settings``."""
# Rows times windows that are applied at once without being noticed: a few megabytes.
REPLAY_WINDOWS = 1 << 17
# A hasty pace begins at this part of the whole one: milliseconds in place of seconds.
HASTE = 1 << 10
_SECOND_NS = 1_000_000_000


@frozen
class Settings:
    """The settings of a task; none of them can change a result.

    batch_rows: offsets between two cuts, so it does decide which intermediate values are written.
    replay_rows: rows applied at once where nothing is written; more would leave the cache. Fewer
    where each is in many windows: see ``rows_per_replay_step``.
    commit_batches, checkpoint_batches: commit and store a checkpoint after so many batches, 0 to go
    by the clock alone. checkpoint_debt_ns: store one as well once the work since the last took so
    long, for a recovery would do it again; 0 for never.
    commit_ahead_rows: while a commit is under way, rows that may be written and not be committed
    before it is waited for.
    snapshot_rows: rows of state that are copied between two batches while a checkpoint is made.
    turn_ms: how long a task works before others on the same event loop come to their turn: the
    storing of checkpoints, other partitions. One batch is not divided.
    keep: checkpoints that are not deleted.
    """

    batch_rows: int = BATCH_ROWS
    replay_rows: int = 1 << 14
    commit_interval_ns: int = _SECOND_NS
    commit_batches: int = 0
    commit_ahead_rows: int = 1 << 17
    checkpoint_interval_ns: int = 10 * _SECOND_NS
    checkpoint_batches: int = 0
    checkpoint_debt_ns: int = 0
    snapshot_rows: int = 1 << 14
    turn_ms: int = 10
    keep: int = KEEP

    def __post_init__(self) -> None:
        """Raise LimitError for numbers that cannot be."""
        for name in ("batch_rows", "replay_rows", "snapshot_rows", "keep"):
            if getattr(self, name) < 1:
                raise LimitError(f"{name} must be 1 or more, not {getattr(self, name)}")

    def rows_per_replay_step(self, plan: Plan) -> int:
        """Return how many rows to apply at once where nothing is written.

        Applying takes memory for each window that a row is in: no more of it than the run took
        that is repeated, or than does not matter.
        """
        found = [fold.window for fold in plan.folds if fold.window is not None]
        windows = max((windows_per_event(window.assigner) for window in found), default=1)
        return min(self.replay_rows, max(self.batch_rows, REPLAY_WINDOWS // windows))


class Pace:
    """A timer: due again after so many batches or so much time.

    A hasty one begins at a small part of that, which doubles each time: a process that is killed
    over and over, after any time, makes progress in each of its tasks.
    """

    def __init__(
        self, interval_ns: int, batches: int, now_ns: int, *, is_hasty: bool = False
    ) -> None:
        self._interval_ns = interval_ns
        self._batches = batches
        self._part = HASTE if is_hasty else 1
        self._since_ns = now_ns
        self._count = 0

    def begin(self, now_ns: int) -> None:
        """Count from now."""
        self._part = max(1, self._part // 2)
        self._since_ns = now_ns
        self._count = 0

    def due_in_s(self, now_ns: int) -> float | None:
        """Return the seconds until it is due, at least 0; None if batches alone decide."""
        if self._batches:
            return None
        return max(0, self._since_ns + self._interval_ns // self._part - now_ns) / _SECOND_NS

    def is_due(self, now_ns: int) -> bool:
        """Count a batch and return whether it is time."""
        self._count += 1
        if self._batches:
            return self._count >= self._batches // self._part
        return now_ns - self._since_ns >= self._interval_ns // self._part


class CommitPace(Pace):
    """The timer of commits: the first changes, and the first after an idle time, are due at once.

    cut: of the commit from which the time to the next one is counted.
    """

    def __init__(
        self,
        interval_ns: int,
        batches: int,
        now_ns: int,
        cut: Cut | None,
        *,
        is_hasty: bool = False,
    ) -> None:
        super().__init__(interval_ns, batches, now_ns - interval_ns, is_hasty=is_hasty)
        self.cut = cut

    def begin_at(self, cut: Cut, now_ns: int) -> None:
        """Count from now, unless there is nothing new to commit."""
        if cut != self.cut:
            self.cut = cut
            self.begin(now_ns)


class StorePace(Pace):
    """The timer of checkpoints, which are due as well once so much work is in none.

    That is the partition's own work, or that of all partitions of its process: see ReplayDebts.
    """

    def __init__(
        self,
        settings: Settings,
        now_ns: int,
        work_ns: Callable[[], int],
        *,
        is_hasty: bool = False,
        debt: ReplayDebt | None = None,
    ) -> None:
        """Count from now.

        work_ns: how long all work took until now. debt: the partition's among those of its process.
        """
        super().__init__(
            settings.checkpoint_interval_ns, settings.checkpoint_batches, now_ns, is_hasty=is_hasty
        )
        self._debt_ns = settings.checkpoint_debt_ns
        self._work_ns = work_ns
        self._stored_ns = work_ns()
        self._debt = debt

    def begin(self, now_ns: int) -> None:
        """Count from now."""
        super().begin(now_ns)
        self._stored_ns = self._work_ns()
        if self._debt is not None:
            self._debt.begin()

    def end(self) -> None:
        """Take part in the debts of the process no more."""
        if self._debt is not None:
            self._debt.end()

    def is_due(self, now_ns: int) -> bool:
        """Count a batch and return whether it is time, or the debt is too large."""
        is_due = super().is_due(now_ns)
        owed_ns = self._work_ns() - self._stored_ns
        if self._debt is not None:
            self._debt.owe(owed_ns)
            is_due = is_due or self._debt.is_called
        return is_due or 0 < self._debt_ns <= owed_ns
