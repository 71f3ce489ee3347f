"""Number of files that the partitions of a process keep open, by their inputs and outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.assignment.stage_names import DIVIDING
from ripple.model.pipeline.stages import Transport
from ripple.model.pipeline.topology import outputs_of, stages_of, transport_into
from worker.engine.routes import dividing_stages
from worker.engine.stages import FIRST, name_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.control.assignment import Assignment
    from ripple.model.pipeline.plan import Plan

# A reader opens a segment, a writer a segment and its lock.
READER, WRITER = 1, 2
# The process itself: libraries, its log, connections, files opened for a moment.
RESERVE = 100


def needed(plan: Plan, assignment: Assignment, process: str, inputs: int) -> int:
    """Return how many files a process needs at most for its partitions.

    inputs: how many partitions all sources have.
    """
    counts = {stage.name: stage.partitions for stage in assignment.stages}
    first, has_divided = counts[FIRST], dividing_stages(counts)
    each = {}
    for name in [*counts][:has_divided]:  # at most: as if each read all inputs
        each[name] = READER * inputs // counts[name] + WRITER * first
        if name != DIVIDING:
            each[name] = (READER + WRITER * first) * -(-inputs // counts[name])
    each[FIRST] = READER * (inputs if has_divided else -(-inputs // first))
    each[FIRST] += WRITER * len(outputs_of(plan, 0))
    for stage in stages_of(plan)[1:] if len(counts) > 1 + has_divided else ():
        name = name_of(stage.number)
        each[name] = WRITER * len(outputs_of(plan, stage.number))
        if transport_into(plan, stage.number) is Transport.LOG:  # the first stage writes logs alone
            each[name] += READER * first
            each[FIRST] += WRITER * counts[name]
    own = [
        number
        for number, share in enumerate(assignment.shares)
        if process in (share.owner, share.next, share.former, share.standby)
    ]
    return sum(each[assignment.place_of(number)[0]] for number in own)


class Watcher:
    """Warns when a process has more partitions than its limit of open files allows."""

    def __init__(
        self, files: Callable[[], tuple[int, int] | None], say: Callable[[str], None]
    ) -> None:
        """Take a callback that returns open files and their limit; None if unknown."""
        self._files, self._say = files, say
        self._said = 0

    def given(self, need: int) -> None:
        """Compare the partitions' need with the limit; warn when that is new."""
        found = self._files()
        if found is None or need + RESERVE <= found[1] or need <= self._said:
            return
        self._said = need
        self._say(
            f"its partitions need about {need + RESERVE} open files, and this process may have "
            f"{found[1]}: raise the limit (ulimit -n, LimitNOFILE of systemd), or give the worker "
            "more processes or the cluster more workers, and each has fewer partitions"
        )
