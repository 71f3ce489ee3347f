"""Recovery by replay: from a restored state to the cut that the outputs hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.inputs import Signal
from ripple.core import cut as cuts
from ripple.core.events import Replaying
from ripple.engine.snapshots.snapshot import SnapshotError

if TYPE_CHECKING:
    from ripple.core.cut import Cut
    from ripple.core.events import Restored
    from ripple.storage.checkpoint import Checkpoint
    from ripple.task.durable_run import DurableRun
    from ripple.task.durable_state import Opened
    from ripple.task.record_intake import RecordIntake


class Replay:
    """Reads records before the outputs' cuts again, from a log. See Recovery.

    Its changes are muted for the outputs that hold them.
    """

    def __init__(self, opened: Opened, intake: RecordIntake, *, has_changed: bool) -> None:
        """has_changed: whether outputs show rows of other code, whose notes must be retained."""
        self._opened = opened
        self._intake = intake
        self._has_changed = has_changed
        self._spec, self._context = opened.claimed.spec, opened.claimed.context

    async def run(self, durable: DurableRun) -> int | None:
        """Replay to one stop after the other; return how many records, None if stopped."""
        counters = durable.live.engine.counters
        before = counters.consumed
        if self._is_first_of_code(durable):
            # Or a later task could find only state of the code before, once its outputs reach that.
            await durable.complete_checkpoint()
        other = self._of_other_code(durable)
        stops = self._opened.outputs.stops
        for stop in stops if other is None else cuts.in_order([*stops, other.cut]):
            await self._spec.inputs.check(stop, {})
            if not await self._replay_to(stop, durable, may_commit=other is None):
                return None
            if other is not None and dict(stop) == dict(other.cut):
                _compare_refused(other, counters.dead_lettered)
                other = None
        return counters.consumed - before

    def _of_other_code(self, durable: DurableRun) -> Checkpoint | None:
        """Return the newest checkpoint of other code, of a recomputed first stage.

        Later stages hold rows of the records that counted then, whether an output of this one tells
        so or not.
        """
        if not self._spec.staged or self._has_changed:
            return None
        # Further code may have begun since, and was not compared.
        listed, code = self._opened.claimed.listed, self._spec.plan.topology_hash
        others, here = (one for one in listed if one.topology_hash != code), durable.live.engine.cut
        return next((one for one in others if not cuts.is_within(one.cut, here)), None)

    def _is_first_of_code(self, durable: DurableRun) -> bool:
        """Tell whether state of other code is there alone, and all is computed from the start."""
        opened = self._opened
        listed, code = opened.claimed.listed, self._spec.plan.topology_hash
        is_at_start = durable.live.engine.cut == dict(opened.start)
        is_other = bool(listed) and listed[0].topology_hash != code
        is_first = is_other and is_at_start and not self._has_changed
        return is_first and opened.claimed.state.world.guards("first_of_code")

    async def resume(self, durable: DurableRun, restored: Restored) -> None:
        """Open the inputs where the outputs are."""
        opened, cut = self._opened, durable.live.engine.cut
        await self._spec.inputs.open(cut, self._context.settings.batch_rows)
        if opened.outputs.has_others:
            await durable.commit_restored()
            await opened.outputs.rest(durable.live.engine)
        # A later task must find the state of this code, or where the beginning was; or it may be
        # killed like the last one, during the first stabilization.
        if (
            self._has_changed
            or (any(opened.start.values()) and opened.start == cut)
            or (restored.events and opened.in_flight.was_killed_stabilizing)
        ):
            await durable.store()
        opened.place.mend()

    async def _replay_to(self, stop: Cut, durable: DurableRun, *, may_commit: bool) -> bool:
        """Go to ``stop``: at once while no output takes changes, else in the steps of a run.

        Views with windows are stabilized on the way, so that past windows are freed as in the
        repeated run; and so are outputs of events, which hold them until then.

        may_commit: whether the code is known to fit the committed outputs.
        """
        live, inputs, outputs = durable.live, self._spec.inputs, self._opened.outputs
        plan, settings, stops = self._spec.plan, self._context.settings, self._context.stop
        is_shown = outputs.is_behind
        frees = plan.frees_rows
        rows = settings.batch_rows if is_shown else settings.rows_per_replay_step(plan)
        await inputs.open(live.engine.cut, rows, stop)
        while (found := inputs.next(live.engine.cut)) is not Signal.ENDED:
            if found is Signal.WAITING:
                if stops():
                    return False
                await inputs.more()
                continue
            await self._intake.apply(*found)
            if is_shown or frees:
                await self._intake.stabilize()
            may_store = may_commit and not (self._has_changed or outputs.is_unfinished)
            await durable.keep_replay(self._intake.stabilize if may_store else None)
            self._intake.watch()
            self._context.emit(Replaying(live.engine.cut, stop))
            await durable.clock.sleep(0)
            if stops():
                return False
        if not live.is_stabilized:
            await self._intake.stabilize()
        return True


def _compare_refused(other: Checkpoint, refused: int) -> None:
    """Raise SnapshotError where earlier code counted or refused other records."""
    before = other.counters["dead_lettered"]
    if refused != before:
        raise SnapshotError(
            f"{refused} records up to {cuts.text(other.cut)} are dead letters, and {before} were "
            f"with the code of checkpoint {other.name}: later stages hold rows of the others. "
            "Go back to the code before; or put a filter or a when() before the step that refuses "
            "them, and give a sink of events there another name; or name another store and other "
            "outputs"
        )
