"""Replay from a restored state to the cut that the outputs hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ripple.connectors.inputs import Signal
from ripple.core.events import Replaying

if TYPE_CHECKING:
    from ripple.core.cut import Cut
    from ripple.task.durable_run import DurableRun


class CatchUp(Protocol):
    """A strategy of replay; its changes are muted for the outputs that hold them already."""

    async def run(self, durable: DurableRun) -> bool:
        """Reach all of ``kept.live.outputs.stops``; return False if stopped before."""
        ...


class Replay:
    """Reads again, from a log that still has it, what the outputs already hold."""

    async def run(self, durable: DurableRun) -> bool:
        """Replay to one stop after the other; see CatchUp."""
        for stop in durable.live.outputs.stops:
            await durable.parts.inputs.check(stop, {})
            if not await self._replay_to(stop, durable):
                return False
        return True

    async def _replay_to(self, stop: Cut, durable: DurableRun) -> bool:
        """Go to ``stop``: at once while no output takes changes, else in the steps of a run.

        Views with windows are stabilized on the way, so that past windows are freed as they were in
        the run that is repeated.
        """
        live, parts = durable.live, durable.parts
        plan, settings = parts.plan, parts.settings
        is_shown = live.outputs.is_behind
        frees = plan.folds[0].window is not None
        rows = settings.batch_rows if is_shown else settings.rows_per_replay_step(plan)
        await parts.inputs.open(live.engine.cut, rows, stop)
        while (found := parts.inputs.next(live.engine.cut)) is not Signal.ENDED:
            if found is Signal.WAITING:
                if parts.stop():
                    return False
                await parts.inputs.more()
                continue
            await live.apply(*found)
            if is_shown or frees:
                await live.stabilize()
            await durable.keep_replay()
            live.watch()
            parts.emit(Replaying(live.engine.cut, stop))
            await durable.clock.sleep(0)
            if parts.stop():
                return False
        if not live.is_stabilized:
            await live.stabilize()
        return True
