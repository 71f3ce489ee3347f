"""Runs a partition that reads inputs: its tasks, one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ripple.control.assignment import since_of
from ripple.core.events import Restored
from ripple.core.tracing import TracedInputs
from ripple.engine.machine import Engine
from ripple.engine.machine.router import Router
from ripple.storage.checkpoint import Checkpoints
from ripple.task.active import ActiveTask
from ripple.task.durable_state import DurableState
from ripple.task.standby import Standby
from ripple.task.tracing import Traces
from worker.engine.runner import Runner
from worker.handle import BackgroundJob

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from ripple.connectors.commit_group import CommitGroup
    from ripple.connectors.inputs import Inputs
    from ripple.core.events import Event
    from ripple.engine.operators.division import Division
    from ripple.model.pipeline.plan import Plan
    from ripple.task.lanes import Lanes
    from ripple.task.standby import Look, StandbyState
    from ripple.world.ports import Executor
    from worker.engine.context import TaskContext


@dataclass(frozen=True, slots=True)
class RunnerSpec:
    """What an input runner runs.

    number: partition in its stage. plan: to compute. inputs: to read. outputs: to write, for the
    owner of an epoch. engine: factory; staged: the first stage alone. reached: reads the cut that
    the outputs have committed; None if a standby cannot catch up before the owner has gone. lanes:
    through which the next stage reads the results, given the commit group; None without. shows:
    outputs that external clients may subscribe to. division: partitioner of the input, if known.
    """

    number: int
    plan: Plan
    inputs: Callable[[], Inputs]
    outputs: Callable[[int], CommitGroup]
    engine: type[Engine] = Engine
    staged: bool = False
    shows: Collection[str] = ()
    reached: Callable[[], Look | None] | None = None
    lanes: Callable[[CommitGroup], Lanes] | None = None
    division: Callable[[], Division | None] = lambda: None


class InputRunner(Runner):
    """Runs partition ``partition`` of the assignment, which reads the source or its lanes.

    Its standby state keeps following until a task is about to open the outputs.
    """

    def __init__(self, site: TaskContext, partition: int, duty: RunnerSpec) -> None:
        super().__init__(site.world.clock, partition, partial(site.tell, partition))
        self._site = site
        self._duty = duty
        self._inputs: Inputs | None = None
        self._keeper: DurableState | None = None
        self._following = BackgroundJob()
        self._warm: Standby | None = None
        self._left: StandbyState | None = None
        self._is_cold = False
        self._is_taking_over = False  # and holds one of the process's hand-over permits

    @property
    def _behind(self) -> int | None:
        if self._warm is None:
            return 0 if self._is_cold else None
        return self._warm.behind

    def follow(self) -> None:
        """Become a standby, with the state at the cut that the outputs have committed."""
        self._is_following = True
        self._following.begin(self._follow)

    def leave(self) -> None:
        """Stop gracefully."""
        self._following.cancel()
        super().leave()

    def drop(self) -> None:
        """Stop before the next effect."""
        self._following.cancel()
        super().drop()

    async def ended(self) -> None:
        """Wait until it has stopped."""
        await self._following.ended()
        await super().ended()

    def store(self) -> None:
        """Store a checkpoint soon."""
        if self._keeper is not None and self._inputs is not None:
            self._keeper.ask_for_checkpoint()
            self._inputs.wake()

    async def _follow(self) -> None:
        """Follow until told to own; failures are reported, and the owner continues."""
        clock, pauses = self._site.world.clock, self._new_pauses()
        while self._is_following:
            pauses.begin()
            pauses.works()
            try:
                reached = None if self._duty.reached is None else self._duty.reached()
                if reached is None:
                    self._is_cold = True  # its next owner restores
                    return
                executor = self._site.turns.for_standbys(self._site.world.executor)
                self._warm = Standby(
                    self._duty.plan,
                    self._new_inputs(),
                    self._checkpoints(executor),
                    reached,
                    self._site.world,
                    settings=self._site.settings,
                    staged=self._duty.staged,
                    executor=executor,
                    turn=self._site.turns.followers,
                )
                await self._warm.follow()
                return
            except Exception as error:
                self._warm = None
                self._failed(error, 0)
                if not self._is_following:
                    self._failure = None  # the task that starts now is another attempt
            await clock.sleep(pauses.next_s() if self._is_following else 0)

    async def _ready(self, *, is_handed_over: bool) -> StandbyState | None:
        """Return the standby's state, caught up so far, or the state that the last task retained.

        The previous owner continues until this returns: slow waits happen here.
        """
        if is_handed_over:
            await self._site.turns.hand_overs.acquire()
            self._is_taking_over = True
        warm, self._warm = self._warm, None
        if warm is not None and warm.state is not None:
            warm.stop(near=is_handed_over)
        else:
            self._following.cancel()
        await self._following.ended()
        left, self._left = self._left, None
        return left or (None if warm is None else warm.state)

    def _forget(self) -> None:
        self._left = None

    def _told(self, event: Event) -> None:
        if isinstance(event, Restored):
            self._taken_over()
        super()._told(event)

    def _taken_over(self) -> None:
        if self._is_taking_over:
            self._is_taking_over = False
            self._site.turns.hand_overs.release()

    async def _live(self, epoch: int, *, is_handed_over: bool) -> None:
        site, duty = self._site, self._duty
        inputs = self._new_inputs() if self._warm is None else self._warm.inputs
        keeper = DurableState(
            self._checkpoints(site.world.executor),
            site.world,
            epoch=epoch,
            is_next=lambda other: since_of(other) > since_of(epoch),
            holder=site.holder,
            ready=partial(self._ready, is_handed_over=is_handed_over),
            is_handed_over=is_handed_over,
            has_survived=self._has_noted,
            parks=lambda: self._is_resuming and not self._is_leaving,
        )
        sending = None
        if site.exchange is not None and (duty.lanes is None or duty.shows):
            sending = site.exchange.send(0, duty.number, epoch, inputs.wake, duty.shows)
        outputs, division = duty.outputs(epoch), duty.division()
        traces = None
        if site.tracer is not None:
            traces = Traces(site.tracer, stage=0, partition=duty.number, group=outputs)
        lanes = None if duty.lanes is None else duty.lanes(outputs)
        life: ActiveTask | None = None
        gate = None if site.intake is None else site.intake.gate(lambda: _held_by(life))
        life = ActiveTask(
            duty.plan,
            inputs,
            outputs,
            keeper,
            settings=site.settings,
            tell=self._told,
            stop=lambda: self._is_to_stop,
            staged=duty.staged,
            sends=sending,
            lanes=lanes,
            engine=duty.engine,
            division=division,
            intake=gate,
            traces=traces,
        )
        self._report, self._inputs, self._keeper = life.report, inputs, keeper
        try:
            await life.run()
        finally:
            self._taken_over()
            self._has_noted = keeper.has_noted
            self._inputs = self._keeper = None
            if gate is not None:
                gate.close()
            if self._is_giving_way:
                self._left = keeper.left
            if site.exchange is not None and sending is not None:
                site.exchange.stop_sending(sending)
            self._over(life.report)

    def _new_inputs(self) -> Inputs:
        inputs = self._duty.inputs()
        if self._site.tracer is not None and isinstance(inputs, TracedInputs):
            inputs.trace()
        return inputs

    def _wake_life(self) -> None:
        assert self._inputs is not None
        self._inputs.wake()

    def _checkpoints(self, executor: Executor) -> Checkpoints:
        site = self._site
        return Checkpoints(
            site.store,
            site.plan.name,
            self._partition,
            executor=executor,
            guards=site.world.guards,
        )


def _held_by(life: ActiveTask | None) -> dict[str, int]:
    """Return what a task holds of its process's queues."""
    live = None if life is None else life.live
    if live is None:
        return {}
    divided = live.engine.held_bytes if isinstance(live.engine, Router) else 0
    return {"uncommitted": live.uncommitted_rows, "divided": divided}
